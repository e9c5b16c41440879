//! Linearizability is what its definition says, and its orders show it.

use crate::support::{history, random_histories, random_operations};
use isolde_checker::linearizable::{Reading, decide};
use isolde_checker::reference::{self, Reference};
use isolde_checker::{Check, Level, Limits, Satisfied, Stage, Verdict, applicable_levels};
use isolde_history::{History, Index, OpKind, Outcome, TxnId, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn random_operations_get_the_verdict_of_the_definition() {
    let count = random_histories(20_000);
    let mut met: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..count {
        let text = random_operations(seed, 7);
        let history = history(&text);
        let expected = match reference::decide(&history, Level::Linearizable) {
            Reference::Satisfied => "satisfied",
            Reference::Violated => "violated",
            Reference::Unknown(_) => continue,
        };
        let verdict = decide(&history, &Limits::NONE, Reading::default())
            .unwrap_or_else(|| panic!("not single operations\n{text}"));
        assert_eq!(verdict.name(), expected, "{verdict:?}\n{text}");
        *met.entry(expected).or_default() += 1;
        if seed % 4 == 0 {
            certify(&text, &history);
        }
        match verdict {
            Verdict::Satisfied(Satisfied::Order(order)) => replay(&text, &history, &order),
            Verdict::Violated(violated) => {
                assert!(!violated.anomalies.is_empty(), "{text}");
            }
            other => panic!("{other:?}\n{text}"),
        }
    }
    let enough = |name: &str| met.get(name).copied().unwrap_or(0) > count as usize / 10;
    assert!(enough("satisfied") && enough("violated"), "{met:?}");
}

/// The verdict has a proof that the verifier accepts.
fn certify(text: &str, history: &History) {
    let index = Index::new(history);
    let mut check = Check::new(history, &index, &Limits::NONE);
    let certified = check.certify(&[Level::Linearizable, Level::StrictSerializable]);
    assert_eq!(certified.left_out, [], "{text}");
    let results = isolde_certificate::verify(&certified.certificate, history);
    for result in results.expect("the same history") {
        assert!(result.is_ok(), "{result:?}\n{text}");
    }
}

/// Every certain operation is in the order, sees what was written last, and comes
/// after what completed before it was invoked and what its session did before.
fn replay(text: &str, history: &History, order: &[TxnId]) {
    let mut held: BTreeMap<_, Value> = BTreeMap::new();
    let mut placed: BTreeSet<TxnId> = BTreeSet::new();
    for &txn in order {
        assert!(placed.insert(txn), "{txn:?} twice\n{text}");
        for op in history.ops_of(txn).map(|op| history.op(op)) {
            let now = held.get(&op.key).copied().unwrap_or(history.initial(op.key));
            match op.kind {
                OpKind::Read => assert!(op.value == Value::UNKNOWN || op.value == now, "{text}"),
                OpKind::ReadOther => assert_ne!(op.value, now, "{text}"),
                _ => {
                    held.insert(op.key, op.value);
                }
            }
        }
    }
    let certain = |txn: &TxnId| history.outcome(*txn) == Outcome::Committed;
    assert!(history.txns().filter(certain).all(|txn| placed.contains(&txn)), "{text}");
    for (place, &later) in order.iter().enumerate() {
        for &earlier in &order[..place] {
            let ends = history.outcome(later) == Outcome::Committed;
            let (first, second) = (history.txn_interval(earlier), history.txn_interval(later));
            assert!(!ends || second.completed >= first.invoked, "{text}");
            let same = history.session_of(earlier) == history.session_of(later);
            assert!(!same || earlier < later, "{text}");
        }
    }
}

/// Two registers each of which has an order with both reads first, in sessions whose
/// clocks do not tell one operation from the next; beside many other operations.
#[test]
fn sessions_against_the_times_are_decided_among_many_operations() {
    let verdict = |seen: &str| {
        let mut text =
            format!("A @1..2: w(x,1)\nA @2..3: r(y,nil)\nB @1..2: w(y,1)\nB @2..3: r(x,{seen})\n");
        for number in 0..400 {
            let at = 10 + 2 * number;
            writeln!(text, "C @{at}..{}: w(z,{number})", at + 1).expect("a string");
        }
        let history = history(&text);
        let index = Index::new(&history);
        let mut check = Check::new(&history, &index, &Limits::NONE);
        check.decide(Level::Linearizable).name()
    };
    assert_eq!((verdict("1"), verdict("nil")), ("satisfied", "violated"));
}

/// Single operations whose begins and commits nothing tells apart: what is linearizable is
/// strictly serializable and strongly snapshot isolated, and the other way round.
#[test]
fn three_levels_ask_the_same_of_single_operations() {
    for seed in 0..random_histories(2_000) {
        let text = random_operations(seed, 6);
        let history = history(&text);
        let verdict = |level| reference::decide(&history, level);
        let expected = verdict(Level::Linearizable);
        if matches!(expected, Reference::Unknown(_)) {
            continue;
        }
        assert_eq!(verdict(Level::StrictSerializable), expected, "{text}");
        if !history.has_inner_times() {
            assert_eq!(verdict(Level::StrongSnapshotIsolation), expected, "{text}");
        }
    }
}

/// Twelve compare-and-sets of repeated values whose outcome is unknown are too many to try
/// whether each of them counts; only linearizability was decided.
#[test]
fn what_linearizability_decides_is_decided_of_the_levels_that_ask_the_same() {
    let verdicts = |seen: &str| {
        let mut text = String::from("A @1..2: w(x,1)\nA @3..4: w(x,2)\n");
        for number in 0..12 {
            writeln!(text, "U{number} @5..6: r(x,{}) w(x,1) unknown", number % 3)
                .expect("a string");
        }
        write!(text, "B @20..21: w(x,2)\nB @22..23: w(x,4)\nB @24..25: r(x,{seen})\n")
            .expect("a string");
        let history = history(&text);
        let index = Index::new(&history);
        let levels = [Level::StrongSnapshotIsolation, Level::StrictSerializable];
        levels.map(|level| {
            // By itself, and after linearizability.
            let alone = Check::new(&history, &index, &Limits::NONE).decide(level).name();
            let mut check = Check::new(&history, &index, &Limits::NONE);
            let all = check.decide_all(&[level, Level::Linearizable]);
            let certified = check.certify(&[level, Level::Linearizable]);
            assert_eq!(certified.left_out, [], "{text}");
            let results = isolde_certificate::verify(&certified.certificate, &history);
            let mut results = results.expect("the same history").into_iter();
            assert!(results.all(|result| result.is_ok()), "{text}");
            assert_eq!((all[0].1.name(), all[1].1.name()), (alone, alone), "{text}");
            alone
        })
    };
    assert_eq!(verdicts("4"), ["satisfied", "satisfied"]);
    assert_eq!(verdicts("2"), ["violated", "violated"]);
}

/// What a refused compare-and-set that does not tell what it found may have seen is every version
/// but one. Beside an order of versions that the database gave, or begins and commits with times
/// of their own, all of them were tried: the square of the history, 4.7 GB for 100,000.
#[test]
fn refused_compare_and_sets_are_not_tried_version_by_version() {
    const SETS: usize = 60;
    let registers = |last: usize, given: bool| {
        let mut text = String::new();
        for set in 0..SETS {
            let (at, before) = (10 * set, set.saturating_sub(1));
            let seen = if set == 0 { "nil".to_owned() } else { before.to_string() };
            writeln!(text, "A @{at}..{}..{}..{}: r(x,{seen}) w(x,{set})", at + 1, at + 3, at + 4)
                .expect("a string");
            if set > 1 {
                let (begun, asked) = (at + 6, at + 7);
                writeln!(text, "B @{}..{begun}..{asked}..{}: r(x,!{before})", at + 5, at + 8)
                    .expect("a string");
            }
        }
        let order: Vec<String> = (0..SETS).map(|set| set.to_string()).collect();
        let order =
            if given { format!("order x complete: {}\n", order.join(" ")) } else { String::new() };
        let end = 10 * SETS;
        format!("{order}{text}B @{end}..{}..{}..{}: r(x,{last})\n", end + 1, end + 2, end + 3)
    };
    let levels = [Level::StrongSnapshotIsolation, Level::StrictSerializable, Level::Linearizable];
    let found = |last: usize, given: bool| {
        let history = history(&registers(last, given));
        let index = Index::new(&history);
        let tried = AtomicU64::new(0);
        let observe = |stage| {
            if let Stage::Solved { choices, .. } = stage {
                tried.fetch_add(choices, Ordering::Relaxed);
            }
        };
        let limits = Limits { observe: &observe, ..Limits::NONE };
        let verdicts =
            levels.map(|level| Check::new(&history, &index, &limits).decide(level).name());
        assert_eq!(tried.load(Ordering::Relaxed), 0, "{}", registers(last, given));
        verdicts
    };
    for given in [false, true] {
        assert_eq!(found(SETS - 1, given), ["satisfied"; 3]);
        assert_eq!(found(SETS - 2, given), ["violated"; 3]);
    }
}

#[test]
fn it_is_among_the_levels_of_timed_single_operations_of_all_kinds() {
    let verdict = |text: &str| {
        let history = history(text);
        if !applicable_levels(&history).contains(&Level::Linearizable) {
            return "not applicable";
        }
        let index = Index::new(&history);
        Check::new(&history, &index, &Limits::NONE).decide(Level::Linearizable).name()
    };
    let given = "init *=0\norder x: 2 1\nA @8..31: w(x,1)\n";
    assert_eq!(verdict(&format!("{given}B @9..25: w(x,2) unknown\n")), "satisfied");
    assert_eq!(verdict(&format!("{given}B @9..25: r(x,0) w(x,2)\n")), "satisfied");
    assert_eq!(verdict(&format!("{given}B @32..35: w(x,2)\n")), "violated");
    assert_eq!(verdict("A @1..2: a(x,1)\nB @3..4: r(x,[1])\n"), "satisfied");
    assert_eq!(verdict("A @1..2: a(x,1)\nB @3..4: r(x,[])\n"), "violated");
    assert_eq!(verdict("A: w(x,1)\nB: r(x,1)\n"), "not applicable");
    assert_eq!(verdict("A @1..2: w(x,1)\nB @3..4: r(x,1) r(y,nil)\n"), "not applicable");
}
