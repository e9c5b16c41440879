//! What is left of runs that were killed, or whose terminal was closed.

use crate::interruption::{awaited, signal};
use crate::support::Folder;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A run on a file of SQLite, which has committed something.
fn running(folder: &Folder, output: &str) -> Child {
    if !folder.path("data.db").exists() {
        folder.write("data.db", b"");
    }
    let run = folder.command(&format!("run sqlite:data.db --duration 10m --quiet -o {output}"));
    // Who starts the tests may ignore SIGHUP, as `nohup` does, and what is started inherits that.
    let child = Command::new("env")
        .arg("--default-signal=HUP")
        .arg(run.get_program())
        .args(run.get_args())
        .envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(folder.path("."))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("the program starts");
    let log = folder.path(&format!("{output}/history.log"));
    let size = || std::fs::metadata(&log).ok().filter(|it| it.len() > 10_000);
    awaited(size).expect("a recording");
    child
}

/// Its tables stayed, and nobody knew of them.
#[test]
fn tables_of_a_killed_run_are_told_by_the_next_and_removed() {
    let folder = Folder::with(&[]);
    let mut killed = running(&folder, "killed");
    killed.kill().expect("it runs");
    killed.wait().expect("an end");
    let next = folder.isolde("run sqlite:data.db --transactions 20 --quiet -o next");
    let expected = "isolde: run: one run left something in this database, and may still use \
                    it; `isolde clean URL` lists and removes it\n";
    assert_eq!((next.status, next.stderr.as_str()), (0, expected));
    let listed = folder.isolde("clean sqlite:data.db");
    assert!(listed.stdout.starts_with("isolde_") && listed.stdout.ends_with("_*\n"), "{listed:?}");
    let expected = "isolde: clean: one run left this, and may still use it; `isolde clean URL \
                    --yes` removes it\n";
    assert_eq!((listed.status, listed.stderr.as_str()), (0, expected));
    let removed = folder.isolde("clean sqlite:data.db --yes");
    assert_eq!(removed.stderr, "isolde: clean: removed what one run left\n");
    let nothing = folder.isolde("clean sqlite:data.db");
    assert_eq!(nothing.stderr, "isolde: clean: no run has left anything here\n");
    assert_eq!((nothing.status, nothing.stdout.as_str()), (0, ""));
    let next = folder.isolde("run sqlite:data.db --transactions 20 --quiet -o last");
    assert_eq!((next.status, next.stderr.as_str()), (0, ""));
}

#[test]
fn only_a_database_that_can_be_asked_is_cleaned() {
    let folder = Folder::with(&[]);
    let bare = folder.isolde("clean sqlite");
    assert_eq!(bare.status, 3);
    assert!(bare.stderr.starts_with("isolde: clean: expected the address of the database"));
}

/// The history was there, and no verdict.
#[test]
fn a_closed_terminal_ends_a_run_with_its_verdicts() {
    let folder = Folder::with(&[]);
    let mut child = running(&folder, "run");
    signal(&child, "-HUP");
    assert_eq!(child.wait().expect("an end").code(), Some(0));
    assert!(folder.read("run/run.json").contains("\"interrupted by a signal\""));
}

#[test]
fn a_run_under_nohup_goes_on_when_the_terminal_is_closed() {
    let folder = Folder::with(&[]);
    folder.write("data.db", b"");
    let isolde = env!("CARGO_BIN_EXE_isolde");
    let mut child = Command::new("nohup")
        .args([isolde, "run", "sqlite:data.db", "--duration", "3s", "--quiet", "-o", "run"])
        .current_dir(folder.path("."))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nohup");
    let log = folder.path("run/history.log");
    awaited(|| log.exists().then_some(())).expect("a recording");
    signal(&child, "-HUP");
    assert_eq!(child.wait().expect("an end").code(), Some(0));
    assert!(!folder.read("run/run.json").contains("interrupted"));
}

/// Where standard output cannot be written, `run.json` was not written either.
#[test]
#[cfg(target_os = "linux")]
fn a_run_that_cannot_print_is_kept_all_the_same() {
    let folder = Folder::with(&[]);
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a device");
    let status = folder
        .command("run sim --transactions 50 --quiet -o run")
        .stdout(full)
        .stderr(Stdio::null())
        .status();
    assert_eq!(status.expect("it starts").code(), Some(3));
    assert!(folder.read("run/run.json").contains("\"strongest\""));
}
