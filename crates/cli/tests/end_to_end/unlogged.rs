//! Transactions that are in no log: what a verdict says of them, and `--complete-log`.

use crate::support::{Folder, printed};
use serde_json::{Value, json};
use std::path::Path;

const RECORDING: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/recordings/cockroachdb-cobra");

/// A folder with the recording in `logs`.
fn recorded() -> Folder {
    let folder = Folder::with(&[]);
    std::fs::create_dir(folder.path("logs")).expect("a new folder");
    for entry in std::fs::read_dir(Path::new(RECORDING)).expect("a folder of the corpus") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a file").to_owned();
        std::fs::copy(&path, folder.path("logs").join(name)).expect("a writable folder");
    }
    folder
}

const SATISFIED: &str = "\
logs: session serializable holds if what is in no log committed
29 transactions (21 committed, 8 unknown) in 21 sessions, 29 operations on 3 keys (cobra)

  session-serializable  satisfied
  so satisfied: serializable, session-snapshot-isolation, snapshot-isolation, repeatable-read, parallel-snapshot-isolation, prefix, update-atomic, cursor-stability, causal, writes-follow-reads, monotonic-writes, monotonic-reads, read-your-writes, read-atomic, read-committed, monotonic-atomic-view, adya-read-committed, read-uncommitted

  satisfied if 8 transactions that are not in the log committed: T1048598, T1048599, T1048600, T1048601, T1048602, T1048605, T1048603, T1048604
  if the log lacks nothing, check with --complete-log: nobody wrote what they wrote

holds: session-serializable
gate: isolde check logs --level session-serializable
";

const VIOLATED: &str = "\
logs: not adya read committed: thin-air read in T1048581; read uncommitted holds
21 transactions (21 committed) in 13 sessions, 21 operations on 3 keys (cobra)

  writes-follow-reads  satisfied
  monotonic-writes     satisfied
  monotonic-reads      satisfied
  read-your-writes     satisfied
  adya-read-committed  violated
  read-uncommitted     satisfied
  so violated: session-serializable, serializable, session-snapshot-isolation, snapshot-isolation, repeatable-read, parallel-snapshot-isolation, prefix, update-atomic, cursor-stability, causal, read-atomic, read-committed, monotonic-atomic-view

not adya-read-committed:
  thin-air read
    T1048581 read 167 = 100004 (T15.log, record 2), which nobody wrote
  thin-air read
    T1048597 read 167 = 100005 (T15.log, record 5), which nobody wrote
  thin-air read
    T1048582 read 167 = 100006 (T16.log, record 2), which nobody wrote
  thin-air read
    T1048583 read 167 = 100007 (T17.log, record 2), which nobody wrote
  thin-air read
    T1048596 read 167 = 100008 (T17.log, record 5), which nobody wrote
  thin-air read
    T1048585 read 167 = 100011 (T18.log, record 2), which nobody wrote
  thin-air read
    T1048584 read 167 = 100009 (T19.log, record 2), which nobody wrote
  thin-air read
    T1048595 read 167 = 100010 (T19.log, record 5), which nobody wrote

holds: read-uncommitted, read-your-writes, monotonic-reads, monotonic-writes, writes-follow-reads
broken: adya-read-committed
gate: isolde check logs --level read-uncommitted --level read-your-writes --level monotonic-reads --level monotonic-writes --level writes-follow-reads --complete-log
why: isolde explain logs --complete-log
";

#[test]
fn a_verdict_names_what_it_rests_on_once() {
    assert_eq!(recorded().isolde("check logs"), printed(0, SATISFIED));
    let quiet = recorded().isolde("check logs -q --level serializable");
    let expected = "\
logs\tserializable\tsatisfied
logs\tassumed\tsatisfied if 8 transactions that are not in the log committed
";
    assert_eq!(quiet, printed(0, expected));
    let explained = recorded().isolde("explain logs").stdout;
    let nothing = "logs: nothing is violated (satisfied if 8 transactions that are not in the log \
                   committed)\n";
    assert_eq!(explained, nothing);
}

#[test]
fn a_complete_log_has_no_lost_writers() {
    assert_eq!(recorded().isolde("check logs --complete-log"), printed(0, VIOLATED));
    let gate = recorded().isolde("check logs -q --complete-log --level read-committed");
    assert_eq!(gate, printed(1, "logs\tread-committed\tviolated\n"));
}

#[test]
fn the_json_report_names_transactions_that_are_in_no_log() {
    let folder = recorded();
    let report = |arguments: &str| -> Value {
        let run = folder.isolde(&format!("check logs --format json {arguments}"));
        serde_json::from_str(&run.stdout).expect("JSON")
    };
    let unlogged = &report("")["unlogged"];
    assert_eq!(unlogged["count"], json!(8));
    assert_eq!(unlogged["transactions"].as_array().map(Vec::len), Some(8));
    let meaning = "satisfied if 8 transactions that are not in the log committed";
    assert_eq!(unlogged["meaning"], json!(meaning));
    assert_eq!(report("--complete-log").get("unlogged"), None);
    for form in ["markdown", "junit", "github", "html"] {
        let shown = folder.isolde(&format!("check logs --format {form}")).stdout.to_lowercase();
        assert!(shown.contains(meaning), "{form}: {shown}");
    }
}

#[test]
fn certificates_are_verified_with_and_without_what_is_in_no_log() {
    let folder = recorded();
    for (option, verdict) in [("", "satisfied"), (" --complete-log", "violated")] {
        let made = folder.isolde(&format!("check logs -q --certificate c{option}"));
        assert_eq!((made.status, &*made.stderr), (0, ""));
        let verified = folder.isolde(&format!("verify c logs{option}"));
        let line = format!("\nserializable: {verdict}, verified");
        assert!(verified.stdout.contains(&line), "{}", verified.stdout);
        assert_eq!(verified.status, 0);
    }
    let other = folder.isolde("verify c logs");
    assert!(other.stderr.contains("certificate of another history"), "{}", other.stderr);
}

#[test]
fn what_is_in_no_log_stays_so_in_our_own_formats() {
    let folder = recorded();
    for format in ["text", "binary"] {
        folder.isolde(&format!("convert logs --to {format} --output h"));
        let quiet = folder.isolde("check h -q --level serializable");
        let assumed = "h\tassumed\tsatisfied if 8 transactions that are not in the log committed\n";
        assert!(quiet.stdout.ends_with(assumed), "{format}: {}", quiet.stdout);
        let complete = folder.isolde("check h -q --complete-log --level serializable");
        assert_eq!(complete, printed(1, "h\tserializable\tviolated\n"), "{format}");
    }
}
