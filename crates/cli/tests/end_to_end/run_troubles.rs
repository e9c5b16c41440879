//! `isolde run` when something goes wrong: signals, full disks, secrets.

use crate::support::Folder;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// Balances repeat, and whose write each read saw is searched for: no order is found soon.
const HARD: &str = "run sim://snapshot-isolation --preset SmallBank-balances --keys 10 \
                    --transactions 5000 --level serializable --timeout 10m --output out";

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

/// It went on until its time was up.
#[test]
fn a_signal_while_a_run_checks_ends_the_check() {
    let folder = Folder::with(&[]);
    let (mut child, mut said) = checking(&folder);
    terminate(&child);
    let mut printed = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut printed).expect("text");
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("text");
    let status = child.wait().expect("an end");
    assert_eq!(status.code(), Some(2), "{printed}{rest}");
    assert!(printed.contains("serializable  unknown  (interrupted)"), "{printed}");
    assert!(printed.contains("serializable: unknown\n"), "{printed}");
    let json: Value = serde_json::from_str(&folder.read("out/run.json")).expect("JSON");
    assert_eq!(json["committed"], 5000);
    let levels = &json["report"]["levels"];
    // What needs no search was decided all the same.
    assert_ne!(levels["read-your-writes"]["verdict"], Value::Null);
    assert_eq!(levels["serializable"]["reason"], "interrupted");
    let kept = folder.isolde("stats out/history.log");
    assert!(kept.stdout.contains("5000"), "{kept:?}");
}
