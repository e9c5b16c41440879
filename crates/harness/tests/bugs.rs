//! Every bug of the simulated database is found under its name, and nothing is found
//! where there is none.
//!
//! `ISOLDE_SEEDS=100` tries more seeds than the usual few.

use isolde::{Anomaly, Level, Limits, Options, Verdict, check, explain};
use isolde_harness::{
    Aborts, BUGS, Bug, BugRow, Distribution, Isolation, Parameters, Times, TxnKind, generate,
};
use isolde_history::{History, Index};

const BASE: Parameters = Parameters {
    sessions: 8,
    transactions: 1000,
    operations: 4,
    read_share: 0.5,
    keys: 5,
    distribution: Distribution::Uniform,
    kind: TxnKind::MiniTransaction,
    isolation: Isolation::Serializable,
    times: Times::Transactions,
    aborts: Aborts::Recorded,
    bug: None,
    anomaly: None,
    seed: 1,
};

fn seeds(few: u64) -> std::ops::Range<u64> {
    let wanted = std::env::var("ISOLDE_SEEDS").ok().and_then(|text| text.parse().ok());
    0..wanted.unwrap_or(few)
}

fn anomalies(history: &History, level: Level) -> Option<Vec<Anomaly>> {
    let verdicts = check(history, &Index::new(history), &[level], &Limits::NONE);
    match verdicts.into_iter().next().expect("a verdict").1 {
        Verdict::Violated(violated) => Some(violated.anomalies),
        Verdict::Satisfied(_) => None,
        Verdict::Unknown(unknown) => panic!("{unknown}"),
    }
}

/// What the history with a bug shows at the level that the bug violates.
fn names(row: &BugRow, seed: u64) -> Vec<&'static str> {
    // Serializability refuses most transactions that write after reading wrongly.
    let isolation = if row.bug.fits(Isolation::SnapshotIsolation) {
        Isolation::SnapshotIsolation
    } else {
        Isolation::Serializable
    };
    // Mini-transactions have room for all of them, but seldom read two keys that matter.
    let kind = match row.bug {
        Bug::NonMonotonicRead | Bug::FracturedRead | Bug::CausalityViolation => TxnKind::Mixed,
        _ => TxnKind::MiniTransaction,
    };
    let transactions = row.found_within;
    let parameters = Parameters { bug: Some(row.bug), transactions, isolation, kind, seed, ..BASE };
    let history = generate(&parameters).expect("a history");
    let level = Level::parse(row.violates).expect("a level");
    let found = anomalies(&history, level).unwrap_or_default();
    let mut names: Vec<_> = found.iter().map(|anomaly| anomaly.kind.name()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Conditions and inserts take presets of their own.
fn of_registers() -> impl Iterator<Item = &'static BugRow> {
    BUGS.iter().filter(|row| !row.bug.is_of_rows())
}

#[test]
fn every_bug_is_found_under_its_name() {
    let mut wrong = Vec::new();
    for row in of_registers() {
        for seed in seeds(5) {
            let names = names(row, seed);
            if names.is_empty() || !names.iter().all(|name| row.shows.contains(name)) {
                wrong.push(format!("{} seed {seed}: {names:?}", row.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// At every level that can have it, with all that the database tells about itself.
#[test]
fn every_bug_of_rows_is_found_under_its_name() {
    let mut wrong = Vec::new();
    for row in BUGS.iter().filter(|row| row.bug.is_of_rows()) {
        let workload = if row.bug == Bug::LostInsert { "inserts" } else { "phantoms" };
        let preset = isolde_harness::preset(workload).expect("a preset").parameters;
        let level = Level::parse(row.violates).expect("a level");
        for isolation in Isolation::ALL.into_iter().filter(|&it| row.bug.fits(it)) {
            for seed in seeds(3) {
                let transactions = row.found_within;
                let parameters =
                    Parameters { bug: Some(row.bug), transactions, isolation, seed, ..preset };
                let history = generate(&parameters).expect("a history");
                let found = anomalies(&history, level).unwrap_or_default();
                let is_named = |found: &Anomaly| row.shows.contains(&found.kind.name());
                if found.is_empty() || !found.iter().all(is_named) {
                    wrong.push(format!("{} {} seed {seed}", row.name, isolation.name()));
                }
                // What cannot be told in short is told as it was found.
                let told = explained(&history, level).filter(|name| !row.shows.contains(name));
                wrong.extend(told.map(|name| format!("{} seed {seed} told as {name}", row.name)));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Skewed keys as `isolde gen` has them if nothing is said.
#[test]
fn what_is_fractured_does_not_vanish() {
    let distribution = Distribution::Zipf { theta: 0.5 };
    let isolation = Isolation::SnapshotIsolation;
    for seed in seeds(5) {
        let bug = Some(Bug::FracturedRead);
        let kind = TxnKind::Mixed;
        let parameters = Parameters { bug, distribution, isolation, kind, seed, ..BASE };
        let history = generate(&parameters).expect("a history");
        assert_eq!(anomalies(&history, Level::MonotonicAtomicView), None, "seed {seed}");
    }
}

#[test]
fn without_a_bug_nothing_is_found() {
    for isolation in Isolation::ALL {
        let level = match isolation {
            Isolation::SnapshotIsolation => Level::StrongSnapshotIsolation,
            Isolation::Serializable => Level::StrictSerializable,
            other => Level::parse(other.name()).expect("a level"),
        };
        for seed in seeds(100) {
            let parameters = Parameters { isolation, seed, ..BASE };
            let history = generate(&parameters).expect("a history");
            assert_eq!(anomalies(&history, level), None, "{} seed {seed}", isolation.name());
        }
    }
}

/// What the level below the one that a bug violates says, where the lattice has one.
#[test]
fn weaker_levels_do_not_see_the_bug() {
    use Isolation::{Serializable, SnapshotIsolation};
    for (bug, isolation, level) in [
        (Bug::NonRepeatableRead, SnapshotIsolation, Level::AdyaReadCommitted),
        (Bug::NonMonotonicRead, SnapshotIsolation, Level::AdyaReadCommitted),
        (Bug::FracturedRead, SnapshotIsolation, Level::MonotonicAtomicView),
        (Bug::CausalityViolation, SnapshotIsolation, Level::ReadCommitted),
        (Bug::LongFork, SnapshotIsolation, Level::ParallelSnapshotIsolation),
        (Bug::WriteSkew, Serializable, Level::StrongSnapshotIsolation),
        (Bug::StaleSnapshot, Serializable, Level::SessionSerializable),
        (Bug::SessionGuaranteeViolation, Serializable, Level::Serializable),
    ] {
        for seed in seeds(3) {
            let history = generate(&Parameters { bug: Some(bug), isolation, seed, ..BASE })
                .expect("a history");
            let found = anomalies(&history, level);
            assert_eq!(found, None, "{} seed {seed}", bug.row().name);
        }
    }
}

#[test]
fn one_seed_is_one_history() {
    for row in of_registers() {
        let parameters = Parameters { bug: Some(row.bug), transactions: 200, ..BASE };
        let text = || isolde_history::format::to_text(&generate(&parameters).expect("a history"));
        assert_eq!(text(), text(), "{}", row.name);
    }
}

#[test]
fn a_bug_that_a_level_cannot_have_is_refused() {
    let refused = |bug, isolation, kind| {
        let parameters = Parameters { bug: Some(bug), isolation, kind, ..BASE };
        generate(&parameters).expect_err("no such history").to_string()
    };
    assert_eq!(
        refused(Bug::WriteSkew, Isolation::SnapshotIsolation, TxnKind::Mixed),
        "expected serializable for a database with write-skew, found snapshot-isolation"
    );
    assert_eq!(
        refused(Bug::LostUpdate, Isolation::Serializable, TxnKind::ListAppend),
        "expected a workload of registers for lost-update, found one of lists"
    );
}

#[test]
fn a_bug_that_no_transaction_of_a_workload_can_show_is_refused() {
    let refused = |bug, kind| {
        let parameters = Parameters { bug: Some(bug), kind, keys: 30, ..BASE };
        generate(&parameters).err().map(|error| error.to_string())
    };
    // Mixed transactions use each key once.
    let once = [
        Bug::FutureRead,
        Bug::NotMyLastWrite,
        Bug::NotMyOwnWrite,
        Bug::IntermediateRead,
        Bug::NonRepeatableRead,
        Bug::LostUpdate,
    ];
    for row in of_registers() {
        let is_refused = refused(row.bug, TxnKind::Mixed).is_some();
        assert_eq!(is_refused, once.contains(&row.bug), "{}", row.name);
        assert_eq!(refused(row.bug, TxnKind::MiniTransaction), None, "{}", row.name);
    }
    assert_eq!(
        refused(Bug::LostUpdate, TxnKind::Mixed).as_deref(),
        Some(
            "expected a workload whose transactions read a key and then write it for lost-update, \
             found none in 4096 of them: take `--workload mini --sessions 8 --keys 5 \
             --distribution uniform`"
        )
    );
    for bug in [Bug::WriteSkew, Bug::CausalityViolation] {
        assert!(refused(bug, TxnKind::BlindWrite).is_some(), "{bug:?}");
    }
    assert_eq!(refused(Bug::FutureRead, TxnKind::ReadModifyWrite), None);
    assert!(refused(Bug::NonRepeatableRead, TxnKind::ReadModifyWrite).is_some());
}

/// What the counterexample of a violation is called.
fn explained(history: &History, level: Level) -> Option<&'static str> {
    let (index, options) = (Index::new(history), Options::default());
    let verdicts = check(history, &index, &[level], &Limits::NONE);
    let Verdict::Violated(violated) = &verdicts.first()?.1 else { return None };
    let told = explain((history, &index), level, violated, options, &Limits::NONE)?;
    Some(told.anomaly.kind.name())
}

/// Clients that write few keys often read what the other one wrote, and a smaller part without
/// that read was told as a cycle of things that were missed.
#[test]
fn a_long_fork_on_skewed_keys_is_explained_as_one() {
    for distribution in [Distribution::Zipf { theta: 0.9 }, Distribution::Exponential] {
        for seed in seeds(8) {
            let parameters = Parameters {
                transactions: 3000,
                isolation: Isolation::SnapshotIsolation,
                bug: Some(Bug::LongFork),
                distribution,
                seed,
                ..BASE
            };
            let history = generate(&parameters).expect("a history");
            let told = explained(&history, Level::SnapshotIsolation);
            // A reader may also have seen half of the transaction that its snapshot misses.
            let is_told = matches!(told, None | Some("long-fork" | "read-skew"));
            assert!(is_told, "{distribution:?} seed {seed}: {told:?}");
        }
    }
}
