//! Signals that come before there is anything to check: while a database is being opened, and
//! while anomalies are tried.

use crate::install::{self, Needed};
use crate::support::Folder;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
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

pub(crate) fn signal(child: &Child, signal: &str) {
    let sent = Command::new("/bin/kill").arg(signal).arg(child.id().to_string()).status();
    assert!(sent.expect("kill is there").success());
}

/// What there is, sooner or later.
pub(crate) fn awaited<T>(find: impl Fn() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + Duration::from_mins(2);
    loop {
        let found = find();
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
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
        let server = awaited(|| place.server()).expect("a server");
        let before = Instant::now();
        signal(&child, "-INT");
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

/// A matrix with so many rows that nobody sees its end, after its first history.
fn endless_matrix(folder: &Folder, place: &Place, arguments: &str) -> Child {
    let rows = " --isolation serializable".repeat(2000);
    let child = folder
        .command(&format!("matrix {arguments}{rows}"))
        .env("TMPDIR", place.0.join("temporary"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let is_history = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
    let written = || {
        let folders = place.homes().into_iter().filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().contains("-matrix-"))
        });
        let files = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
        files.flatten().map(|entry| entry.path()).find(is_history)
    };
    awaited(written).expect("a history");
    child
}

#[test]
fn an_interrupted_matrix_tells_what_was_tried_and_leaves_nothing() {
    const POSTGRES: Needed =
        Needed { file: "/usr/lib/postgresql/*/bin/postgres", packages: &["postgresql"] };
    let mut targets = vec![("sqlite", "-INT"), ("sqlite", "-TERM")];
    if install::is_there(&POSTGRES) {
        targets.push(("postgres", "-INT"));
    }
    for (target, name) in targets {
        let folder = Folder::with(&[]);
        let place = Place::new(&format!("matrix-{target}{name}"));
        let child = endless_matrix(&folder, &place, &format!("{target} --only G1a --only G1b"));
        signal(&child, name);
        let output = child.wait_with_output().expect("an end");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{target}: {said}");
        let start = "isolde: matrix: interrupted by a signal, after ";
        let end = " of 4000 anomalies: what was not tried by then is not decided\n";
        let tried = said.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
        let tried: usize = tried.expect(&said).parse().expect(&said);
        let table = String::from_utf8_lossy(&output.stdout);
        let signs = |sign| {
            table
                .lines()
                .filter(|line| line.starts_with("serial"))
                .fold(0, |count, line| count + line.matches(sign).count())
        };
        // A busy machine may leave one that was tried undecided.
        assert!(signs('✓') <= tried && tried > 0, "{target}: {tried}");
        assert_eq!(signs('✓') + signs('?'), 4000, "{target}");
        assert_eq!(place.homes(), <[PathBuf; 0]>::default(), "{target}");
    }
}

/// The histories stayed for ever.
#[test]
fn the_histories_of_a_killed_matrix_do_not_outlive_it() {
    let (folder, place) = (Folder::with(&[]), Place::new("killed-matrix"));
    let mut child = endless_matrix(&folder, &place, "sim");
    child.kill().expect("it runs");
    child.wait().expect("an end");
    assert!(awaited(|| place.homes().is_empty().then_some(())).is_some(), "{:?}", place.homes());
}
