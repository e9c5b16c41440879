//! `isolde watch` and what is no fault of the database: clocks, connections that are cut, full disks.

#[cfg(unix)]
use crate::run_troubles::with_little_space;
use crate::support::Folder;
use crate::watch::Listening;
use isolde_client::{Row, Trace};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{SystemTime, UNIX_EPOCH};

/// The status, and what is printed, without what changes from run to run.
fn watched(trace: &str, options: &str) -> (i32, String, String) {
    let folder = Folder::with(&[("trace.jsonl", trace)]);
    let run = folder.isolde(&format!("watch --from trace.jsonl {options}"));
    (run.status, run.stdout, run.stderr)
}

#[test]
fn writes_of_one_tick_of_a_coarse_clock_are_all_there() {
    let trace = r#"{"isolde":"trace 1","client":"a","unit":"ms"}
{"client":"b"}
{"begin":[1,1],"txn":1}
{"write":[2,2],"txn":1,"rows":[["t",1,10]]}
{"write":[2,2],"txn":1,"rows":[["t",2,20]]}
{"commit":[3,3],"txn":1}
{"begin":[5,5],"txn":1,"client":"b"}
{"read":[6,6],"txn":1,"rows":[["t",1,10],["t",2,20]],"client":"b"}
{"commit":[8,8],"txn":1,"client":"b"}
{"bye":true}
"#;
    let (status, printed, _) = watched(trace, "--profile snapshot-isolation --initial absent");
    assert_eq!(status, 0, "{printed}");
    assert!(!printed.contains("events twice"), "{printed}");
}

#[test]
fn what_a_client_did_after_its_clock_was_set_back_is_not_stale() {
    let trace = r#"{"isolde":"trace 1","client":"a"}
{"client":"b"}
{"begin":[1000,1005],"txn":1}
{"write":[1010,1020],"txn":1,"rows":[["t",1,10]]}
{"commit":[1030,1040],"txn":1}
{"begin":[500,505],"txn":2}
{"write":[510,520],"txn":2,"rows":[["t",1,11]]}
{"commit":[530,540],"txn":2}
{"begin":[2000,2005],"txn":1,"client":"b"}
{"read":[2010,2020],"txn":1,"client":"b","rows":[["t",1,11]]}
{"commit":[2030,2040],"txn":1,"client":"b"}
{"bye":true}
"#;
    let (status, printed, _) = watched(trace, "--profile snapshot-isolation");
    assert_eq!(status, 0, "{printed}");
    assert!(printed.contains("  clocks set back: 1\n"), "{printed}");
    assert!(printed.contains("  events without a time since then: 6\n"), "{printed}");
}

const AHEAD: &str = r#"{"isolde":"trace 1","client":"a","unit":"us"}
{"client":"b"}
{"begin":[100,105],"txn":1,"client":"b"}
{"read":[110,120],"txn":1,"rows":[["t",1,10]],"client":"b"}
{"commit":[130,140],"txn":1,"client":"b"}
{"begin":[3000,3001],"txn":1}
{"write":[4001,4010],"txn":1,"rows":[["t",1,10]]}
{"commit":[5000,5010],"txn":1}
{"bye":true}
"#;

#[test]
fn a_value_that_is_read_before_it_is_written_tells_of_clocks() {
    let options = "--profile snapshot-isolation --initial absent --events events.jsonl";
    let folder = Folder::with(&[("trace.jsonl", AHEAD)]);
    let run = folder.isolde(&format!("watch --from trace.jsonl {options}"));
    assert_eq!(run.status, 2, "{run:?}");
    let told = "b, transaction 1, read 10 in t/1 by operation 1 (0.000010 s to 0.000020 s) before a, \
                transaction 1, wrote it (0.003901 s to 0.003910 s): their clocks are further apart \
                than --clock-drift says, and this is no violation; the least that explains it is \
                --clock-drift 3ms";
    assert!(run.stderr.contains(told), "{run:?}");
    assert!(run.stdout.contains("  values read before they were written: 1\n"), "{run:?}");
    assert!(run.stdout.contains("--clock-drift 3ms explains it\n"), "{run:?}");
    assert!(run.stdout.contains("  no violations\n"), "{run:?}");
    let events = folder.read("events.jsonl");
    let last: Value = serde_json::from_str(events.lines().last().expect("events")).expect("JSON");
    assert_eq!(last["clock_drift_needed_seconds"], 0.002_44);
    assert!(events.contains("\"event\":\"clocks\""), "{events}");
    let (status, printed, _) =
        watched(AHEAD, "--profile snapshot-isolation --initial absent --clock-drift 3ms");
    assert_eq!(status, 0, "{printed}");
}

/// A transfer of one client, as lines.
fn transfer(txn: i64) -> String {
    let at = txn * 100;
    format!(
        "{{\"begin\":[{at},{}],\"txn\":{txn}}}\n\
         {{\"write\":[{},{}],\"txn\":{txn},\"rows\":[[\"t\",1,{txn}]]}}\n\
         {{\"commit\":[{},{}],\"txn\":{txn}}}\n",
        at + 1,
        at + 2,
        at + 3,
        at + 4,
        at + 5
    )
}

#[test]
fn what_is_sent_again_after_a_cut_counts_once() {
    let folder = Folder::with(&[]);
    let listening = Listening::start(
        &folder,
        "--initial absent --connections 3 --quiet --events events.jsonl --save saved.jsonl",
    );
    let head = "{\"isolde\":\"trace 1\",\"client\":\"a\",\"resume\":\"one\"}\n";
    // Cut within a message, and nobody read what was acknowledged.
    listening.send(format!("{head}{}{}{{\"beg", transfer(1), transfer(2)).as_bytes());
    listening.send(format!("{head}{}{}", transfer(2), transfer(3)).as_bytes());
    let rest = format!("{head}{}{}{{\"bye\":true}}\n", transfer(3), transfer(4));
    let answers = listening.send(rest.as_bytes());
    assert!(answers.ends_with("{\"taken\":8}\n"), "{answers}");
    let (status, printed, said) = listening.end();
    assert_eq!(status, 0, "{printed}{said}");
    assert!(printed.contains("committed 4 "), "{printed}");
    assert!(printed.contains("clients 0 of 1\n"), "{printed}");
    let events = folder.read("events.jsonl");
    let last: Value = serde_json::from_str(events.lines().last().expect("events")).expect("JSON");
    assert_eq!(last["sent_again"], 6, "{last}");
    let again = folder.isolde("watch --from saved.jsonl --profile serializable --quiet");
    assert!(again.status == 0 && again.stdout.contains("committed 4 "), "{again:?}");
}

/// Hands on what it gets, but cuts the first connections after so many bytes, in which case
/// no answer comes back.
fn cutting_proxy(to: String, cuts: Vec<usize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        let mut cuts = cuts.into_iter();
        for connection in listener.incoming() {
            let (mut near, Ok(mut far)) =
                (connection.expect("a connection"), TcpStream::connect(&to))
            else {
                return;
            };
            let cut = cuts.next();
            if cut.is_none() {
                let (mut back, mut answers) =
                    (near.try_clone().expect("a socket"), far.try_clone().expect("a socket"));
                std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
            }
            let mut left = cut.unwrap_or(usize::MAX);
            let mut buffer = [0; 256];
            while let Ok(count @ 1..) = near.read(&mut buffer) {
                let count = count.min(left);
                if far.write_all(&buffer[..count]).is_err() {
                    break;
                }
                left -= count;
                if left == 0 {
                    let _ = near.shutdown(Shutdown::Both);
                    break;
                }
            }
            let _ = far.shutdown(Shutdown::Write);
        }
    });
    address
}

#[test]
fn the_client_library_goes_on_after_cuts() {
    let folder = Folder::with(&[]);
    let listening = Listening::start(&folder, "--initial absent --connections 3");
    let address = cutting_proxy(listening.address.clone(), vec![700, 1500]);
    let trace = Trace::connect(&*address, None).expect("it listens");
    let mut session = trace.session("one").expect("a session");
    for value in 1..=50 {
        session.begun(session.start()).expect("sent");
        session
            .read(session.start(), &[Row::new("t", 1).is(value - 1)][..1 - usize::from(value == 1)])
            .expect("sent");
        session.wrote(session.start(), &[Row::new("t", 1).is(value)]).expect("sent");
        session.before_commit().expect("sent");
        session.committed(session.start()).expect("sent");
    }
    drop(session);
    trace.finish().expect("all is acknowledged");
    let (status, printed, said) = listening.end();
    assert_eq!(status, 0, "{printed}{said}");
    assert!(printed.contains("committed 50 "), "{printed}");
}

/// Clients that come, do one transaction and leave, one after the other in each crowd.
#[test]
fn twenty_thousand_clients_that_left_take_no_memory_and_nobody_waits_for_them() {
    const CROWDS: u64 = 4;
    const CLIENTS: u64 = 20_000;
    let folder = Folder::with(&[]);
    let options =
        format!("--connections {CLIENTS} --stall-after 60s --events events.jsonl --quiet");
    let listening = Listening::start(&folder, &options);
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_nanos();
    std::thread::scope(|scope| {
        for crowd in 0..CROWDS {
            let listening = &listening;
            scope.spawn(move || {
                for number in 1..=CLIENTS / CROWDS {
                    let times: Vec<u128> = (0..6).map(|_| now()).collect();
                    let (last, next) = (number - 1, number);
                    let last = if last == 0 { "null".to_owned() } else { last.to_string() };
                    let message = format!(
                        "{{\"isolde\":\"trace 1\",\"client\":\"{crowd}-{number}\"}}\n\
                         {{\"txn\":1,\"read\":[{},{}],\"rows\":[[\"t\",{crowd},{last}]]}}\n\
                         {{\"txn\":1,\"write\":[{},{}],\"rows\":[[\"t\",{crowd},{next}]]}}\n\
                         {{\"txn\":1,\"commit\":[{},{}]}}\n{{\"bye\":true}}\n",
                        times[0], times[1], times[2], times[3], times[4], times[5]
                    );
                    let answers = listening.send(message.as_bytes());
                    assert!(answers.ends_with("{\"taken\":5}\n"), "{answers}");
                }
            });
        }
    });
    let (status, printed, said) = listening.end();
    assert_eq!(status, 0, "{printed}{said}");
    assert!(printed.contains("committed 20000 "), "{printed}");
    assert!(printed.contains("clients 0 of 20000\n"), "{printed}");
    assert!(!printed.contains("stalled"), "{printed}");
    let events = folder.read("events.jsonl");
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let number = |event: &Value, name: &str| event[name].as_f64().expect("a number");
    // The first quarter fills what is kept of names and buffers.
    let settled: Vec<Value> = events.filter(|event| number(event, "clients") >= 5000.0).collect();
    let memory = settled.iter().map(|event| number(event, "memory_bytes"));
    let (least, most) = (memory.clone().fold(f64::MAX, f64::min), memory.fold(0.0, f64::max));
    assert!(most < 1.2 * least + 4e6, "{least} to {most} bytes");
    let lag = settled.iter().map(|event| number(event, "lag_seconds")).fold(0.0, f64::max);
    assert!(lag < 10.0, "{lag} s behind");
}

/// A client that is silent holds up the others once, and not again whenever the room is full: with
/// little memory it is soon.
#[test]
fn a_flood_is_verified_although_another_client_stays_silent() {
    let folder = Folder::with(&[]);
    let listening = Listening::start(&folder, "--memory 1M --connections 1 --duration 60s");
    let mut silent = TcpStream::connect(&listening.address).expect("it listens");
    silent.write_all(b"{\"isolde\":\"trace 1\",\"client\":\"idle\"}\n").expect("it is read");
    let _ = silent.read(&mut [0; 100]).expect("it is taken");
    let flood: String = (1..=30_000).map(transfer).collect();
    let answers = listening.send(
        format!("{{\"isolde\":\"trace 1\",\"client\":\"a\",\"unit\":\"us\"}}\n{flood}").as_bytes(),
    );
    assert!(answers.contains("taken"), "{answers}");
    let (_, printed, said) = listening.end();
    assert_eq!(said.matches("idle holds up the others and is left behind").count(), 1, "{said}");
    assert!(printed.contains("committed 30000 "), "{printed}");
}

/// The status of a watch of two connections, the second with a stale read of another table, and
/// what it said.
fn stale_after(first: &str) -> (i32, String, String) {
    let folder = Folder::with(&[]);
    let listening = Listening::start(&folder, "--initial absent --connections 2");
    listening.send(format!("{{\"isolde\":\"trace 1\",\"client\":\"a\"}}\n{first}").as_bytes());
    let stale = r#"{"isolde":"trace 1","client":"b"}
{"client":"c"}
{"write":[10,11],"txn":1,"rows":[["u",5,10]]}
{"commit":[12,13],"txn":1}
{"write":[20,21],"txn":2,"rows":[["u",5,11]]}
{"commit":[22,23],"txn":2}
{"client":"c","read":[30,31],"txn":1,"rows":[["u",5,10]]}
{"client":"c","commit":[32,33],"txn":1}
{"bye":true}
"#;
    listening.send(stale.as_bytes());
    let (status, printed, said) = listening.end();
    assert_eq!(status == 1, printed.contains("stale-read"), "{printed}");
    (status, printed, said)
}

/// What it wrote was sent before its commit: nothing else may be its work.
#[test]
fn a_client_that_dies_in_a_transaction_hides_nothing_of_the_others() {
    let (status, _, said) = stale_after("{\"write\":[1,2],\"txn\":1,\"rows\":[[\"t\",1,1]]}\n");
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("a ended within a transaction"), "{said}");
}

/// That its transaction has no other end was counted, too, and so it had two.
#[test]
fn a_write_after_the_end_of_its_transaction_counts_once() {
    let trace = r#"{"isolde":"trace 1","client":"a"}
{"begin":[1000,1005],"txn":1}
{"write":[1010,1020],"txn":1,"rows":[["t",1,10]]}
{"commit":[1030,1040],"txn":1}
{"write":[1050,1060],"txn":1,"rows":[["t",1,11]]}
"#;
    for trace in [trace.to_owned(), format!("{trace}{{\"bye\":true}}\n")] {
        let (status, printed, said) = watched(&trace, "--profile snapshot-isolation");
        assert_eq!(status, 2, "{printed}");
        let first = "nothing was read; NOT VERIFIED: what came too late\n";
        assert!(printed.starts_with(first), "{printed}");
        assert!(printed.contains("events after the end of their transaction: 1\n"), "{printed}");
        assert_eq!(said, "");
    }
}

#[test]
fn a_file_of_no_known_format_is_refused_with_what_a_watch_takes() {
    let folder = Folder::with(&[("file", "\u{1}\u{2} nothing of this is known\n")]);
    let run = folder.isolde("watch --from file --profile snapshot-isolation");
    assert_eq!(run.status, 3, "{run:?}");
    assert!(run.stderr.contains("(watch takes traces, which begin with their head"), "{run:?}");
}

/// Nobody wrote it before the part that is saved, either.
#[test]
fn the_second_opinion_knows_no_writer_of_what_nobody_wrote() {
    let trace = r#"{"isolde":"trace 1","client":"a"}
{"write":[1,2],"txn":1,"rows":[["t",1,100]]}
{"commit":[3,4],"txn":1}
{"read":[10,11],"txn":2,"rows":[["t",1,101]]}
{"commit":[12,13],"txn":2}
{"bye":true}
"#;
    let (status, printed, _) = watched(trace, "--profile snapshot-isolation --initial absent");
    assert_eq!(status, 1, "{printed}");
    assert!(printed.contains("violation 1: unexplained-read"), "{printed}");
    let opinion = "second opinion on the 2 transactions around it: violated: ";
    assert!(printed.contains(opinion), "{printed}");
}

#[test]
fn what_a_history_of_changes_by_condition_leaves_open_is_counted_by_its_reason() {
    let history = "A@0..1..8..9: w(1,7)@2..3 u(key 1..2; 1=?; 2=nil)@4..5 w(1,8)@4..5
                   B@10..11..18..19: r(1,8)@12..13 r(2,nil)@12..13 r(3,nil)@14..15 r(1,?)@14..15\n";
    let folder = Folder::with(&[("history.txt", history)]);
    let run = folder.isolde("watch --from history.txt --profile snapshot-isolation");
    assert_eq!(run.status, 0, "{run:?}");
    let reasons = "  reads not checked, what they saw is not told: 1\n  \
                   rows to change not checked, what they held is not told: 1\n  \
                   rows not found not checked, rows are changed by condition: 2\n";
    assert!(run.stdout.contains(reasons), "{run:?}");
}

/// The summary praised what there was, as if nothing were missing.
#[cfg(unix)]
#[test]
fn a_full_disk_stands_in_the_summary_and_in_the_last_event() {
    let folder = Folder::with(&[]);
    let arguments = "watch sim://serializable --log history.log --duration 10m --events events";
    let run = with_little_space(&folder, 128, arguments);
    assert_eq!(run.status, 2, "{run:?}");
    let full = "cannot write the history: File too large (os error 27)";
    let line = run.stdout.lines().find(|line| line.starts_with("  ended early, after "));
    assert!(line.expect(&run.stdout).ends_with(&format!(" s: {full}")), "{run:?}");
    let events = folder.read("events");
    let last: Value = serde_json::from_str(events.lines().last().expect("events")).expect("JSON");
    assert_eq!((last["event"].as_str(), last["ended_by"].as_str()), (Some("end"), Some(full)));
}
