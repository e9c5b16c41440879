//! Each mechanism on the smallest trace that it forbids, beside the nearest that it allows.

use crate::notation::{OPTIONS, lines, parse, told, verify, verify_stepwise};
use isolde_checker::online::{
    Batch, Cell, Certifier, ClientId, Dml, Locks, NEVER, Name, Options, Profile, Reads, Time,
    Unchecked, Verifier, Writers, from_history,
};
use isolde_history::format;
use std::path::Path;

const STATEMENT: Profile = Profile { reads: Reads::Statement, ..Profile::NONE };
const SNAPSHOT: Profile =
    Profile { reads: Reads::Begin, writers: Writers::FirstUpdater, ..Profile::NONE };

#[track_caller]
fn check(profile: Profile, trace: &str, expected: &str) {
    let batch = parse(trace);
    let expected = lines(expected);
    assert_eq!(told(&verify(&batch, profile)), expected);
    let stepwise = verify_stepwise(&batch, profile);
    assert_eq!(stepwise.is_empty(), expected.is_empty(), "{}", told(&stepwise));
}

#[test]
fn a_replaced_version_is_stale() {
    let trace = "A1 w 0-1 x=1
                 A1 c 2-3
                 B1 w 4-5 x=2
                 B1 c 6-7
                 C1 r 8-9 x=1
                 C1 c 10-11";
    check(
        STATEMENT,
        trace,
        "stale-read C1.1 WroteWhatWasRead A1.1 EndOfWriter A1.2 Replaced B1.1 EndOfReplacer B1.2",
    );
    check(Profile { staleness: 2, ..STATEMENT }, trace, "");
    check(STATEMENT, &trace.replace("C1 r 8-9", "C1 r 7-9"), "");
}

#[test]
fn a_commit_that_overlaps_the_read_may_be_seen_or_not() {
    for seen in ["1", "2"] {
        let trace = format!(
            "A1 w 0-1 x=1
             A1 c 2-3
             B1 w 4-5 x=2
             C1 r 6-9 x={seen}
             B1 c 7-8"
        );
        check(STATEMENT, &trace, "");
    }
}

#[test]
fn what_was_read_tells_where_the_next_read_stands() {
    let trace = "B1 w 0-1 x=2 y=2
                 C1 b 5-9
                 B1 c 6-8
                 C1 r 10-11 x=2
                 C1 r 12-13 y=_
                 C1 c 14-15";
    check(SNAPSHOT, trace, "read-skew C1.2 Snapshot C1.0");
    check(SNAPSHOT, &trace.replace("x=2\n                 C1 r", "x=_\n                 C1 r"), "");
}

#[test]
fn uncommitted_aborted_and_intermediate_writes_are_not_seen() {
    check(
        STATEMENT,
        "A1 w 0-1 x=1\nB1 r 2-3 x=1\nA1 c 4-5",
        "dirty-read B1.1 WroteWhatWasRead A1.1 EndOfWriter A1.2",
    );
    check(
        STATEMENT,
        "A1 w 0-1 x=1\nA1 a 2-3\nB1 r 4-5 x=1",
        "aborted-read B1.1 WroteWhatWasRead A1.1",
    );
    check(
        STATEMENT,
        "A1 w 0-1 x=1\nA1 w 2-3 x=2\nA1 c 4-5\nB1 r 6-7 x=1",
        "intermediate-read B1.1 WroteWhatWasRead A1.1",
    );
    check(STATEMENT, "B1 r 6-7 x=1", "unexplained-read B1.1");
    check(STATEMENT, "A1 w 0-1 x=1\nA1 r 2-3 x=_", "own-write-missed A1.2 Replaced A1.1");
    check(STATEMENT, "A1 r 0-1 x=1\nA1 w 2-3 x=1", "future-read A1.1 WroteWhatWasRead A1.2");
}

#[test]
fn a_commit_without_an_answer_may_be_seen_from_then_on_and_not_again_unseen() {
    check(STATEMENT, "A1 w 0-1 x=1\nA1 ? 2-\nB1 r 4-5 x=1", "");
    check(STATEMENT, "A1 w 0-1 x=1\nA1 ? 2-\nB1 r 4-5 x=_", "");
    check(STATEMENT, "A1 w 0-1 x=1\nA1 ? 2-\nB1 r 4-5 x=_\nB1 r 6-7 x=1", "");
    let unseen = "A1 w 0-1 x=1\nA1 ? 2-\nB1 r 4-5 x=1\nB1 r 6-7 x=_";
    check(STATEMENT, unseen, "stale-read B1.2 Replaced A1.1 EndOfReplacer A1.2");
}

#[test]
fn locks_exclude_or_order() {
    let locks = Profile { locks: Locks::Writes, ..Profile::NONE };
    let trace = "A1 w 0-1 x=1
                 B1 w 2-3 x=2
                 A1 c 4-5
                 B1 c 6-7";
    check(locks, trace, "lock-violation B1.1 OtherLock A1.1 EndOfOther A1.2");
    check(locks, &trace.replace("B1 w 2-3", "B1 w 2-4"), "");
    check(
        locks,
        &trace.replace("A1 w", "A1 l"),
        "lock-violation B1.1 OtherLock A1.1 EndOfOther A1.2",
    );
    check(locks, &trace.replace("A1 w", "A1 r"), "");
    let reads = Profile { locks: Locks::ReadsAndWrites, ..Profile::NONE };
    check(
        reads,
        &trace.replace("A1 w", "A1 r"),
        "lock-violation B1.1 OtherLock A1.1 EndOfOther A1.2",
    );
}

/// Commits overlap, but B waited for A's lock: from then on B's version is the last.
#[test]
fn an_order_of_locks_decides_what_a_later_read_must_see() {
    let profile = Profile { locks: Locks::Writes, ..STATEMENT };
    let trace = "A1 w 0-1 x=1
                 B1 w 2-6 x=2
                 A1 c 4-9
                 B1 c 7-8
                 C1 r 10-11 x=1";
    check(STATEMENT, trace, "");
    check(profile, trace, "stale-read C1.1 WroteWhatWasRead A1.1 Replaced B1.1");
}

#[test]
fn of_two_concurrent_updaters_one_is_refused() {
    let trace = "A1 b 0-1
                 B1 b 2-3
                 A1 w 4-5 x=1
                 A1 c 6-7
                 B1 w 8-9 x=2
                 B1 c 10-11";
    check(SNAPSHOT, trace, "lost-update B1.1 OtherWrite A1.1 EndOfOther A1.2 Snapshot B1.0");
    check(SNAPSHOT, &trace.replace("B1 c", "B1 a"), "");
    check(SNAPSHOT, &trace.replace("B1 b 2-3", "B1 b 2-6"), "");
    check(STATEMENT, trace, "");
}

/// Where rows are written as they are, the other column is read as of the write.
#[test]
fn a_row_that_was_written_as_it_is_is_read_as_of_the_write() {
    let trace = "A1 w 0-1 x.a=1 x.b=1
                 A1 c 2-3
                 B1 r 4-5 x.b=1
                 C1 w 6-7 x.b=2
                 C1 c 8-9
                 B1 w 10-11 x.a=5
                 B1 r 12-13 x.b=2
                 B1 c 14-15";
    let current = Profile {
        reads: Reads::FirstRead,
        dml: Dml::Current,
        locks: Locks::Writes,
        ..Profile::NONE
    };
    check(current, trace, "");
    check(
        Profile { dml: Dml::Snapshot, ..current },
        trace,
        "future-read B1.3 Snapshot B1.1 WroteWhatWasRead C1.1 EndOfWriter C1.2",
    );
}

const SKEW: &str = "A1 b 0-1
                    B1 b 2-3
                    A1 r 4-5 x=_
                    B1 r 6-7 y=_
                    A1 w 8-9 y=1
                    B1 w 10-11 x=1
                    A1 c 12-13
                    B1 c 14-15";

#[test]
fn write_skew_is_a_cycle_a_dangerous_structure_and_fails_validation() {
    let certified = |certifier| Profile { certifier, ..SNAPSHOT };
    check(certified(Certifier::None), SKEW, "");
    check(certified(Certifier::Cycles), SKEW, "serialization-cycle B1.3 Next A1.3");
    let both = "failed-validation B1.3 Next A1.3\nserialization-cycle B1.3 Next A1.3";
    let structure = "serialization-cycle B1.3 Next A1.3";
    check(certified(Certifier::DangerousStructure), SKEW, structure);
    let found = told(&verify(&parse(SKEW), certified(Certifier::Validation)));
    assert!(found == format!("{both}\n") || found == format!("{structure}\n"), "{found}");
}

/// A → B → C, no cycle: B could have come between. The database must refuse it all the same,
/// unless A only reads and began before C committed.
#[test]
fn a_dangerous_structure_without_a_cycle_is_found() {
    let trace = "A1 b 0-1
                 B1 b 2-3
                 C1 b 4-5
                 B1 r 6-7 z=_
                 C1 w 8-9 z=1
                 C1 c 10-11
                 A1 r 12-13 y=_
                 A1 w 14-15 a=1
                 B1 w 16-17 y=1
                 B1 c 18-19
                 A1 c 20-21";
    let profile = Profile { certifier: Certifier::DangerousStructure, ..SNAPSHOT };
    check(profile, trace, "dangerous-structure A1.3 Next B1.3 Next C1.2");
    check(profile, &trace.replace("A1 w 14-15 a=1", ""), "");
    check(Profile { certifier: Certifier::Cycles, ..profile }, trace, "");
}

/// C sees what B wrote and not what A did, although A was over before B began.
#[test]
fn what_depends_on_a_later_transaction_has_no_timestamp() {
    let trace = "C1 b 0-1
                 A1 w 2-3 x=1
                 A1 c 4-5
                 B1 w 6-7 y=1
                 B1 c 8-9
                 C1 r 10-11 y=1
                 C1 r 12-13 x=_
                 C1 c 14-15";
    let profile = |certifier| Profile { certifier, reads: Reads::Window, ..Profile::NONE };
    check(profile(Certifier::Cycles), trace, "");
    check(profile(Certifier::TimestampOrder), trace, "timestamp-inversion C1.3 Next A1.2");
    check(Profile { skew: 1, ..profile(Certifier::TimestampOrder) }, trace, "");
}

/// B reads at 8 to 9 what A sends at 15 and commits at 17: with clocks that are 4 apart it may
/// have been so.
#[test]
fn a_value_that_is_read_before_it_is_sent_is_a_contradiction_of_clocks() {
    let trace = parse("B1 r 8-9 x=1\nB1 c 10-11\nA1 w 15-16 x=1\nA1 c 17-18");
    let found = |drift: Time, is_stepwise: bool| {
        let mut verifier = Verifier::new(STATEMENT, Options { drift, ..OPTIONS });
        let mut one = Batch::default();
        for event in trace.events.iter().filter(|_| is_stepwise) {
            one.clear();
            one.push(*event, trace.cells_of(event));
            verifier.take(&one, event.interval.invoked);
        }
        if !is_stepwise {
            verifier.take(&trace, NEVER);
        }
        verifier.finish();
        let found = verifier.take_contradictions();
        let clients = found.iter().map(|found| (found.read.client.0, found.write.client.0));
        let drifts = found.iter().map(|found| found.drift);
        let both: Vec<_> = clients.zip(drifts).collect();
        (both, told(&verifier.take_findings()))
    };
    for is_stepwise in [false, true] {
        assert_eq!(found(0, is_stepwise), (vec![((1, 0), 4)], String::new()));
        assert_eq!(found(2, is_stepwise), (vec![((1, 0), 4)], String::new()));
        assert_eq!(found(4, is_stepwise), (vec![], String::new()));
    }
}

#[test]
fn a_value_of_its_own_future_or_of_nobody_is_no_contradiction_of_clocks() {
    check(
        STATEMENT,
        "B1 r 8-9 x=1\nB1 c 10-11\nB2 w 15-16 x=1\nB2 c 17-18",
        "dirty-read B1.1 WroteWhatWasRead B2.1 EndOfWriter B2.2",
    );
    check(
        STATEMENT,
        "B1 r 8-9 x=1\nB1 c 10-11\nA1 w 15-16 x=2\nA1 c 17-18",
        "unexplained-read B1.1",
    );
}

#[test]
fn drift_widens_every_interval() {
    let trace = parse("A1 w 0-1 x=1\nA1 c 2-3\nB1 w 4-5 x=2\nB1 c 6-7\nC1 r 9-10 x=1\nC1 c 12-13");
    let findings = |drift: Time| {
        let mut verifier = Verifier::new(STATEMENT, Options { drift, ..OPTIONS });
        verifier.take(&trace, NEVER);
        verifier.finish();
        verifier.take_findings().len()
    };
    assert_eq!([findings(0), findings(1)], [1, 0]);
}

#[test]
fn what_a_client_that_is_set_aside_may_have_written_is_not_held_against_anybody() {
    let mut verifier = Verifier::new(STATEMENT, OPTIONS);
    verifier.take(&parse("A1 w 0-1 x=1\nB1 b 0-1"), 2);
    verifier.set_aside(ClientId(0));
    verifier.take(&parse("B1 r 10-11 x=9\nB1 r 12-13 x=1"), 20);
    assert_eq!(verifier.take_findings(), []);
    assert_eq!(
        verifier.counters().unchecked,
        Unchecked { events_missing: 2, ..Unchecked::default() }
    );
    verifier.readmit(ClientId(0));
    verifier.take(&parse("B1 r 20-21 x=1\nB1 r 22-23 x=9"), 30);
    verifier.finish();
    assert_eq!(told(&verifier.take_findings()), "unexplained-read B1.4\n");
}

#[test]
fn events_that_contradict_their_transaction_are_counted() {
    let mut verifier = Verifier::new(STATEMENT, OPTIONS);
    verifier.take(&parse("A1 w 0-1 x=1\nA1 c 2-3\nA1 w 4-5 x=7\nA2 b 6-7\nA3 b 8-9"), 10);
    verifier.take(&parse("A3 r 5-6 x=7"), 20);
    verifier.finish();
    let disorder = verifier.counters().disorder;
    assert_eq!((disorder.after_end, disorder.unended, disorder.late), (1, 1, 1));
    assert_eq!(verifier.take_findings(), []);
}

#[test]
fn without_an_initial_state_first_reads_are_taken_for_it() {
    let options = Options { unwritten: None, ..OPTIONS };
    let mut verifier = Verifier::new(STATEMENT, options);
    verifier.take(&parse("A1 r 0-1 x=5\nA1 r 2-3 x=5\nA1 r 4-5 x=6"), NEVER);
    verifier.finish();
    assert_eq!(told(&verifier.take_findings()), "unexplained-read A1.3\n");
    assert_eq!(verifier.counters().unchecked, Unchecked { first: 1, ..Unchecked::default() });
}

/// One round of a long run: each client replaces what it wrote in the round before.
fn round(number: i64) -> Batch {
    let mut batch = Batch::default();
    for client in 0..4_u8 {
        let (name, now) = (char::from(b'A' + client), number * 100 + i64::from(client) * 10);
        let seen = if number == 0 { "_".to_owned() } else { (number - 1).to_string() };
        let [a, b, c, d, e, f, g] = [1, 2, 3, 4, 5, 6, 7].map(|later| now + later);
        let own = parse(&format!(
            "{name}{number} b {now}-{a}
             {name}{number} r {b}-{c} x={seen}
             {name}{number} w {d}-{e} x={number}
             {name}{number} c {f}-{g}"
        ));
        for event in &own.events {
            let item = u32::from(client);
            let cells = own.cells_of(event).iter();
            let cells: Vec<Cell> = cells.map(|cell| Cell { item, row: item, ..*cell }).collect();
            batch.push(*event, &cells);
        }
    }
    batch
}

#[test]
fn memory_follows_what_is_open_and_not_what_has_passed() {
    for certifier in [Certifier::None, Certifier::Cycles, Certifier::Validation] {
        let profile = Profile { certifier, locks: Locks::Writes, ..SNAPSHOT };
        let mut verifier = Verifier::new(profile, OPTIONS);
        let mut most = [0; 4];
        for number in 0..2000 {
            verifier.take(&round(number), number * 100 + 99);
            let now = verifier.counters();
            let kept = [now.versions, now.txns, now.row_uses, now.graph_edges];
            most = std::array::from_fn(|place| kept[place].max(most[place]));
        }
        verifier.finish();
        assert_eq!(told(&verifier.take_findings()), "", "{certifier:?}");
        let limits = [24, 12, 12, 24];
        assert!((0..4).all(|place| most[place] <= limits[place]), "{certifier:?}: {most:?}");
    }
}

/// One transaction waits while others pass, after a request or for the answer to one, so that
/// nothing of theirs can be given up: each read by condition looked at all of it, and a watch
/// of SQLite was minutes behind. When it ends, all of theirs is given up at once.
#[test]
fn what_an_operation_costs_does_not_grow_with_what_is_kept() {
    let profile =
        Profile { reads: Reads::FirstRequest, certifier: Certifier::Cycles, ..Profile::NONE };
    let cost = |txns: i64, waiting: &str| {
        let mut trace = waiting.replace("LATE", &(txns * 10 + 9).to_string()) + "\n";
        for number in 1..=txns {
            let (client, at) = (if number % 2 == 0 { "A" } else { "B" }, number * 10);
            let (item, value) = (number % 20, number * 7 + number % 3);
            let events = [
                format!("{client}{number} w {}-{} a{item}={value}", at + 1, at + 2),
                format!("{client}{number} w {}-{} b{item}={value}", at + 2, at + 3),
                format!("{client}{number} r {}-{} *%7=5", at + 3, at + 4),
                format!("{client}{number} c {}-{}\n", at + 5, at + 6),
            ];
            trace += &events.join("\n");
        }
        let mut verifier = Verifier::new(profile, OPTIONS);
        verifier.take(&parse(&trace), txns * 10 + 10);
        let end = txns * 10 + 20;
        verifier.take(&parse(&format!("Z1 c {end}-{}", end + 1)), NEVER);
        verifier.finish();
        let counters = verifier.counters();
        assert_eq!(told(&verifier.take_findings()), "");
        counters.looked_at / counters.operations
    };
    for waiting in ["Z1 r 0-1 a0=_", "Z1 r 0-LATE a0=_"] {
        let (few, many) = (cost(1000, waiting), cost(4000, waiting));
        assert!(many < few + few / 4, "{few} for each operation among 1000, {many} among 4000");
    }
}

/// Rows that do not meet a condition cost it nothing: from 8192 rows on, none was checked.
#[test]
fn a_row_that_a_condition_misses_is_found_among_many() {
    let profile = Profile { reads: Reads::FirstRequest, ..Profile::NONE };
    let rows: Vec<String> = (0..9000).map(|row| format!("a{row}={}", row * 7)).collect();
    let rows = rows.join(" ");
    let trace = format!(
        "A1 w 0-1 {rows} x=5 y=12
         A1 c 2-3
         B1 r 10-11 *%7=5 x=5 y=12
         B1 c 12-13
         C1 r 20-21 *%7=5 y=12
         C1 c 22-23"
    );
    check(profile, &trace, "missed-row C1.1 Snapshot C1.1");
}

/// The second of two updates is not read: no cycle, and yet no placement explains it
/// [Li et al., ICDE 2024, §VI-F].
#[test]
fn the_inconsistent_read_of_the_paper_is_found_though_nothing_forms_a_cycle() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../corpus/papers/leopard/section-6f-inconsistent-read.txt");
    let input = format::open(&path).expect("the corpus");
    let (history, _) =
        format::read_detected(input, format::ReadOptions::default()).expect("a history");
    let traced = from_history(&history).expect("times");
    let options = Options { unwritten: Some(traced.unwritten), ..OPTIONS };
    for profile in [STATEMENT, Profile { certifier: Certifier::Cycles, ..SNAPSHOT }] {
        let mut verifier = Verifier::new(profile, options);
        traced.initial.iter().for_each(|&cell| verifier.initial(cell));
        verifier.take(&traced.batch, NEVER);
        verifier.finish();
        let names: Vec<Name> =
            verifier.take_findings().iter().map(|finding| finding.name).collect();
        assert_eq!(names, [Name::StaleRead]);
    }
    let mut verifier = Verifier::new(
        Profile { reads: Reads::Unchecked, certifier: Certifier::Cycles, ..Profile::NONE },
        options,
    );
    verifier.take(&traced.batch, NEVER);
    verifier.finish();
    assert_eq!(verifier.take_findings(), []);
}

/// A row that is inserted where another was deleted is a new row: PostgreSQL lets its
/// inserter go on, although the deletion is not in its snapshot.
#[test]
fn an_insert_after_a_delete_is_no_second_update() {
    let profile = Profile {
        reads: Reads::FirstRequest,
        locks: Locks::Writes,
        writers: Writers::FirstUpdater,
        ..Profile::NONE
    };
    let trace = "A1 w 0-1 x=1
                 A1 c 2-3
                 B1 r 10-11 y=_
                 C1 w 12-13 x=_
                 C1 c 14-15
                 B1 w 16-17 x=2
                 B1 c 18-19";
    let found = "lost-update B1.2 OtherWrite C1.1 EndOfOther C1.2 Snapshot B1.1";
    check(profile, trace, "");
    check(profile, &trace.replace("x=_", "x=3"), found);
    // Where keys decide, it is.
    check(Profile { writers: Writers::FirstCommitter, ..profile }, trace, found);
    // Somebody else may have deleted the row in between.
    let twice = "A1 w 0-1 x=1
                 A1 c 2-3
                 B1 r 10-11 y=_
                 C1 w 12-13 x=3
                 C1 c 14-15
                 D1 w 16-17 x=_
                 D1 c 18-19
                 B1 w 20-21 x=2
                 B1 c 22-23";
    check(profile, twice, "");
    check(profile, &twice.replace("x=_", "x=4").replace("D1 c", "D1 a"), found);
}

/// The snapshot still has the old row of a key that the transaction has inserted anew:
/// PostgreSQL shows both.
#[test]
fn beside_an_inserted_row_the_deleted_one_may_be_seen() {
    let trace = "A1 w 0-1 x=1
                 A1 c 2-3
                 B1 b 10-11
                 C1 w 12-13 x=_
                 C1 c 14-15
                 B1 w 16-17 x=2
                 B1 r 18-19 x=1 x=2
                 B1 c 20-21";
    check(SNAPSHOT, trace, "");
    let missed = "own-write-missed B1.2 Replaced B1.1";
    check(SNAPSHOT, &trace.replace("x=1 x=2", "x=7"), missed);
    check(SNAPSHOT, &trace.replace("C1 c", "C1 a"), missed);
}

/// `TPC-C-balances` on MariaDB wrote a stock that somebody had just brought to the same number,
/// and was accused of not seeing its own write.
#[test]
fn a_write_of_what_is_there_already_need_not_be_seen() {
    let profile = Profile {
        reads: Reads::FirstRead,
        dml: Dml::Current,
        locks: Locks::Writes,
        ..Profile::NONE
    };
    let trace = "A1 w 0-1 x=93
                 A1 c 2-3
                 B1 r 4-5 x=93
                 C1 w 6-7 x=91
                 C1 c 8-9
                 B1 w 10-11 x=91
                 B1 r 12-13 x=93
                 B1 c 14-15";
    check(profile, trace, "");
    check(profile, &trace.replace("B1 r 12-13 x=93", "B1 r 12-13 x=91"), "");
    check(profile, &trace.replace("B1 r 12-13 x=93", "B1 r 12-13 *%7=0"), "");
    let missed = "own-write-missed B1.3 Replaced B1.2";
    check(profile, &trace.replace("B1 w 10-11 x=91", "B1 w 10-11 x=92"), missed);
    check(profile, &trace.replace("B1 r 12-13 x=93", "B1 r 12-13 x=90"), missed);
    check(profile, &trace.replace("B1 r 12", "B1 l 12"), missed);
    check(Profile { dml: Dml::Snapshot, ..profile }, trace, missed);
    let twice = trace.replace("B1 w 10-11 x=91", "B1 w 10-10 x=92\nB1 w 11-11 x=91");
    check(profile, &twice, "own-write-missed B1.4 Replaced B1.3");
}

#[test]
fn what_is_documented_is_reported_and_tells_nothing() {
    let profile = Profile {
        reads: Reads::FirstRead,
        locks: Locks::Writes,
        writers: Writers::Reported,
        ..Profile::NONE
    };
    let trace = "B1 r 0-1 x=_
                 A1 w 2-3 x=1
                 A1 c 4-5
                 B1 w 6-7 x=2
                 B1 c 8-9";
    check(profile, trace, "lost-update B1.2 OtherWrite A1.1 EndOfOther A1.2 Snapshot B1.1");
    check(Profile { writers: Writers::Any, ..profile }, trace, "");
    check(profile, &trace.replace("B1 r 0-1", "B1 r 0-4"), "");
}

#[test]
fn a_row_that_meets_the_condition_is_listed() {
    let trace = "A1 w 0-1 x=3 y=4
                 A1 c 2-3
                 B1 r 4-5 x=3 *%7=3
                 B1 c 6-7";
    check(STATEMENT, trace, "");
    check(STATEMENT, &trace.replace("x=3 *", "*"), "missed-row B1.1");
    check(STATEMENT, &trace.replace("x=3 *", "*").replace("4-5", "3-5"), "");
    check(
        STATEMENT,
        "A1 w 0-1 x=3\nA1 r 2-3 *%7=3\nA1 c 4-5",
        "own-write-missed A1.2 Replaced A1.1",
    );
}

/// Neither found the row that the other inserted, and both wrote.
#[test]
fn rows_that_a_condition_did_not_find_are_certified() {
    let profile =
        Profile { reads: Reads::Begin, certifier: Certifier::Validation, ..Profile::NONE };
    let trace = "A1 b 0-1
                 B1 b 0-1
                 A1 r 2-3 *%7=3
                 B1 w 4-5 x=3
                 B1 c 6-7
                 A1 w 8-9 y=3
                 A1 c 10-11";
    check(profile, trace, "failed-validation A1.3 Next B1.2");
    check(profile, &trace.replace("x=3", "x=4"), "");
    check(profile, &trace.replace("A1 w 8-9 y=3", "A1 r 8-9 y=_"), "");
    let cycles = Profile { certifier: Certifier::Cycles, ..profile };
    let skew = trace.replace("B1 w 4-5", "B1 r 2-3 *%7=3\nB1 w 4-5");
    check(cycles, trace, "");
    check(cycles, &skew, "serialization-cycle A1.3 Next B1.3");
}
