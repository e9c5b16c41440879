//! `isolde watch`: files, the listener, and a database that is driven.

use crate::support::Folder;
use isolde_client::{Row, Trace};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};

/// Two transfers, one after the other, and a read of what the first had replaced.
const STALE: &str = r#"{"isolde":"trace 1","unit":"us"}
{"client":"one"}
{"client":"two"}
{"client":"one","txn":1,"begin":[1,2]}
{"client":"one","txn":1,"write":[3,4],"rows":[["accounts",5,"balance",100]]}
{"client":"one","txn":1,"commit":[5,6]}
{"client":"one","txn":2,"begin":[7,8]}
{"client":"one","txn":2,"write":[9,10],"rows":[["accounts",5,"balance",90]]}
{"client":"one","txn":2,"commit":[11,12]}
{"client":"two","txn":1,"begin":[20,21]}
{"client":"two","txn":1,"read":[22,23],"rows":[["accounts",5,"balance",100]]}
{"client":"two","txn":1,"commit":[24,25]}
{"bye":true}
"#;

#[test]
fn a_stale_read_is_told_saved_and_judged_again() {
    let folder = Folder::with(&[("stale.jsonl", STALE)]);
    let run = folder
        .isolde("watch --from stale.jsonl --profile snapshot-isolation --output found --quiet");
    assert_eq!(run.status, 1, "{run:?}");
    let told = run.stdout.lines().take(2).collect::<Vec<_>>().join("\n");
    assert_eq!(
        told,
        "violation 1: stale-read (consistent-read)\n  two, transaction 1, read 100 in \
         accounts/5/balance by operation 1 (0.000021 s to 0.000022 s), which had certainly been \
         replaced before its snapshot."
    );
    assert!(run.stdout.contains("the history around it is in found/violation-1.txt"), "{run:?}");
    assert!(run.stdout.contains("violated: strict-serializable (stale-read), "), "{run:?}");
    let check = folder.isolde("check found/violation-1.txt --level strict-serializable --quiet");
    assert_eq!(check.status, 1, "{check:?}");
}

#[test]
fn the_nearest_trace_without_a_stale_read_is_clean() {
    let fresh = STALE.replace(
        "[22,23],\"rows\":[[\"accounts\",5,\"balance\",100]]",
        "[22,23],\"rows\":[[\"accounts\",5,\"balance\",90]]",
    );
    let folder = Folder::with(&[("fresh.jsonl", &fresh)]);
    let run = folder.isolde("watch --from fresh.jsonl --profile snapshot-isolation --quiet");
    assert_eq!(run.status, 0, "{run:?}");
    assert!(run.stdout.contains("  no violations\n"), "{run:?}");
    assert!(!folder.path("isolde-watch").exists());
}

#[test]
fn bad_files_and_usage_are_refused_with_their_place() {
    let folder = Folder::with(&[("bad.jsonl", "{\"isolde\":\"trace 1\"}\n{\"raed\":1}\n")]);
    let run = folder.isolde("watch --from bad.jsonl --profile snapshot-isolation --quiet");
    assert_eq!(run.status, 3, "{run:?}");
    assert!(run.stderr.starts_with("isolde: bad.jsonl: record 2: line 2: expected a message"));
    let run = folder.isolde("watch --from bad.jsonl");
    assert_eq!(run.status, 3, "{run:?}");
    assert!(run.stderr.contains("expected --profile"), "{run:?}");
    let run = folder.isolde("watch --listen nowhere --profile snapshot-isolation");
    assert_eq!(run.status, 3, "{run:?}");
}

#[test]
fn the_log_of_a_run_is_held_to_what_its_database_promised() {
    let folder = Folder::with(&[]);
    let target = "sim://snapshot-isolation?bug=stale-snapshot";
    let run = folder.isolde(&format!("run {target} --transactions 300 --output ran"));
    assert!(run.status <= 1, "{run:?}");
    let noted = folder.isolde("watch --from ran/history.log --explain 0");
    // Whether a stale snapshot shows depends on what ran at the same time.
    assert!(noted.status <= 1, "{noted:?}");
    assert!(noted.stdout.contains(", profile sim/snapshot-isolation\n"), "{noted:?}");
    let told = "isolde: watch: held to sim/snapshot-isolation, which ran/run.json names; \
                --profile takes another\n";
    assert!(noted.stderr.starts_with(told), "{noted:?}");
    let other = folder.isolde("watch --from ran/history.log --profile none --quiet");
    assert!(other.stdout.contains(", profile none\n"), "{other:?}");
    // A log that no run stands beside says nothing of its database.
    std::fs::copy(folder.path("ran/history.log"), folder.path("alone.log")).expect("a copy");
    let alone = folder.isolde("watch --from alone.log");
    assert_eq!(alone.status, 3, "{alone:?}");
    assert!(alone.stderr.contains("expected --profile"), "{alone:?}");
}

#[test]
fn a_driven_database_is_verified_by_its_mechanisms_and_completely() {
    let folder = Folder::with(&[]);
    let run = folder.isolde(
        "watch sqlite --profile serializable --transactions 3000 --complete strict-serializable \
         --log run.log --events events.jsonl --quiet",
    );
    assert_eq!(run.status, 0, "{run:?}");
    assert!(run.stdout.contains("committed 3000 "), "{run:?}");
    assert!(run.stdout.contains("complete checker: strict-serializable, "), "{run:?}");
    assert!(run.stdout.contains("all cuts exact"), "{run:?}");
    let events = folder.read("events.jsonl");
    let last: Value = serde_json::from_str(events.lines().last().expect("events")).expect("JSON");
    assert_eq!((&last["event"], &last["committed"]), (&"end".into(), &3000.into()));
    let check = folder.isolde("check run.log --level strict-serializable --quiet");
    assert_eq!(check.status, 0, "{check:?}");
}

#[test]
fn an_interrupted_watch_ends_with_its_summary() {
    let folder = Folder::with(&[]);
    let child = folder
        .command("watch sqlite --quiet")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    std::thread::sleep(std::time::Duration::from_secs(2));
    let id = child.id().to_string();
    assert!(Command::new("/bin/kill").args(["-INT", &id]).status().expect("kill").success());
    let output = child.wait_with_output().expect("it ends");
    let printed = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(printed.contains("  no violations\n"), "{printed}");
    assert!(printed.contains("kept in memory at the end: "), "{printed}");
}

#[test]
fn a_recorded_history_is_a_trace() {
    let folder = Folder::with(&[]);
    let generate =
        "gen --transactions 500 --isolation snapshot-isolation --times operations -o h.txt";
    assert_eq!(folder.isolde(generate).status, 0);
    let run = folder.isolde("watch --from h.txt --profile sim/snapshot-isolation --quiet");
    assert_eq!(run.status, 0, "{run:?}");
    assert!(run.stdout.contains("committed 500 "), "{run:?}");
    assert_eq!(folder.isolde("gen --transactions 10 -o untimed.txt").status, 0);
    let run = folder.isolde("watch --from untimed.txt --profile snapshot-isolation");
    assert_eq!(run.status, 3, "{run:?}");
    assert!(run.stderr.contains("expected a history with times"), "{run:?}");
}

/// A watch that listens, and where.
pub(crate) struct Listening {
    child: Child,
    pub(crate) address: String,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Listening {
    pub(crate) fn start(folder: &Folder, options: &str) -> Listening {
        let arguments = format!("watch --listen 0 --profile snapshot-isolation {options}");
        Listening::of(folder.command(&arguments))
    }

    /// The same by a command.
    pub(crate) fn of(mut command: Command) -> Listening {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        while !line.contains("listening on ") {
            line.clear();
            assert_ne!(stderr.read_line(&mut line).expect("text"), 0, "it listens");
        }
        let address = line.trim_end().rsplit(' ').next().expect("an address").to_owned();
        Listening { child, address, stderr }
    }

    /// Sends bytes and returns the answers.
    pub(crate) fn send(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        // What is refused early is not read to its end.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answers = String::new();
        let _ = stream.read_to_string(&mut answers);
        answers
    }

    /// What it printed, and how it ended.
    pub(crate) fn end(mut self) -> (i32, String, String) {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).expect("text");
        let output = self.child.wait_with_output().expect("it ends");
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        (output.status.code().expect("no signal"), printed, said)
    }
}

#[test]
fn a_listener_takes_what_it_can_read_and_says_what_it_cannot() {
    let folder = Folder::with(&[]);
    let listening = Listening::start(&folder, "--token secret --connections 3 --save saved.jsonl");
    let wrong = listening.send(b"{\"isolde\":\"trace 1\",\"token\":\"guess\"}\n");
    let refusal =
        "{\"error\":\"line 1: expected the token of this listener, found another or none\"}";
    assert!(wrong.starts_with(refusal), "{wrong}");
    let head = "{\"isolde\":\"trace 1\",\"token\":\"secret\",\"client\":\"c\"}\n";
    let begin = "{\"txn\":1,\"begin\":[1,2]}\n";
    let malformed = listening.send(format!("{head}{begin}nonsense\n").as_bytes());
    assert!(malformed.contains("line 3: expected a message of a trace, found `nonsense`"));
    assert!(malformed.ends_with("{\"taken\":2}\n"), "{malformed}");
    let cut = listening.send(format!("{head}{begin}{{\"txn\":1").as_bytes());
    assert!(cut.contains("expected its end, found the end of the connection"), "{cut}");
    let write = "{\"txn\":1,\"write\":[3,4],\"rows\":[[\"t\",1,7]]}\n";
    let taken = listening.send(format!("{head}{begin}{write}").as_bytes());
    assert!(taken.ends_with("{\"taken\":3}\n"), "{taken}");
    let (status, printed, said) = listening.end();
    // Nothing was committed.
    assert_eq!(status, 2, "{printed}{said}");
    assert!(printed.contains("streams with messages that cannot be read: 2"), "{printed}");
    assert!(printed.contains("connections turned away: 1"), "{printed}");
    assert!(printed.contains("unknown 3 "), "{printed}");
    assert!(said.contains("c ended within a transaction"), "{said}");
    let saved = folder.read("saved.jsonl");
    assert!(saved.contains("\"write\":[3,4],\"rows\":[[\"t\",1,7]]}"), "{saved}");
    let again = folder.isolde("watch --from saved.jsonl --profile snapshot-isolation --quiet");
    assert_eq!(again.status, 2, "{again:?}");
}

#[test]
fn the_client_library_is_understood() {
    let folder = Folder::with(&[]);
    let listening = Listening::start(&folder, "--token secret --connections 1");
    let trace = Trace::connect(&*listening.address, Some("secret")).expect("it listens");
    let mut one = trace.session("one").expect("a session");
    let mut two = trace.session("two").expect("a session");
    let row = |value: i64| [Row::new("t", 1).column("c").is(value)];
    for value in 1..=50 {
        let start = one.start();
        one.begun(start).expect("sent");
        one.wrote(one.start(), &row(value)).expect("sent");
        one.before_commit().expect("sent");
        one.committed(one.start()).expect("sent");
        let seen = if value == 50 { 49 } else { value };
        two.read(two.start(), &row(seen)).expect("sent");
        two.committed(two.start()).expect("sent");
    }
    drop((one, two));
    trace.finish().expect("all is acknowledged");
    let (status, printed, _) = listening.end();
    assert_eq!(status, 1, "{printed}");
    assert!(printed.contains("two, transaction 50, read 49 in t/1/c by operation 1"), "{printed}");
    assert!(printed.contains("committed 100 "), "{printed}");
    assert!(printed.contains("violations: stale-read 1\n"), "{printed}");
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
fn the_example_in_python_is_understood() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/trace.py");
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: no python3");
        return;
    }
    let folder = Folder::with(&[]);
    let listening = Listening::start(&folder, "--connections 1");
    let output = Command::new("python3").args([script, &listening.address]).output();
    let output = output.expect("python3 starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let (status, printed, _) = listening.end();
    assert_eq!(status, 0, "{printed}");
    assert!(printed.contains("committed 400 "), "{printed}");
    assert!(!printed.contains("stalled"), "{printed}");
}

#[test]
fn what_came_last_is_verified_although_the_connection_stays() {
    let folder = Folder::with(&[]);
    let mut listening = Listening::start(&folder, "--connections 1 --quiet");
    let mut stream = TcpStream::connect(&listening.address).expect("it listens");
    stream.write_all(STALE.as_bytes()).expect("it is read");
    let mut printed = BufReader::new(listening.child.stdout.take().expect("piped"));
    let mut line = String::new();
    printed.read_line(&mut line).expect("text");
    assert_eq!(line, "violation 1: stale-read (consistent-read)\n");
    drop(stream);
    let mut rest = String::new();
    printed.read_to_string(&mut rest).expect("text");
    assert!(rest.contains("violations: stale-read 1\n"), "{rest}");
    assert_eq!(listening.child.wait().expect("it ends").code(), Some(1));
}

#[test]
fn what_is_documented_is_told_apart_and_is_no_violation() {
    let profile = "reads = first-request\ndeviation = stale-read: it may lag\n";
    let folder = Folder::with(&[("stale.jsonl", STALE), ("ours.profile", profile)]);
    let run = folder
        .isolde("watch --from stale.jsonl --profile-file ours.profile --output found --quiet");
    assert_eq!(run.status, 0, "{run:?}");
    assert!(run.stdout.starts_with("documented deviation 1: stale-read (consistent-read)\n"));
    assert!(run.stdout.contains("the history around it is in found/deviation-1.txt"), "{run:?}");
    assert!(run.stdout.contains("documented deviations: stale-read 1\n  no violations\n"));
}

#[test]
fn what_has_no_effect_is_refused_with_a_sentence() {
    let folder = Folder::with(&[("stale.jsonl", STALE), ("empty.profile", "# nothing\n")]);
    for (arguments, message) in [
        (
            "--listen 0 --profile serializable --isolation serializable",
            "watch: --isolation has no effect with --listen: nothing is driven, the traces are as \
             sent\n",
        ),
        (
            "--from stale.jsonl --profile serializable --preset bank",
            "watch: an option of the workload has no effect with --from: nothing is driven, the \
             traces are as written\n",
        ),
        (
            "--from stale.jsonl --profile serializable --duration 3s",
            "watch: --duration has no effect with --from: the files end it\n",
        ),
        (
            "sqlite --preset SmallBank-balances --complete serializable",
            "watch: expected a workload of unique values for --complete, found one that repeats them\n",
        ),
        (
            "sqlite --slack 1s",
            "watch: --slack has no effect without --listen or --from: the clock of a driven \
             database is read\n",
        ),
        (
            "--from stale.jsonl --profile-file empty.profile",
            "watch: empty.profile: expected settings such as `reads = statement`, found none\n",
        ),
    ] {
        let run = folder.isolde(&format!("watch {arguments}"));
        assert_eq!((run.status, run.stderr), (3, format!("isolde: {message}")), "{arguments}");
    }
}

#[test]
fn a_watch_that_is_refused_leaves_the_events_of_the_last_one() {
    let folder = Folder::with(&[("saved.jsonl", "mine"), ("events.jsonl", "of the last one")]);
    let listen = "watch --listen 0 --profile snapshot-isolation --events events.jsonl --save";
    assert_eq!(folder.isolde(&format!("{listen} saved.jsonl")).status, 3);
    assert_eq!(folder.read("events.jsonl"), "of the last one");
    let packed = folder.isolde(&format!("{listen} new.jsonl.zst"));
    assert_eq!(packed.status, 3, "{packed:?}");
    assert!(packed.stderr.contains("expected --save without .zst or .gz"), "{packed:?}");
}

#[test]
fn the_help_lists_the_presets_that_it_speaks_of() {
    let run = Folder::with(&[]).isolde("watch --help");
    assert!(run.stdout.contains("\nPresets [default: MTC]:\n  "), "{run:?}");
    assert!(run.stdout.contains("\n  YCSB-A: "), "{run:?}");
    assert!(run.stdout.contains("\nExit status: 0 no violation"), "{run:?}");
}

#[test]
fn a_table_by_rows_and_by_columns_is_refused() {
    let mixed = STALE.replace("[\"accounts\",5,\"balance\",90]", "[\"accounts\",5,90]");
    let folder = Folder::with(&[("mixed.jsonl", &mixed)]);
    let run = folder.isolde("watch --from mixed.jsonl --profile serializable --quiet");
    assert_eq!(run.status, 3, "{run:?}");
    assert!(run.stderr.contains("expected table `accounts` by rows or by columns, found both"));
}

/// Of a flood, what the memory has room for is verified, and that it is not all is said.
#[test]
fn a_full_memory_is_said_and_ends_nothing() {
    use std::fmt::Write;
    let mut trace = String::from("{\"isolde\":\"trace 1\",\"client\":\"a\"}\n");
    for txn in 1..=30_000u64 {
        let time = txn * 10;
        let (begun, written) = (time + 1, time + 2);
        writeln!(trace, "{{\"txn\":{txn},\"write\":[{time},{begun}],\"rows\":[[\"t\",{txn},1]]}}")
            .expect("a string grows");
        writeln!(trace, "{{\"txn\":{txn},\"commit\":[{written},{}]}}", written + 1)
            .expect("a string grows");
    }
    let folder = Folder::with(&[("flood.jsonl", &trace)]);
    let run = folder.isolde("watch --from flood.jsonl --profile serializable --memory 1M");
    assert_eq!(run.status, 2, "{run:?}");
    let first = run.stdout.lines().next().expect("a summary");
    assert!(first.ends_with(" cells without room in the memory"), "{run:?}");
    assert!(run.stderr.contains("the memory is full: rows that were not seen before"), "{run:?}");
    assert!(run.stdout.contains("committed 30000 "), "{run:?}");
}

/// What was changed by a condition, and what was refused, is known from the log as it was known
/// while it happened.
#[test]
fn a_run_with_changes_by_condition_is_clean_again_from_its_log() {
    let folder = Folder::with(&[]);
    for (target, profile) in [
        ("sqlite", "sqlite/serializable"),
        ("sim://snapshot-isolation", "sim/snapshot-isolation"),
        ("sim://serializable", "sim/serializable"),
        ("sim://read-committed", "sim/read-committed"),
    ] {
        let log = profile.replace('/', "-");
        let run = folder.isolde(&format!(
            "watch {target} --preset predicate-deletes --keys 30 --transactions 1000 --log {log} \
             --quiet"
        ));
        assert_eq!(run.status, 0, "{target}: {run:?}");
        let again = folder.isolde(&format!("watch --from {log} --profile {profile} --quiet"));
        assert_eq!(again.status, 0, "{target}: {again:?}");
        assert!(again.stdout.contains("committed 1000 "), "{target}: {again:?}");
    }
}

/// Amounts repeat, so that a read may have many writers, and yet what was lost is found.
#[test]
fn applications_are_watched_with_the_amounts_that_they_compute() {
    let folder = Folder::with(&[]);
    for preset in ["SmallBank-balances", "TPC-C-balances"] {
        let options =
            format!("--preset {preset} --keys 20 --transactions 2000 --explain 0 --quiet");
        for target in ["sqlite", "sim://snapshot-isolation", "sim://serializable"] {
            let run = folder.isolde(&format!("watch {target} {options}"));
            assert_eq!(run.status, 0, "{preset} {target}: {run:?}");
        }
        let run = folder.isolde(&format!("watch sim://serializable?bug=lost-update {options}"));
        assert_eq!(run.status, 1, "{preset}: {run:?}");
        assert!(run.stdout.contains("lost-update "), "{preset}: {run:?}");
    }
}

/// A condition that is evaluated outside of the snapshot, or is not checked at the commit,
/// is found while the clients go on.
#[test]
fn bugs_of_conditions_are_found_while_they_happen() {
    let folder = Folder::with(&[]);
    for (bug, isolation, preset, name) in [
        ("phantom", "snapshot-isolation", "phantoms", "future-read"),
        ("predicate-many-preceders", "snapshot-isolation", "predicates", "future-read"),
        ("predicate-write-skew", "serializable", "phantoms", "serialization-cycle"),
    ] {
        let run = folder.isolde(&format!(
            "watch sim://{isolation}?bug={bug} --preset {preset} --transactions 1000 --explain 0 \
             --quiet"
        ));
        assert_eq!(run.status, 1, "{bug}: {run:?}");
        assert!(run.stdout.contains(&format!("{name} ")), "{bug}: {run:?}");
        let run = folder.isolde(&format!(
            "watch sim://{isolation} --preset {preset} --transactions 1000 --quiet"
        ));
        assert_eq!(run.status, 0, "{bug}: {run:?}");
    }
}

#[test]
fn a_page_and_metrics_tell_how_it_is_going() {
    let folder = Folder::with(&[]);
    let mut child = folder
        .command("watch sqlite --profile serializable --duration 4s --http 127.0.0.1:0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("http://") {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).expect("text"), 0, "it listens");
    }
    let address = line.trim_end().trim_end_matches('/').rsplit('/').next().expect("an address");
    let page = |path: &str| {
        let mut stream = TcpStream::connect(address).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        answer.split_once("\r\n\r\n").expect("a head").1.to_owned()
    };
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(page("/").contains("<script src=\"/watch.js\">"));
    assert!(page("/watch.js").contains("status.json"));
    let status: Value = serde_json::from_str(&page("/status.json")).expect("JSON");
    assert!(status["committed"].as_u64().expect("a number") > 0, "{status}");
    let metrics = page("/metrics");
    assert!(metrics.contains("isolde_transactions_total{outcome=\"committed\"} "), "{metrics}");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
}
