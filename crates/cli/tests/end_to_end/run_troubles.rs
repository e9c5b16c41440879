//! `isolde run` when something goes wrong: signals, full disks, secrets.

use crate::support::{Folder, Run};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Balances repeat, and whose write each read saw is searched for: seldom is an answer found soon.
const HARD: &str = "run sim://snapshot-isolation --preset SmallBank-balances --keys 10 \
                    --transactions 5000 --level serializable --timeout 10m --output out";

/// How often a test is tried whose signal may come when all is decided: clients of a run are
/// threads, so no two histories are equally hard.
const TRIES: usize = 5;

/// A run that has recorded its history and is checking it.
fn checking(folder: &Folder) -> (Child, impl BufRead) {
    let mut child = folder
        .command(HARD)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut said = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("checking what was recorded") {
        line.clear();
        let length = said.read_line(&mut line).expect("text");
        assert_ne!(length, 0, "it ended before it was interrupted");
    }
    (child, said)
}

fn terminate(child: &Child) {
    let sent = Command::new("/bin/kill").arg(child.id().to_string()).status();
    assert!(sent.expect("kill is there").success());
}

/// What a run printed that was told to end while it checked, and its status.
fn interrupted(folder: &Folder) -> (Option<i32>, String) {
    let (mut child, mut said) = checking(folder);
    terminate(&child);
    let mut printed = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut printed).expect("text");
    said.read_to_string(&mut printed).expect("text");
    (child.wait().expect("an end").code(), printed)
}

/// It went on until its time was up.
#[test]
fn a_signal_while_a_run_checks_ends_the_check() {
    let attempt = || {
        let folder = Folder::with(&[]);
        let (status, printed) = interrupted(&folder);
        // A violation that was found before the signal came.
        (status != Some(1)).then_some((folder, status, printed))
    };
    let found = (0..TRIES).find_map(|_| attempt());
    let (folder, status, printed) = found.expect("a check that takes longer than a signal");
    assert_eq!(status, Some(2), "{printed}");
    assert!(printed.contains("serializable  unknown  (interrupted)"), "{printed}");
    assert!(printed.contains("serializable: unknown\n"), "{printed}");
    // All that was asked for is recorded.
    assert!(
        printed.contains("\ninterrupted by a signal while the history was checked\n"),
        "{printed}"
    );
    assert!(!printed.contains("ended early"), "{printed}");
    let json: Value = serde_json::from_str(&folder.read("out/run.json")).expect("JSON");
    assert_eq!(json["committed"], 5000);
    assert_eq!(json["ended_by"], "interrupted by a signal while the history was checked");
    let levels = &json["report"]["levels"];
    // What needs no search was decided all the same.
    assert_ne!(levels["read-your-writes"]["verdict"], Value::Null);
    assert_eq!(levels["serializable"]["reason"], "interrupted");
    let kept = folder.isolde("stats out/history.log");
    assert!(kept.stdout.contains("5000"), "{kept:?}");
}

/// It read like a run that had done everything it was asked to.
#[test]
fn a_run_that_was_cut_short_says_so_beside_verdicts_alone() {
    let folder = Folder::with(&[]);
    let arguments = "run sim://serializable --transactions 100000000 --output out --quiet";
    let mut command = folder.command(arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the program starts");
    assert!(becomes(|| has_recorded(&folder)), "nothing is recorded");
    terminate(&child);
    let output = child.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "strict-serializable: satisfied\n");
    let json: Value = serde_json::from_str(&folder.read("out/run.json")).expect("JSON");
    let said = format!(
        "isolde: run: ended early, after {} of 100000000 transactions: interrupted by a signal\n",
        json["committed"]
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), said);
    assert_eq!(json["ended_by"], "interrupted by a signal");
}

fn has_recorded(folder: &Folder) -> bool {
    std::fs::metadata(folder.path("out/history.log")).is_ok_and(|file| file.len() > 10_000)
}

/// What a program says on standard error before it ends, which signals make it.
fn said_until_ended(mut child: Child) -> (Option<i32>, String) {
    let mut said = child.stderr.take().expect("piped");
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        said.read_to_string(&mut text).expect("text");
        text
    });
    // Two that come together are one.
    let deadline = Instant::now() + Duration::from_mins(1);
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        assert!(Instant::now() < deadline, "it does not end");
        let _ = Command::new("/bin/kill").arg(child.id().to_string()).status();
        std::thread::sleep(Duration::from_millis(50));
    };
    (status.code(), reading.join().expect("text"))
}

/// Nobody else knows that the history was not looked at.
#[test]
fn a_second_signal_ends_the_program_at_once_and_names_the_history() {
    let hard = HARD.replace("--transactions 5000", "--duration 10m") + " --quiet";
    let attempt = || {
        let folder = Folder::with(&[]);
        let child = folder.command(&hard).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let enough = |file: std::fs::Metadata| file.len() > 4_000_000;
        let history = folder.path("out/history.log");
        assert!(becomes(|| std::fs::metadata(&history).is_ok_and(enough)), "nothing is recorded");
        let (status, said) = said_until_ended(child.expect("the program starts"));
        // A violation that was found before the second signal came.
        (status != Some(1)).then_some((folder, status, said))
    };
    let found = (0..TRIES).find_map(|_| attempt());
    let (folder, status, said) = found.expect("a check that takes longer than a signal");
    assert_eq!(status, Some(130), "{said}");
    assert_eq!(said, "isolde: run: what was recorded was not checked: out/history.log\n");
    assert!(folder.isolde("stats out/history.log").stdout.contains("committed"));
}

/// Stands for a Redis that stops answering as soon as transactions begin, so that nothing can
/// be removed from it.
fn silent_redis(server: &TcpListener, has_begun: &Arc<AtomicBool>) {
    for client in server.incoming().flatten() {
        let has_begun = Arc::clone(has_begun);
        std::thread::spawn(move || {
            let mut reader = BufReader::new(client.try_clone().expect("a client"));
            let mut writer = client;
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
                let answer = match line.trim_end() {
                    "ROLE" => "*1\r\n$6\r\nmaster\r\n",
                    "INFO" => "$15\r\nredis_version:7\r\n",
                    "SETNX" => ":1\r\n",
                    "SCAN" => "*2\r\n$1\r\n0\r\n*0\r\n",
                    word => {
                        has_begun.fetch_or(word == "WATCH", Ordering::Relaxed);
                        ""
                    }
                };
                line.clear();
                if writer.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        });
    }
}

/// They stayed, under names that nobody knew.
#[test]
fn a_second_signal_names_what_was_created_and_is_left_behind() {
    let folder = Folder::with(&[]);
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    let has_begun = Arc::new(AtomicBool::new(false));
    let begun = Arc::clone(&has_begun);
    std::thread::spawn(move || silent_redis(&server, &begun));
    let mut command = folder.command(&format!(
        "run redis://127.0.0.1:{port} --duration 10m --output out --quiet --sessions 2"
    ));
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the program starts");
    assert!(becomes(|| has_begun.load(Ordering::Relaxed)), "no transaction begins");
    let (status, said) = said_until_ended(child);
    let removal = "isolde: run: what was created is left behind, remove it with: redis-cli --scan \
                   --pattern 'isolde_";
    assert!(said.starts_with(removal), "{said}");
    assert_eq!(status, Some(130), "{said}");
}

/// Stands for a Redis that wants a password.
#[test]
fn a_password_comes_from_the_environment_and_is_told_to_nobody_else() {
    let folder = Folder::with(&[]);
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    let asked = std::thread::spawn(move || {
        let (mut client, _) = server.accept().expect("a client");
        let mut bytes = [0; 1024];
        let length = client.read(&mut bytes).expect("a request");
        client.write_all(b"-WRONGPASS no such user\r\n").expect("a client that listens");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    });
    let run = folder
        .command(&format!("run redis://127.0.0.1:{port} --transactions 10 --output out"))
        .env("ISOLDE_PASSWORD", "hunter2")
        .output()
        .expect("the program starts");
    let asked = asked.join().expect("a request");
    assert!(asked.contains("AUTH") && asked.contains("hunter2"), "{asked}");
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(3), "{said}");
    assert!(said.contains("WRONGPASS") && !said.contains("hunter2"), "{said}");
}

/// Runs with files of at most so many blocks of 512 bytes, as if the disk were full then.
#[cfg(unix)]
pub(crate) fn with_little_space(folder: &Folder, blocks: u32, arguments: &str) -> Run {
    let limited = format!("ulimit -f {blocks}; trap '' XFSZ; exec \"$0\" \"$@\"");
    let isolde = folder.command(arguments);
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(limited).arg(isolde.get_program()).args(isolde.get_args());
    command.current_dir(folder.path("."));
    let output = command.output().expect("a shell");
    Run {
        status: output.status.code().expect("no signal"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

#[cfg(unix)]
const FULL: &str = "isolde: run: cannot write the history: File too large (os error 27)\n";

#[cfg(unix)]
#[test]
fn what_was_recorded_before_the_disk_was_full_is_kept_and_checked() {
    let folder = Folder::with(&[]);
    let run = with_little_space(
        &folder,
        128,
        "run sim://serializable --transactions 100000 --output out --quiet",
    );
    let expected = Run {
        status: 3,
        stdout: "strict-serializable: satisfied\n".to_owned(),
        stderr: FULL.to_owned(),
    };
    assert_eq!(run, expected);
    let json: Value = serde_json::from_str(&folder.read("out/run.json")).expect("JSON");
    assert_eq!(json["ended_by"], "cannot write the history: File too large (os error 27)");
    let committed = json["report"]["history"]["committed"].as_u64().expect("a number");
    assert!(committed > 0, "{json}");
    // What clients did after that is not told: nobody could look at it.
    for outcome in ["committed", "aborted", "unknown"] {
        assert_eq!(json[outcome], json["report"]["history"][outcome], "{outcome}");
    }
    let checked = folder.isolde("check out/history.log --level strict-serializable --quiet");
    assert_eq!(checked.stdout, "out/history.log\tstrict-serializable\tsatisfied\n");
}

#[cfg(unix)]
#[test]
fn a_violation_before_the_disk_was_full_is_one() {
    let folder = Folder::with(&[]);
    let run = with_little_space(
        &folder,
        256,
        "run sim://serializable?bug=thin-air-read --transactions 100000 --output out --quiet",
    );
    assert_eq!((run.status, run.stdout.as_str()), (1, "strict-serializable: violated\n"));
    assert!(run.stderr.starts_with(FULL), "{}", run.stderr);
}

/// There is not even space for what was found: it is printed all the same.
#[cfg(unix)]
#[test]
fn a_disk_without_space_for_the_result_does_not_hide_it() {
    let folder = Folder::with(&[]);
    let run = with_little_space(
        &folder,
        8,
        "run sim://serializable --sessions 2 --transactions 100000 --output out --quiet \
         --report html=page.html",
    );
    assert_eq!((run.status, run.stdout.as_str()), (3, "strict-serializable: satisfied\n"));
    let unwritten = "isolde: out/run.json: cannot be written: File too large (os error 27)\n";
    assert_eq!(run.stderr, format!("{FULL}{unwritten}"));
    let left = std::fs::read_dir(folder.path("out")).expect("a folder");
    let left: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(left, ["history.log"]);
}

/// The folder stayed for ever.
#[test]
fn the_temporary_place_of_an_embedded_store_does_not_outlive_a_killed_run() {
    for store in ["fjall", "redb"] {
        let folder = Folder::with(&[]);
        std::fs::create_dir(folder.path("temporary")).expect("a new folder");
        let entries = || std::fs::read_dir(folder.path("temporary")).expect("a folder").count();
        let mut running = folder
            .command(&format!("run {store} --duration 10m --output out --quiet"))
            .env("TMPDIR", folder.path("temporary"))
            .stdout(Stdio::null())
            .spawn()
            .expect("the program starts");
        assert!(becomes(|| has_recorded(&folder)), "{store}: nothing is recorded");
        assert_eq!(entries(), 1, "{store}");
        running.kill().expect("it runs");
        running.wait().expect("an end");
        assert!(becomes(|| entries() == 0), "{store}: something is left");
    }
}

fn becomes(is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !is_so() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    is_so()
}
