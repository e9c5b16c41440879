//! A search that meets too many contradictions can be given up, and then says so.

use isolde_checker::{Check, Level, Limit, Limits, Options, Sources, Stage, Unknown, Verdict};
use isolde_harness::{Anomaly, Distribution, Isolation, Parameters, generate, preset};
use isolde_history::Index;
use isolde_history::format::parse_text;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

#[test]
fn a_search_that_is_given_up_leaves_the_level_unknown() {
    // Blind writes without snapshots: the order of versions is a puzzle.
    let parameters = Parameters {
        isolation: Isolation::ReadAtomic,
        transactions: 800,
        keys: 1_200,
        ..preset("BlindW-RW").expect("a preset of this name").parameters
    };
    let history = generate(&parameters).expect("valid parameters");
    let index = Index::new(&history);
    let decide = |conflicts_max| {
        let options = Options { conflicts_max, ..Options::default() };
        let mut check = Check::new(&history, &index, &Limits::NONE).with_options(options);
        check.decide(Level::ParallelSnapshotIsolation)
    };
    assert_ne!(decide(None).name(), "unknown");
    // Looking for what is wrong with an order is work too, and comes before contradictions.
    assert_eq!(decide(Some(1)), Verdict::Unknown(Unknown::Limit(Limit::Work)));
}

/// Readers of a causal store saw so much that no snapshot shows that looking for an order of a
/// stronger level took minutes, which a few contradictions make needless.
#[test]
fn what_is_far_from_a_stronger_level_is_refuted_before_that_is_tried() {
    let parameters = Parameters {
        isolation: Isolation::Causal,
        transactions: 5_000,
        seed: 3,
        ..preset("BlindW-RW").expect("a preset of this name").parameters
    };
    let history = generate(&parameters).expect("valid parameters");
    let index = Index::new(&history);
    // Whoever searches asks now and then whether to go on: here some forty times.
    let asked = AtomicUsize::new(0);
    let stop = || asked.fetch_add(1, Relaxed) > 1_000;
    let limits = Limits { stop: &stop, ..Limits::NONE };
    let verdict = Check::new(&history, &index, &limits).decide(Level::ParallelSnapshotIsolation);
    assert_eq!(verdict.name(), "violated");
}

#[test]
fn what_lacks_little_of_a_stronger_level_is_not_searched_for() {
    // Every hundredth transaction is part of a write skew, and one long fork is hidden.
    let parameters = Parameters {
        isolation: Isolation::SnapshotIsolation,
        transactions: 20_000,
        anomaly: Some(Anomaly::LongFork),
        ..preset("PolySI").expect("a preset of this name").parameters
    };
    let history = generate(&parameters).expect("valid parameters");
    let index = Index::new(&history);
    let options = Options { conflicts_max: Some(1), ..Options::default() };
    let mut check = Check::new(&history, &index, &Limits::NONE).with_options(options);
    assert_eq!(check.decide(Level::SnapshotIsolation).name(), "violated");
    assert_eq!(check.decide(Level::ParallelSnapshotIsolation).name(), "satisfied");
}

#[test]
fn what_lacks_little_of_a_stronger_level_is_found_without_sessions() {
    let parameters = Parameters {
        isolation: Isolation::SnapshotIsolation,
        transactions: 10_000,
        anomaly: Some(Anomaly::LongFork),
        ..preset("PolySI").expect("a preset of this name").parameters
    };
    let history = generate(&parameters).expect("valid parameters");
    let index = Index::new(&history);
    let sources = Sources { session: false, ..Sources::ALL };
    // The search itself would be given up: what it begins with is all that it needs.
    let options = Options { sources, conflicts_max: Some(1), ..Options::default() };
    let mut check = Check::new(&history, &index, &Limits::NONE).with_options(options);
    assert_eq!(check.decide(Level::ParallelSnapshotIsolation).name(), "satisfied");
}

/// Without sessions the search began with an order that had nothing to do with the one in which
/// things happened, and asked about ten times as many versions.
#[test]
fn who_read_from_whom_tells_an_order_where_sessions_do_not() {
    let parameters = Parameters {
        isolation: Isolation::Serializable,
        transactions: 3_000,
        keys: 50,
        distribution: Distribution::Zipf { theta: 0.99 },
        ..preset("GeneralRW").expect("a preset of this name").parameters
    };
    let history = generate(&parameters).expect("valid parameters").without_times();
    let index = Index::new(&history);
    let asked = AtomicUsize::new(0);
    let observe = |stage: Stage| {
        if let Stage::Solved { choices, .. } = stage {
            asked.fetch_add(choices as usize, Relaxed);
        }
    };
    let limits = Limits { observe: &observe, ..Limits::NONE };
    let options =
        Options { sources: Sources { session: false, ..Sources::ALL }, ..Options::default() };
    let mut check = Check::new(&history, &index, &limits).with_options(options);
    assert_eq!(check.decide(Level::Serializable).name(), "satisfied");
    assert!(asked.load(Relaxed) < 10_000, "{} pairs of versions", asked.load(Relaxed));
}

#[test]
fn what_is_wrong_with_sessions_alone_is_no_reason_to_begin_anew() {
    // A snapshot database breaks session serializability in many places, and most of them
    // rest on sessions: the search without them goes on from where the one with them was.
    let parameters = Parameters {
        isolation: Isolation::SnapshotIsolation,
        transactions: 40_000,
        keys: 4_000,
        ..preset("PolySI").expect("a preset of this name").parameters
    };
    let history = generate(&parameters).expect("valid parameters");
    let index = Index::new(&history);
    let saturated = AtomicBool::new(false);
    let observe = |stage: Stage| {
        if matches!(stage, Stage::Saturate) {
            saturated.store(true, Relaxed);
        }
    };
    let limits = Limits { observe: &observe, ..Limits::NONE };
    let verdict = Check::new(&history, &index, &limits).decide(Level::Serializable);
    assert_ne!(verdict.name(), "unknown");
    assert!(!saturated.into_inner(), "the search alone decides it");
}

#[test]
fn a_check_that_is_stopped_says_whether_time_or_memory_was_up() {
    let history = parse_text("A: w(x,1)\nB: w(x,2)\nC: r(x,1)\nD: r(x,2)\n").expect("well-formed");
    let index = Index::new(&history);
    for (is_memory, limit) in [(false, Limit::Time), (true, Limit::Memory)] {
        let limits = Limits { stop: &|| true, is_memory: &|| is_memory, ..Limits::NONE };
        for level in [Level::Serializable, Level::UpdateAtomic, Level::Causal] {
            let verdict = Check::new(&history, &index, &limits).decide(level);
            assert_eq!(verdict, Verdict::Unknown(Unknown::Limit(limit)), "{level}");
        }
    }
}

#[test]
fn what_no_level_can_decide_is_unknown_however_large_the_history() {
    // Elements that were appended twice, too many to try every choice, in a history that is
    // large enough for the stronger level to be asked first. Not all that C saw are A's, and
    // not all are B's.
    let mut text = String::from("C: r(x,[0 1 2 3 4 5 6 7 8 9 10 11]) r(y,[]) r(z,[])\n");
    for number in 0..12 {
        let also = |special: u32, key: &str| {
            if number == special { format!(" a({key},1)") } else { String::new() }
        };
        writeln!(text, "A: a(x,{number}){}", also(3, "y")).expect("a string grows");
        writeln!(text, "B: a(x,{number}){}", also(7, "z")).expect("a string grows");
    }
    for number in 0..600 {
        writeln!(text, "D: w(d,{number})").expect("a string grows");
    }
    let history = parse_text(&text).expect("a well-formed history");
    let index = Index::new(&history);
    for level in [Level::SnapshotIsolation, Level::ParallelSnapshotIsolation, Level::Serializable] {
        let verdict = Check::new(&history, &index, &Limits::NONE).decide(level);
        assert_eq!(verdict.name(), "unknown", "{level}");
    }
}
