//! Running a program and measuring what it used.

use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};
use std::time::Instant;

/// What a program used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Usage {
    /// Processor seconds of all its threads, in the kernel too.
    pub(crate) cpu: f64,
    /// Seconds from start to end.
    pub(crate) wall: f64,
    /// The most memory it had at a time, in MiB.
    pub(crate) peak: f64,
}

/// A program with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: OsString,
    pub(crate) arguments: Vec<OsString>,
}

impl Program {
    pub(crate) fn new<A: Into<OsString>>(
        path: impl Into<OsString>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Program {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Program { path: path.into(), arguments }
    }

    /// The least of each figure over `runs`, since noise only adds.
    pub(crate) fn best_of(&self, runs: u32) -> Result<Usage, String> {
        let mut best = self.run()?;
        for _ in 1..runs {
            let usage = self.run()?;
            best = Usage {
                cpu: best.cpu.min(usage.cpu),
                wall: best.wall.min(usage.wall),
                peak: best.peak.min(usage.peak),
            };
        }
        Ok(best)
    }

    /// Runs it once. Its output is dropped; its errors are the user's to see.
    pub(crate) fn run(&self) -> Result<Usage, String> {
        let failed = |error: io::Error| format!("{}: {error}", self.path.display());
        let start = Instant::now();
        let child = Command::new(&self.path)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (status, resources) = wait(child.id()).map_err(failed)?;
        let wall = start.elapsed().as_secs_f64();
        if status != 0 {
            let shown: Vec<_> =
                self.arguments.iter().map(|word| word.display().to_string()).collect();
            let (path, shown) = (self.path.display(), shown.join(" "));
            return Err(format!("expected success of `{path} {shown}`, found status {status:#x}"));
        }
        let seconds = |time: libc::timeval| {
            #[expect(clippy::cast_precision_loss, reason = "a run takes less than 2^52 s")]
            let seconds = time.tv_sec as f64;
            #[expect(clippy::cast_precision_loss, reason = "less than a million")]
            let micros = time.tv_usec as f64;
            seconds + micros / 1e6
        };
        #[expect(clippy::cast_precision_loss, reason = "less than 2^52 KiB")]
        let peak = resources.ru_maxrss as f64 / 1024.0;
        Ok(Usage { cpu: seconds(resources.ru_utime) + seconds(resources.ru_stime), wall, peak })
    }
}

/// Waits for a child and takes its resources with it, which the standard library
/// does not tell. Until it is waited for, its number is nobody else's.
fn wait(child: u32) -> io::Result<(i32, libc::rusage)> {
    let number = libc::pid_t::try_from(child).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: all zeros is a valid `rusage`, which is numbers alone.
    let mut resources: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live local variables of the right types.
        let waited = unsafe { libc::wait4(number, &raw mut status, 0, &raw mut resources) };
        if waited == number {
            return Ok((status, resources));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_works_uses_processor_time_and_memory() {
        let loops = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let usage = Program::new("sh", ["-c", loops]).run().expect("a shell");
        assert!(usage.cpu > 0.0 && usage.wall > 0.0 && usage.peak > 0.1, "{usage:?}");
    }

    #[test]
    fn a_program_that_fails_is_not_measured() {
        let error = Program::new("sh", ["-c", "exit 3"]).run().expect_err("it failed");
        assert_eq!(error, "expected success of `sh -c exit 3`, found status 0x300");
    }
}
