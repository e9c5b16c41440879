//! What is generated at a level satisfies it, and injected faults are found.

use isolde::reference::{Reference, decide};
use isolde::{Level, Limits, Verdict, check};
use isolde_harness::{
    Aborts, Anomaly, Distribution, INJECTED, Isolation, PRESETS, Parameters, Times, TxnKind,
    generate,
};
use isolde_history::{History, Index, OpKind, Outcome, Value, format};

const SMALL: Parameters = Parameters {
    sessions: 3,
    transactions: 5,
    operations: 3,
    read_share: 0.5,
    keys: 2,
    distribution: Distribution::Uniform,
    kind: TxnKind::Mixed,
    isolation: Isolation::Serializable,
    times: Times::Transactions,
    aborts: Aborts::Recorded,
    bug: None,
    anomaly: None,
    seed: 1,
};

const MODERATE: Parameters = Parameters {
    sessions: 12,
    transactions: 3000,
    operations: 6,
    keys: 50,
    distribution: Distribution::Zipf { theta: 0.9 },
    ..SMALL
};

fn level(isolation: Isolation) -> Level {
    Level::parse(isolation.name()).expect("a level that is checked")
}

/// The strongest level that the store of an isolation level gives.
fn given(isolation: Isolation) -> Level {
    match isolation {
        Isolation::SnapshotIsolation => Level::StrongSnapshotIsolation,
        Isolation::Serializable => Level::StrictSerializable,
        other => level(other),
    }
}

fn kinds(isolation: Isolation) -> Vec<TxnKind> {
    [TxnKind::Mixed, TxnKind::BlindWrite, TxnKind::ReadModifyWrite, TxnKind::ListAppend]
        .into_iter()
        .filter(|&kind| Parameters { kind, isolation, ..SMALL }.validate().is_ok())
        .collect()
}

#[track_caller]
fn satisfied(history: &History, level: Level) {
    let verdict = decide(history, level);
    let text = format::to_text(history);
    assert_eq!(verdict, Reference::Satisfied, "{}\n{text}", level.name());
}

#[test]
fn small_histories_satisfy_their_level_by_its_definition() {
    for isolation in Isolation::ALL {
        for kind in kinds(isolation) {
            for seed in 0..40 {
                let parameters = Parameters { isolation, kind, seed, ..SMALL };
                satisfied(&generate(&parameters).expect("small"), given(isolation));
            }
        }
    }
}

#[test]
fn no_store_gives_the_next_level_by_chance() {
    for pair in Isolation::ALL.windows(2) {
        let (weaker, stronger) = (pair[0], level(pair[1]));
        let violated = if stronger <= Level::Causal {
            let history =
                generate(&Parameters { isolation: weaker, ..MODERATE }).expect("moderate");
            let verdicts = check(&history, &Index::new(&history), &[stronger], &Limits::NONE);
            matches!(verdicts[..], [(_, Verdict::Violated(_))])
        } else {
            (0..100).any(|seed| {
                let parameters = Parameters { isolation: weaker, seed, ..SMALL };
                decide(&generate(&parameters).expect("small"), stronger) == Reference::Violated
            })
        };
        assert!(violated, "{} gave {}", weaker.name(), stronger.name());
    }
}

#[test]
fn large_histories_satisfy_the_weak_levels_they_should() {
    let all = [Level::ReadUncommitted, Level::ReadCommitted, Level::ReadAtomic, Level::Causal];
    for isolation in Isolation::ALL {
        for kind in kinds(isolation) {
            let parameters = Parameters { isolation, kind, ..MODERATE };
            let history = generate(&parameters).expect("moderate");
            let index = Index::new(&history);
            let reach = Isolation::ALL.iter().position(|&other| other == isolation).expect("one");
            let expected = &all[..all.len().min(reach + 1)];
            for (level, verdict) in check(&history, &index, expected, &Limits::NONE) {
                let held = matches!(verdict, Verdict::Satisfied(_));
                assert!(held, "{} {kind:?}: not {}", isolation.name(), level.name());
            }
        }
    }
}

#[test]
fn a_fault_violates_exactly_the_levels_that_forbid_it() {
    for row in INJECTED {
        for kind in [TxnKind::Mixed, TxnKind::ListAppend] {
            let parameters =
                Parameters { transactions: 0, kind, anomaly: Some(row.anomaly), ..SMALL };
            let history = generate(&parameters).expect("small");
            let mut forbidden = false;
            for isolation in Isolation::ALL {
                forbidden |= isolation == row.forbidden_by;
                let expected = if forbidden { Reference::Violated } else { Reference::Satisfied };
                let found = decide(&history, level(isolation));
                assert_eq!(found, expected, "{} {kind:?} {}", row.name, isolation.name());
            }
        }
    }
}

#[test]
fn faults_are_found_by_their_names() {
    for row in INJECTED {
        assert_eq!(Anomaly::by_name(row.name), Some(row.anomaly));
    }
    assert_eq!(Anomaly::by_name("no-such-thing"), None);
}

#[test]
fn written_values_are_unique_and_nil_is_not_written() {
    for preset in PRESETS.iter().filter(|preset| preset.parameters.validate().is_ok()) {
        let parameters = Parameters { transactions: 2000, ..preset.parameters };
        let history = generate(&parameters).expect("a preset");
        let mut written: Vec<Value> = history
            .op_kinds()
            .iter()
            .zip(history.op_values())
            .filter(|(kind, _)| matches!(kind, OpKind::Write | OpKind::Append))
            .map(|(_, &value)| value)
            .collect();
        let writes = written.len();
        written.sort_unstable();
        written.dedup();
        let may_repeat = parameters.kind.has_repeated_values();
        assert_eq!(written.len() < writes, may_repeat, "{}", preset.name);
        assert!(!written.contains(&Value::NIL), "{}", preset.name);
    }
}

#[test]
fn the_number_of_transactions_counts_committed_ones() {
    let parameters = Parameters { sessions: 7, transactions: 100, ..SMALL };
    let history = generate(&parameters).expect("small");
    let of = |wanted| history.outcomes().iter().filter(|&&outcome| outcome == wanted).count();
    assert_eq!(of(Outcome::Committed), 100);
    assert!(of(Outcome::Aborted) > 0);
}

#[test]
fn parameters_that_no_history_has_are_refused_with_a_reason() {
    let refused =
        |parameters: Parameters| generate(&parameters).expect_err("no such history").to_string();
    assert_eq!(
        refused(Parameters { sessions: 0, ..SMALL }),
        "expected 1 to 1048576 sessions, found 0"
    );
    assert_eq!(
        refused(Parameters { read_share: f64::NAN, ..SMALL }),
        "expected a read share from 0 to 1, found NaN"
    );
    assert_eq!(
        refused(Parameters { kind: TxnKind::ListAppend, isolation: Isolation::Causal, ..SMALL }),
        "expected serializable, snapshot-isolation or read-committed for lists, found causal: \
         its readers may disagree on the order of elements, which lists never do"
    );
}
