//! `isolde watch --listen` and those who mean it no good, and machines that have run out of
//! something: acknowledgements stay true, and what was not verified is said.

use crate::support::Folder;
use crate::watch::Listening;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A transaction as lines.
fn transfer(txn: u64) -> String {
    of_row(1, txn)
}

/// The same of another row.
fn of_row(row: u64, txn: u64) -> String {
    let at = txn * 100;
    format!(
        "{{\"write\":[{at},{}],\"txn\":{txn},\"rows\":[[\"t\",{row},{txn}]]}}\n\
         {{\"commit\":[{},{}],\"txn\":{txn}}}\n",
        at + 1,
        at + 2,
        at + 3
    )
}

/// The number in the last answer that says that something was taken.
fn acknowledged(answers: &str) -> u64 {
    let taken = answers.lines().rev().find_map(|line| line.strip_prefix("{\"taken\":"));
    taken.map_or(0, |line| line.trim_end_matches('}').parse().expect("a number"))
}

/// The watch said that it could not save, and then acknowledged what it had not saved.
#[cfg(unix)]
#[test]
fn nothing_is_acknowledged_that_a_full_disk_has_no_room_for() {
    let folder = Folder::with(&[]);
    let watch = folder.command(
        "watch --listen 0 --profile snapshot-isolation --save saved.jsonl --duration 60s --quiet",
    );
    let mut limited = Command::new("/bin/sh");
    limited.arg("-c").arg("ulimit -f 64; trap '' XFSZ; exec \"$0\" \"$@\"");
    limited.arg(watch.get_program()).args(watch.get_args()).current_dir(folder.path("."));
    let listening = Listening::of(limited);
    // What was sent before is in the file, and what comes after the failure is not taken.
    let head = |client: &str| format!("{{\"isolde\":\"trace 1\",\"client\":\"{client}\"}}\n");
    let early = listening.send(format!("{}{}", head("early"), transfer(1)).as_bytes());
    let mut stream = TcpStream::connect(&listening.address).expect("it listens");
    stream.write_all(head("late").as_bytes()).expect("sent");
    for txn in 1..3000 {
        if stream.write_all(of_row(2, txn).as_bytes()).is_err() {
            break;
        }
    }
    let mut late = String::new();
    let _ = stream.read_to_string(&mut late);
    let (status, printed, said) = listening.end();
    assert_eq!(status, 2, "{printed}{said}");
    assert!(said.contains("cannot save the trace to saved.jsonl: File too large"), "{said}");
    assert!(printed.contains("  ended early, after "), "{printed}");
    if let Some(place) = late.find("\"error\"") {
        assert!(!late[place..].contains("taken"), "{late}");
    }
    let saved = folder.read("saved.jsonl");
    let count = |client: &str| saved.lines().filter(|line| line.contains(client)).count() as u64;
    assert_eq!(acknowledged(&early), 3);
    assert!(count("early #") >= 2, "{saved}");
    // The head of the stream is acknowledged, too.
    assert!(acknowledged(&late) <= count("late #") + 1, "{} of {late}", count("late #"));
    // It ends with a whole message.
    assert!(saved.ends_with("}\n"), "{saved}");
    let again = folder.isolde("watch --from saved.jsonl --profile snapshot-isolation --quiet");
    assert!(!again.stdout.contains("violations:"), "{again:?}");
}

/// What was on its way is thrown away by the system, and others may have read what it wrote.
#[test]
fn a_connection_that_is_reset_is_not_one_that_ended() {
    let folder = Folder::with(&[]);
    let listening =
        Listening::start(&folder, "--initial absent --connections 2 --save saved.jsonl");
    let mut stream = TcpStream::connect(&listening.address).expect("it listens");
    let head = |client: &str| format!("{{\"isolde\":\"trace 1\",\"client\":\"{client}\"}}\n");
    stream.write_all(format!("{}{}", head("a"), transfer(1)).as_bytes()).expect("sent");
    // It is left with an answer that nobody has read.
    stream.peek(&mut [0]).expect("an answer");
    drop(stream);
    let read = "{\"read\":[900,901],\"txn\":1,\"rows\":[[\"t\",2,77]]}\n{\"commit\":[902,903],\"txn\":1}\n";
    listening.send(format!("{}{read}{{\"bye\":true}}\n", head("b")).as_bytes());
    let (status, printed, said) = listening.end();
    assert_eq!(status, 2, "{printed}{said}");
    let first = "0 of 1 reads verified; NOT VERIFIED: the rest of 1 stream\n";
    assert!(printed.contains(first), "{printed}");
    // The file says the same.
    let again =
        folder.isolde("watch --from saved.jsonl --profile snapshot-isolation --initial absent");
    assert_eq!(again.status, 2, "{again:?}");
    assert!(again.stdout.contains(first), "{again:?}");
}

/// What two connections sent, of which the first is read to where it makes no sense.
fn after(bad: &str, good: &str) -> (i32, String, String) {
    let folder = Folder::with(&[]);
    let listening = Listening::start(&folder, "--initial absent --connections 2");
    listening.send(format!("{{\"isolde\":\"trace 1\",\"client\":\"bad\"}}\n{bad}").as_bytes());
    listening.send(format!("{{\"isolde\":\"trace 1\",\"client\":\"good\"}}\n{good}").as_bytes());
    listening.end()
}

const STALE: &str = r#"{"write":[10,11],"txn":1,"rows":[["u",5,10]]}
{"commit":[12,13],"txn":1}
{"write":[20,21],"txn":2,"rows":[["u",5,11]]}
{"commit":[22,23],"txn":2}
{"client":"c","read":[30,31],"txn":1,"rows":[["u",5,10]]}
{"client":"c","commit":[32,33],"txn":1}
{"bye":true}
"#;

/// One connection with garbage made all reads unchecked, and the status was 0.
#[test]
fn one_bad_client_blinds_nobody_to_what_others_alone_explain() {
    for bad in ["garbage\n", "{\"write\":[1,2],\"txn\":1,\"ro"] {
        let (status, printed, said) = after(bad, STALE);
        assert_eq!(status, 1, "{bad}: {printed}{said}");
        assert!(printed.contains("violations: stale-read 1\n"), "{bad}: {printed}");
    }
}

#[test]
fn what_was_not_verified_gives_status_2_and_stands_in_the_first_line() {
    let bad = "{\"write\":[1,2],\"txn\":1,\"rows\":[[\"u\",5,9]]}\n{\"commit\":[3,4],\"txn\":1}\ngarbage\n";
    let (status, printed, said) = after(bad, STALE);
    assert_eq!(status, 2, "{printed}{said}");
    let first = "0 of 1 reads verified; NOT VERIFIED: the rest of 1 stream\n";
    assert!(printed.contains(first), "{printed}");
    assert!(printed.contains("reads not checked, events of a client were missing: 1\n"));
    // Nothing was read that it may have changed, but what it would have told is missing.
    let (status, printed, _) = after(
        "garbage\n",
        &STALE.replace("10]]}\n{\"client\":\"c\",\"commit", "11]]}\n{\"client\":\"c\",\"commit"),
    );
    assert_eq!(status, 2, "{printed}");
    assert!(
        printed.starts_with("all 1 reads verified; NOT VERIFIED: the rest of 1 stream\n"),
        "{printed}"
    );
}

#[test]
fn silent_connections_keep_nobody_out() {
    let folder = Folder::with(&[]);
    let listening = Listening::start(&folder, "--token secret --initial absent --connections 1");
    let silent: Vec<TcpStream> =
        (0..400).map(|_| TcpStream::connect(&listening.address).expect("it listens")).collect();
    let started = Instant::now();
    let head = "{\"isolde\":\"trace 1\",\"client\":\"a\",\"token\":\"secret\"}\n";
    let answers = listening.send(format!("{head}{}{{\"bye\":true}}\n", transfer(1)).as_bytes());
    assert!(answers.ends_with("{\"taken\":4}\n"), "{answers}");
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    drop(silent);
    let (status, printed, said) = listening.end();
    assert_eq!(status, 0, "{printed}{said}");
}

#[test]
fn a_head_has_to_come_soon_and_to_be_short() {
    let folder = Folder::with(&[]);
    let listening = Listening::start(&folder, "--initial absent --connections 1");
    let mut silent = TcpStream::connect(&listening.address).expect("it listens");
    silent.write_all(b"{\"isolde\":").expect("sent");
    let long = listening.send(&vec![b' '; 1 << 20]);
    assert!(long.contains("{\"error\":\"expected the head in the first 8192 bytes\"}"), "{long}");
    let mut answer = String::new();
    let _ = silent.read_to_string(&mut answer);
    assert!(answer.contains("expected the head within 5 s"), "{answer}");
    let good = "{\"isolde\":\"trace 1\",\"client\":\"a\"}\n";
    listening.send(format!("{good}{}{{\"bye\":true}}\n", transfer(1)).as_bytes());
    let (status, printed, _) = listening.end();
    assert_eq!(status, 0, "{printed}");
    assert!(printed.contains("connections turned away: 2\n"), "{printed}");
}

/// The direction of text that follows was turned by what a client called itself.
#[test]
fn no_name_turns_the_direction_of_what_is_printed() {
    let folder = Folder::with(&[]);
    let trace = "{\"isolde\":\"trace 1\",\"client\":\"\u{202e}evil\"}\n\
                 {\"write\":[1,2],\"txn\":1,\"rows\":[[\"\u{2066}t\",\"\u{200f}k\",\"\u{202e}v\"]]}\n\
                 {\"commit\":[3,4],\"txn\":1}\n\
                 {\"read\":[5,6],\"txn\":2,\"rows\":[[\"\u{2066}t\",\"\u{200f}k\",\"\u{202e}w\"]]}\n\
                 {\"commit\":[7,8],\"txn\":2}\n";
    let broken = format!("{trace}\u{202e}garbage\n");
    let options = "--profile snapshot-isolation --initial absent --events - --output found";
    for text in [trace, &broken] {
        folder.write("trace.jsonl", text.as_bytes());
        for options in [options, &options.replace("--events - ", "")] {
            let run = folder.isolde(&format!("watch --from trace.jsonl {options}"));
            assert!(matches!(run.status, 1 | 3), "{run:?}");
            for printed in [&run.stdout, &run.stderr] {
                let is_hidden =
                    |letter: char| !isolde_history::is_visible(letter) && letter != '\n';
                assert!(!printed.contains(is_hidden), "{printed:?}");
            }
        }
    }
}

/// Whether the program can be run as somebody who has no other processes.
#[cfg(target_os = "linux")]
fn limited(threads: u32, arguments: &str) -> Option<Command> {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    // The limit does not hold for root, and counts all that a user runs.
    const NOBODY_ELSE: u32 = 61_243;
    let id = Command::new("id").arg("-u").output().ok()?;
    if id.stdout.trim_ascii() != b"0" || Command::new("prlimit").arg("-V").output().is_err() {
        return None;
    }
    let program = std::env::temp_dir().join(format!("isolde-limited-{}", std::process::id()));
    if !program.exists() {
        std::fs::copy(env!("CARGO_BIN_EXE_isolde"), &program).ok()?;
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).ok()?;
    }
    let place = std::env::temp_dir();
    let mut command = Command::new("prlimit");
    command.arg(format!("--nproc={threads}")).arg(program).args(arguments.split_whitespace());
    command.current_dir(place).uid(NOBODY_ELSE).gid(NOBODY_ELSE);
    Some(command)
}

/// It panicked while clients were still told that their events were taken.
#[cfg(target_os = "linux")]
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
fn threads_that_cannot_be_started_end_in_sentences() {
    let watch = "watch --listen 0 --profile snapshot-isolation --initial absent --duration 60s";
    let mut listened = 0;
    for threads in 1..=8 {
        let Some(mut command) = limited(threads, watch) else {
            eprintln!("skipped: not root, or no prlimit");
            return;
        };
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().expect("prlimit starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let (mut said, mut address) = (String::new(), None);
        while address.is_none() && stderr.read_line(&mut said).expect("text") > 0 {
            let place = said.split("listening on ").nth(1);
            address = place.map(|place| place.trim_end().to_owned());
        }
        let mut connections = Vec::new();
        if let Some(address) = &address {
            listened += 1;
            connections = (0..12).filter_map(|_| TcpStream::connect(address).ok()).collect();
            std::thread::sleep(Duration::from_millis(500));
            let id = child.id().to_string();
            assert!(
                Command::new("/bin/kill").args(["-INT", &id]).status().expect("kill").success()
            );
        }
        let _ = stderr.read_to_string(&mut said);
        let output = child.wait_with_output().expect("it ends");
        drop(connections);
        assert!(!said.contains("panicked"), "{threads}: {said}");
        let status = output.status.code();
        assert!(matches!(status, Some(2 | 3)), "{threads}: {status:?} {said}");
        let refusals = ["the system refuses another thread", "cannot start threads"];
        let is_refused = refusals.iter().any(|text| said.contains(text));
        assert!(is_refused || (status == Some(2) && threads > 4), "{threads}: {said}");
    }
    let program = std::env::temp_dir().join(format!("isolde-limited-{}", std::process::id()));
    let _ = std::fs::remove_file(program);
    assert!(listened > 0, "with no limit did it listen");
}
