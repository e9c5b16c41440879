//! Signals that come before there is anything to check: while a database is being opened.

use crate::support::Folder;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Stands for a server that takes its time to start.
const SLOW: &str = "#!/bin/sh\necho $$\nexec sleep 600\n";

/// A folder among the temporary ones, where another user may run programs: root starts servers
/// as one.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let place = std::env::temp_dir().join(format!("end-to-end-{name}-{}", std::process::id()));
        for folder in ["programs", "temporary"] {
            std::fs::create_dir_all(place.join(folder)).expect("a writable folder");
        }
        let program = place.join("programs/redis-server");
        std::fs::write(&program, SLOW).expect("a writable folder");
        for path in [&place, &place.join("programs"), &place.join("temporary"), &program] {
            std::fs::set_permissions(path, Permissions::from_mode(0o755)).expect("ours");
        }
        Place(place)
    }

    fn homes(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.0.join("temporary")).expect("a folder");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }

    /// The number of the server's process, once it runs.
    fn server(&self) -> Option<u32> {
        let log = self.homes().first()?.join("redis.log");
        std::fs::read_to_string(log).ok()?.strip_suffix('\n')?.parse().ok()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn is_alive(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

/// It went on waiting, without a word, and then for each server to end in good order.
#[test]
fn a_signal_while_a_server_starts_ends_it_and_says_so() {
    for command in ["run", "matrix", "watch"] {
        let (folder, place) = (Folder::with(&[]), Place::new(command));
        let path = format!("{}:/usr/bin:/bin", place.0.join("programs").display());
        let child = folder
            .command(&format!("{command} redis"))
            .env("PATH", path)
            .env("TMPDIR", place.0.join("temporary"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let deadline = Instant::now() + Duration::from_mins(1);
        let server = loop {
            match place.server() {
                Some(server) => break server,
                None => assert!(Instant::now() < deadline, "{command}: no server"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let before = Instant::now();
        let sent = Command::new("/bin/kill").arg("-INT").arg(child.id().to_string()).status();
        assert!(sent.expect("kill is there").success());
        let output = child.wait_with_output().expect("an end");
        // The server would have been given half a minute.
        assert!(before.elapsed() < Duration::from_secs(15), "{command}: {:?}", before.elapsed());
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = format!(
            "isolde: {command}: interrupted by a signal while redis was being opened: nothing \
             was done\n"
        );
        assert_eq!((output.status.code(), said.as_ref()), (Some(2), expected.as_str()));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
        assert!(!is_alive(server), "{command}: the server runs on");
        assert_eq!(place.homes(), <[PathBuf; 0]>::default(), "{command}");
        assert!(!folder.path("isolde-runs").exists(), "{command}");
    }
}
