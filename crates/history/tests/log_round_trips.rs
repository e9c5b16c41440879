//! What a log format writes reads back as the same history, up to what it says is
//! lost; what it cannot say is refused.
#![allow(clippy::print_stdout, reason = "a skipped test must be seen")]

mod common;

use common::{Files, read, shape, shown, try_read, write};
use isolde_history::format::{self, ReadOptions, parse_text};
use isolde_history::{History, HistoryBuilder, Interval, OpKind, Outcome, Value};
use std::path::Path;

const ALL: [&str; 7] =
    ["plume", "dbcop-bincode", "dbcop-json", "dbcop-hist", "awdit", "cobra", "viper-json"];
const WITH_ABORTS: [&str; 4] = ["plume", "dbcop-bincode", "dbcop-json", "dbcop-hist"];

fn history(text: &str) -> History {
    try_read("dbcop-hist", &Files::one(text)).expect("valid")
}

fn round_trip(name: &str, history: &History) -> (History, Vec<String>) {
    let (files, losses) = write(name, history).unwrap_or_else(|error| panic!("{name}: {error}"));
    (read(name, &files), losses)
}

#[test]
fn committed_registers_survive_every_format() {
    let text = "[x:=1 y:=2] [x==1 x:=3]\n---\n[y==2 x==3]\n[z:=9 z==9 z:=10]\n";
    let original = history(text);
    for name in ALL {
        let (again, _) = round_trip(name, &original);
        assert_eq!(shape(&again), shape(&original), "{name}");
    }
}

#[test]
fn initial_reads_survive_every_format_that_has_an_initial_state() {
    let original = history("[x==? x:=1]\n---\n[x==? y==?]\n[x==1]\n");
    for name in ALL {
        let (again, losses) = round_trip(name, &original);
        let initial = "the initial state becomes a transaction in a session of its own, \
                       and every other one begins with a read of an added key that it wrote";
        if name == "awdit" {
            assert!(losses.contains(&initial.to_owned()), "{losses:?}");
        } else {
            assert_eq!(shape(&again), shape(&original), "{name}");
        }
    }
}

#[test]
fn aborted_transactions_survive_where_they_can() {
    let original = history("[x:=1]! [x:=2]\n---\n[x==1]\n[y:=3 y==3]!\n");
    for name in WITH_ABORTS {
        let (again, _) = round_trip(name, &original);
        assert_eq!(shape(&again), shape(&original), "{name}");
    }
    for name in ["awdit", "cobra", "viper-json"] {
        let refused = write(name, &original).expect_err("an aborted read");
        assert_eq!(
            refused,
            "transaction S2.1 read 1 of key x, which no committed transaction wrote: \
             this format would take it for something else"
        );
    }
}

#[test]
fn repeated_values_survive_every_format() {
    let original = history("[x:=1] [x:=2]\n---\n[x:=1] [x==1]\n");
    for name in ALL {
        let (again, _) = round_trip(name, &original);
        assert_eq!(shape(&again), shape(&original), "{name}");
    }
}

#[test]
fn numbers_stay_what_they_are() {
    let text = "w(7,5,3,10)\nr(7,5,4,20)\nr(8,0,4,20)\nw(9,9223372036854775807,4,-1)\n";
    let original = try_read("plume", &Files::one(text)).expect("valid");
    let (files, losses) = write("plume", &original).expect("expressible");
    let Files::One(bytes) = files else { panic!("one file") };
    assert_eq!(String::from_utf8_lossy(&bytes), text);
    assert_eq!(losses, [""; 0]);
}

#[test]
fn losses_are_those_of_the_history() {
    let named = history("[x:=1 y==?]\n");
    let expected: [(&str, &[&str]); 4] = [
        ("plume", &["initial values become 0", "keys are numbered from 0"]),
        ("dbcop-bincode", &["initial values become 0", "keys are numbered from 0"]),
        ("dbcop-json", &["keys are numbered from 0"]),
        ("dbcop-hist", &[]),
    ];
    for (name, losses) in expected {
        assert_eq!(round_trip(name, &named).1, losses, "{name}");
    }
}

/// A client that could be taken for the initial state is renumbered.
#[test]
fn plume_files_never_begin_with_a_false_initial_transaction() {
    let mut builder = HistoryBuilder::new();
    let zero = builder.values().unsigned(0);
    let one = builder.values().unsigned(1);
    let session = builder.session(zero);
    let txn = builder.begin(session);
    builder.label(txn, zero);
    let key = builder.key(one);
    builder.op(OpKind::Write, key, one);
    let original = builder.finish("test").expect("small");
    let (again, losses) = round_trip("plume", &original);
    assert_eq!(shown(&again), "init *=0\n0/1: w(1,1)\n");
    assert_eq!(losses, ["transactions are numbered from 1"]);
}

#[test]
fn unknown_transactions_are_written_if_somebody_saw_them() {
    let mut builder = HistoryBuilder::new();
    let [one, two, three] = [1, 2, 3].map(|number| builder.values().unsigned(number));
    let key = builder.key(one);
    let other = builder.key(two);
    let mut txn = |session: u64, outcome, ops: &[_]| {
        let label = builder.values().unsigned(session);
        let session = builder.session(label);
        let txn = builder.begin(session);
        builder.outcome(txn, outcome);
        for &(kind, key, value) in ops {
            builder.op(kind, key, value);
        }
    };
    txn(1, Outcome::Committed, &[(OpKind::Read, key, one)]);
    let chained = [(OpKind::Write, key, one), (OpKind::Read, other, two)];
    txn(2, Outcome::Unknown, &chained);
    txn(3, Outcome::Unknown, &[(OpKind::Write, other, two)]);
    txn(4, Outcome::Unknown, &[(OpKind::Write, other, three)]);
    let original = builder.finish("test").expect("small");
    for name in ALL {
        let (again, losses) = round_trip(name, &original);
        let outcomes = [Outcome::Committed; 3];
        assert_eq!(again.outcomes(), outcomes, "{name}");
        for expected in [
            "transactions of unknown outcome that nobody saw are left out",
            "transactions of unknown outcome that somebody saw are written as committed",
        ] {
            assert!(losses.contains(&expected.to_owned()), "{name}: {losses:?}");
        }
    }
}

/// The formats that refuse a history, and what they say.
fn refusals(text: &str) -> Vec<(&'static str, String)> {
    let history = parse_text(text).expect("valid");
    ALL.iter().filter_map(|&name| Some((name, write(name, &history).err()?))).collect()
}

/// Which of two writers was read is left open, and would be settled by writing.
#[test]
fn reads_that_may_be_of_an_unknown_writer_or_of_another_are_refused() {
    let message = "transaction A.1 read 1 of key x, that may be of transaction B, whose outcome \
                   is unknown, or of another: this format cannot leave it open";
    let all = ALL.map(|name| (name, message.to_owned()));
    assert_eq!(refusals("B: w(x,1) unknown\nA: r(x,1)\nA: w(x,1)\n"), all);
    assert_eq!(refusals("B: w(x,1) unknown\nA: r(x,1)\nA: w(x,2)\n"), []);
    // Another read settles that the transaction took effect.
    assert_eq!(refusals("B: w(x,1) w(y,1) unknown\nA: r(x,1) r(y,1)\nA: w(x,1)\n"), []);
}

#[test]
fn reads_that_may_be_of_an_aborted_writer_are_refused_where_it_is_left_out() {
    let message = "transaction B.1 read 1 of key x, which an aborted transaction wrote, too: \
                   this format cannot say that it may be its value";
    let some = ["awdit", "cobra", "viper-json"].map(|name| (name, message.to_owned()));
    assert_eq!(refusals("A: w(x,1) aborted\nB: r(x,1)\nB: w(x,1)\n"), some);
    assert_eq!(refusals("A: w(x,2) aborted\nB: r(x,1)\nB: w(x,1)\n"), []);
}

#[test]
fn reads_of_an_initial_value_that_was_written_are_refused_where_that_has_no_number() {
    let message = "transaction A.3 read 0 of key x, which it had at first and which was written, \
                   too: this format cannot say that it may be either";
    let some = ["dbcop-json", "dbcop-hist", "cobra"].map(|name| (name, message.to_owned()));
    assert_eq!(refusals("init *=0\nA: w(x,1)\nA: w(x,0)\nA: r(x,0)\n"), some);
    assert_eq!(refusals("init *=0\nA: w(x,1)\nA: w(x,0)\nA: r(x,1)\n"), []);
}

#[test]
fn nil_that_was_written_stays_one_of_two_versions_in_vipers_logs() {
    let text = "A: w(x,7)\nA: d(x,nil)\nA: r(x,nil)\n";
    let (again, _) = round_trip("viper-json", &parse_text(text).expect("valid"));
    assert_eq!(shown(&again), "init x=2\nJ1: w(x,1)\nJ1: w(x,2)\nJ1: r(x,2)\n");
}

#[test]
fn times_are_left_out_where_a_transaction_of_unknown_outcome_is_written() {
    let text = "A @1..2 : w(x,1) unknown\nB @5..6 : r(x,1)\n";
    let original = parse_text(text).expect("valid");
    for name in ["viper-json", "cobra"] {
        let (again, losses) = round_trip(name, &original);
        assert!(!again.has_times(), "{name}");
        let lost = "times of transactions, because one of unknown outcome has no end";
        assert!(losses.contains(&lost.to_owned()), "{name}: {losses:?}");
    }
}

#[test]
fn sessions_of_which_nothing_is_written_hide_no_format() {
    let text = "A: w(x,1) unknown\nB: w(x,2)\nC: r(x,2)\n";
    for name in ALL {
        let (again, _) = round_trip(name, &parse_text(text).expect("valid"));
        assert_eq!(again.txn_count(), 2, "{name}");
    }
    let (again, _) = round_trip("dbcop-json", &parse_text("A: w(x,1) unknown\n").expect("valid"));
    assert_eq!(again.txn_count(), 0);
    let under = Files::one("{\"n\": 1, \"data\": [[], [{\"events\": [], \"committed\": true}]]}");
    assert_eq!(read("dbcop-json", &under).txn_count(), 1);
}

#[test]
fn lists_are_refused_by_every_register_format() {
    let text = "1\n1 1 A 7 5\n";
    let lists = try_read("veristrong-list", &Files::one(text)).expect("valid");
    for name in ALL {
        assert_eq!(
            write(name, &lists).expect_err("a list"),
            "transaction T1 works on a list, and lists as registers would mean something else: \
             this format cannot say it"
        );
    }
}

#[test]
fn ranges_and_replaced_rows_survive_in_vipers_logs_alone() {
    let log = r#"{"value":[["w",1,10,true],["d",1,-11,10,false,true],["r",1,-11,true]]}
{"value":[["range",1,"nil",[{"id":3,"sk":3,"val":30}],[{"id":1,"sk":1,"val":-11}]],["r",2,"nil",false]]}
{"value":[["i",5,7,"nil",false,true]]}
"#;
    let original = read("viper-json", &Files::many(&[("J1.log", log.as_bytes())]));
    let (again, losses) = round_trip("viper-json", &original);
    assert_eq!(shown(&again), shown(&original));
    assert_eq!(losses, [""; 0]);
    assert_eq!(
        write("plume", &original).expect_err("a range"),
        "transaction J1.2 has a read by condition: this format cannot say it"
    );
}

fn timed() -> History {
    let mut builder = HistoryBuilder::new();
    let one = builder.values().unsigned(1);
    let key = builder.key(one);
    let session = builder.session(one);
    for start in [5_000_000, 9_000_000] {
        let txn = builder.begin(session);
        let completed = start + 2_000_000;
        let interval = Interval { invoked: start, completed };
        builder.interval(txn, interval);
        builder.op(OpKind::Read, key, Value::NIL);
    }
    builder.finish("test").expect("small")
}

/// The same with begins that were over when the commit was asked for.
fn told_apart() -> History {
    let text = "A @5000000..5500000..6000000..7000000: r(x,nil)\n\
                A @9000000..9500000..10000000..11000000: r(x,nil)\n";
    parse_text(text).expect("valid")
}

#[test]
fn times_survive_in_vipers_logs_and_beginnings_in_cobras() {
    let original = timed();
    let intervals = |history: &History| -> Vec<Interval> {
        history.txns().map(|txn| history.txn_interval(txn)).collect()
    };
    let (again, losses) = round_trip("viper-json", &original);
    assert_eq!(intervals(&again), intervals(&original));
    assert_eq!(losses, [""; 0]);
    let (_, losses) = round_trip("cobra", &original);
    let lost = "times of transactions, because begins and commits are not told apart";
    assert!(losses.contains(&lost.to_owned()), "{losses:?}");
    let (again, losses) = round_trip("cobra", &told_apart());
    let begun: Vec<_> = intervals(&again).iter().map(|interval| interval.invoked).collect();
    assert_eq!(begun, [5_000_000, 9_000_000]);
    let expected = "times are rounded to milliseconds, and the end of a transaction is its \
                    client's next begin";
    assert!(losses.contains(&expected.to_owned()), "{losses:?}");
    let (_, losses) = round_trip("plume", &original);
    assert!(losses.contains(&"times of transactions".to_owned()), "{losses:?}");
}

#[test]
fn declared_initial_values_survive_in_vipers_logs() {
    let text = "w(1,7,0,0)\nw(2,8,0,0)\nr(1,7,1,1)\nw(2,1,1,1)\n";
    let original = try_read("plume", &Files::one(text)).expect("valid");
    let (again, _) = round_trip("viper-json", &original);
    assert_eq!(shown(&again), "init 1=7\ninit 2=8\nJ1: r(1,7) w(2,1)\n");
    let (again, losses) = round_trip("plume", &original);
    assert_eq!(shown(&again), "init *=0\n1/1: r(1,0) w(2,1)\n");
    assert_eq!(losses, ["initial values become 0"]);
}

/// Real histories, among them some with aborted transactions and aborted reads.
#[test]
fn real_histories_survive() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    if !Path::new(data).exists() {
        println!("skipped: no ../shared/data");
        return;
    }
    let paths = [
        "polysi/violations/galera.txt",
        "polysi/violations/yugabyte.txt",
        "polysi/violations/dgraph/history.bincode",
        "isovista/dgraph_si.txt",
        "mtc/long-fork.txt",
        "awdit/causal/generated/l100e1000sqrt.txt",
        "cobra/violations/cock-G2",
        "cobra/valid/rubis-10000",
        "dbcop/roachdb_all_writes/12_30_20_720/hist-00068/history.bincode",
        "veristrong/duplicates/20_100_15_5000_0.5_r_1_0.5_100/hist-00000/history.bincode",
    ];
    let mut trips = 0;
    for path in paths {
        let input = format::open(&Path::new(data).join(path)).expect("readable");
        let (original, _) = format::read_detected(input, ReadOptions::default()).expect("valid");
        let aborts = original.outcomes().contains(&Outcome::Aborted);
        for name in ALL {
            if name == "awdit" || (aborts && !WITH_ABORTS.contains(&name)) {
                continue;
            }
            let (again, losses) = round_trip(name, &original);
            let merged = "aborted transactions that follow one another become one";
            if !losses.iter().any(|loss| loss == merged) {
                assert!(shape(&again) == shape(&original), "{path} in {name}");
                trips += 1;
            }
        }
    }
    println!("{trips} round trips of {} real histories", paths.len());
}
