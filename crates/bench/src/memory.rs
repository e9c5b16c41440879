//! Memory that the machine has ready.
//!
//! A virtual machine gives memory that nobody uses back to its host within a second or two, and
//! gets it again several times slower than a program takes memory that is there. What that costs
//! depends on what ran before, and falls on the largest runs. Beside a run whose figures are
//! compared another process therefore holds memory and gives it back as the run takes more: it
//! finds some that was used a moment ago, from its beginning to its end. It is another process
//! since one passes its peak on to those it starts.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

/// What is given back at a time, in bytes; whole huge pages.
const PIECE: usize = 32 << 20;
/// So much more than a run has taken is given back, in bytes.
const AHEAD: usize = 256 << 20;
/// How often to look.
const PERIOD: Duration = Duration::from_millis(1);

/// The process that holds memory for a run.
pub(crate) struct Holder {
    process: Child,
    tells: ChildStdin,
}

impl Holder {
    /// Has memory ready for a run with this peak, in MiB.
    pub(crate) fn of(peak: f64) -> io::Result<Holder> {
        let mebibytes = peak.ceil().to_string();
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["hold", &mebibytes]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let tells = process.stdin.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("it is piped")).read_line(&mut line)?;
        Ok(Holder { process, tells })
    }

    /// Tells it which process to watch.
    pub(crate) fn watch(&mut self, id: u32) -> io::Result<()> {
        writeln!(self.tells, "{id}")
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Holds memory for a process, whose number comes on standard input once a line has said that
/// the memory is there.
pub(crate) fn hold(mebibytes: usize) -> Result<(), String> {
    let shown = |error: io::Error| error.to_string();
    let bytes = mebibytes.saturating_mul(1 << 20).saturating_add(AHEAD);
    let mut held: Vec<Piece> = Vec::new();
    for _ in 0..bytes.div_ceil(PIECE) {
        held.push(Piece::new().map_err(shown)?);
    }
    let all = held.len();
    held.truncate(all - AHEAD / PIECE);
    writeln!(io::stdout(), "ready").map_err(shown)?;
    let mut id = String::new();
    io::stdin().read_line(&mut id).map_err(shown)?;
    while let (false, Some(taken)) = (held.is_empty(), resident(id.trim())) {
        held.truncate(all.saturating_sub((taken + AHEAD).div_ceil(PIECE)));
        std::thread::sleep(PERIOD);
    }
    Ok(())
}

/// How much memory a process has, in bytes; `None` once it has ended.
fn resident(id: &str) -> Option<usize> {
    let pages = fs::read_to_string(format!("/proc/{id}/statm")).ok()?;
    let pages: usize = pages.split(' ').nth(1)?.parse().ok()?;
    (pages > 0).then_some(pages << 12)
}

/// Memory that was written to.
struct Piece(*mut libc::c_void);

impl Piece {
    fn new() -> io::Result<Piece> {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: the mapping is new, advised and written to as a whole.
        unsafe {
            let start = libc::mmap(std::ptr::null_mut(), PIECE, access, kind, -1, 0);
            if start == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            libc::madvise(start, PIECE, libc::MADV_HUGEPAGE);
            start.cast::<u8>().write_bytes(1, PIECE);
            Ok(Piece(start))
        }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nobody else knows it.
        unsafe { libc::munmap(self.0, PIECE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_until_it_ends() {
        let mut sleeping = Command::new("sleep").arg("60").spawn().expect("a process");
        let id = sleeping.id().to_string();
        assert!(resident(&id).is_some());
        sleeping.kill().expect("it runs");
        // It is there until somebody asks how it ended, without memory.
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while resident(&id).is_some() {
            assert!(std::time::Instant::now() < deadline, "it has memory still");
        }
        sleeping.wait().expect("an end");
        assert_eq!(resident(&id), None);
    }
}
