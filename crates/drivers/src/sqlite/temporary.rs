//! Temporary files, also those that a killed run has left behind.
//!
//! Every session opens the file by its name, so it cannot be removed before the end. Who uses
//! one holds a lock on it, which the system gives up with the process: a file of ours that
//! nobody has locked, named after a process that is no more, is a leftover.

use rustix::process::{Pid, test_kill_process};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// What a database consists of, behind its name.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// A new file that no other process takes for a leftover.
///
/// It must be dropped after the last connection: closing a file gives up the locks that the
/// library has on it in this process.
pub(super) struct Temporary {
    pub(super) path: PathBuf,
    _locked: Option<File>,
}

impl Temporary {
    pub(super) fn new() -> Temporary {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = std::env::temp_dir();
        remove_leftovers(&folder);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanos = now.map_or(0, |elapsed| elapsed.as_nanos());
        let path = folder.join(format!("isolde-{}-{count}-{nanos:x}.db", std::process::id()));
        // Whoever cannot create it is told so when the database is opened.
        let locked = File::create_new(&path).ok().filter(|file| file.try_lock().is_ok());
        Temporary { path, _locked: locked }
    }
}

/// Removes a database and what is beside it.
pub(super) fn remove(path: &Path) {
    for suffix in SUFFIXES {
        let mut path = path.to_owned().into_os_string();
        path.push(suffix);
        // What is not there need not be removed.
        let _ = std::fs::remove_file(Path::new(&path));
    }
}

/// The command that does the same.
pub(super) fn removal(path: &Path) -> String {
    let path = path.display().to_string().replace('\'', "'\\''");
    let names = SUFFIXES.map(|suffix| format!(" '{path}{suffix}'"));
    format!("rm -f{}", names.concat())
}

fn remove_leftovers(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(process_of) else { continue };
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        // Our own are in use, and must not be opened: closing them would unlock them.
        if is_file && process != std::process::id() && !is_alive(process) && is_free(&entry.path())
        {
            remove(&entry.path());
        }
    }
}

/// The process in the name of a temporary file, such as `isolde-12-0-1f.db`.
fn process_of(name: &str) -> Option<u32> {
    let mut parts = name.strip_prefix("isolde-")?.strip_suffix(".db")?.split('-');
    let process = parts.next()?.parse().ok()?;
    parts.next()?.parse::<u32>().ok()?;
    u128::from_str_radix(parts.next()?, 16).ok()?;
    parts.next().is_none().then_some(process)
}

fn is_alive(process: u32) -> bool {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    // One that may not be asked is there.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Whether nobody has it locked, on this machine or in another container.
fn is_free(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| !matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_ours_have_a_process() {
        assert_eq!(process_of("isolde-12-0-1f.db"), Some(12));
        for other in ["isolde-12-0-1f.db-wal", "isolde-x-0-1f.db", "isolde-12.db", "mine.db"] {
            assert_eq!(process_of(other), None, "{other}");
        }
    }

    #[test]
    fn leftovers_of_the_dead_are_removed_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("isolde-left-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a new folder");
        // No process has such a number.
        let dead = i32::MAX;
        let (own, held) = (std::process::id(), format!("isolde-{dead}-1-2.db"));
        let left = [
            format!("isolde-{dead}-0-1.db"),
            format!("isolde-{dead}-0-1.db-wal"),
            held.clone(),
            format!("isolde-{own}-0-1.db"),
            "mine.db".to_owned(),
        ];
        for name in &left {
            std::fs::write(folder.join(name), "").expect("a folder of ours");
        }
        let lock = File::open(folder.join(&held)).expect("it is there");
        lock.try_lock().expect("nobody else has it");
        remove_leftovers(&folder);
        let there: Vec<bool> = left.iter().map(|name| folder.join(name).exists()).collect();
        std::fs::remove_dir_all(&folder).expect("a folder of ours");
        assert_eq!(there, [false, false, true, true, true]);
    }
}
