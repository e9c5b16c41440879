//! Explanations are minimal: nothing that one rests on can be left out.

use super::conditions::random_conditions;
use super::support::{Size, history, random_histories, random_history};
use isolde_checker::{Check, Edge, Evidence, Explanation, Level, Limits, Options, Verdict};
use isolde_checker::{applicable_levels, explain, shrink};
use isolde_history::format::{parse_text, to_text};
use isolde_history::{History, Index, Part, Selection};
use std::path::Path;

fn is_violated(history: &History, level: Level) -> bool {
    let index = Index::new(history);
    let verdict = Check::new(history, &index, &Limits::NONE).decide(level);
    matches!(verdict, Verdict::Violated(_))
}

/// Every way of leaving out one thing: a transaction, an operation, a place in a session, the
/// times of a transaction, an initial value.
fn smaller(history: &History, index: &Index, whole: &Selection) -> Vec<(String, Selection)> {
    let mut all = Vec::new();
    for txn in whole.txns(history) {
        let mut without = whole.clone();
        without.ops.retain(|&op| history.txn_of(op) != txn);
        all.push((format!("without {}", history.txn_name(txn)), without));
        if !whole.apart.contains(&txn) {
            let mut apart = whole.clone();
            apart.apart.push(txn);
            apart.apart.sort_unstable();
            all.push((format!("{} apart", history.txn_name(txn)), apart));
        }
        if !whole.timeless.contains(&txn) && history.has_times() {
            let mut timeless = whole.clone();
            timeless.timeless.push(txn);
            timeless.timeless.sort_unstable();
            all.push((format!("{} timeless", history.txn_name(txn)), timeless));
        }
    }
    for &op in &whole.ops {
        let mut without = whole.clone();
        without.ops.retain(|&kept| kept != op);
        all.push((format!("without {op:?}"), without));
    }
    for &key in &whole.initial {
        let mut without = whole.clone();
        without.initial.retain(|&kept| kept != key);
        all.push((format!("without the initial value of {key:?}"), without));
    }
    for (_, selection) in &mut all {
        selection.close(history, index);
    }
    all
}

/// Holds the explanation of one level to what explanations promise.
fn hold(text: &str, whole: &History, index: &Index, level: Level, it: &Explanation) {
    let said = || format!("{level}, shown at {}: {:?}\n{text}", it.shown_at, it.anomaly);
    assert!(it.shown_at.forbids(it.anomaly.kind), "a name of what is allowed: {}", said());
    let (Evidence::Cycle(_) | Evidence::Cases(_)) = it.anomaly.evidence else { return };
    assert!(it.is_minimal, "{}", said());
    let part = Part::new(whole, index, &it.rests_on);
    assert!(is_violated(&part.history, it.shown_at), "not enough: {}", said());
    for (what, less) in smaller(whole, index, &it.rests_on) {
        // The first of a session, or one without times, has nothing to lose.
        let part_less = Part::new(whole, index, &less);
        let same_ops = less.ops == it.rests_on.ops;
        if same_ops && is_the_same(&part, &part_less) {
            continue;
        }
        assert!(!is_violated(&part_less.history, it.shown_at), "{what} is not needed: {}", said());
    }
    // Every edge stands on a read that was kept, and so goes with it.
    for read in it.anomaly.evidence.all_edges().into_iter().filter_map(Edge::read) {
        assert!(it.rests_on.has(read), "{read:?} is not kept: {}", said());
    }
    assert!(it.rules_out.contains(&it.shown_at), "{}", said());
    assert!(it.shown_at == level || level.weaker_than().contains(&it.shown_at), "{}", said());
}

fn is_the_same(one: &Part, other: &Part) -> bool {
    to_text(&one.history) == to_text(&other.history)
        && one.history.session_count() == other.history.session_count()
}

fn hold_all(text: &str, whole: &History) -> usize {
    let index = Index::new(whole);
    let mut check = Check::new(whole, &index, &Limits::NONE);
    let mut count = 0;
    let levels = applicable_levels(whole);
    let mut holds = |level: &Level| matches!(check.decide(*level), Verdict::Satisfied(_));
    let holding: Vec<Level> = levels.iter().copied().filter(|level| holds(level)).collect();
    for level in levels {
        let Verdict::Violated(violated) = check.decide(level) else { continue };
        for anomaly in &violated.anomalies {
            assert!(level.forbids(anomaly.kind), "{level} allows {:?}\n{text}", anomaly.kind);
        }
        let options = Options::default();
        let found = explain((whole, &index), level, &violated, options, &Limits::NONE);
        let found = found.unwrap_or_else(|| panic!("{level} is not explained\n{text}"));
        hold(text, whole, &index, level, &found);
        let wrongly = found.rules_out.iter().find(|it| holding.contains(it));
        assert_eq!(wrongly, None, "{level} does not rule out what holds\n{text}");
        count += 1;
    }
    count
}

#[test]
fn nothing_can_be_left_out_of_the_explanations_of_the_corpus() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "txt") {
                let text = std::fs::read_to_string(&path).expect("a text");
                let Ok(whole) = parse_text(&text) else { continue };
                count += hold_all(&format!("{}\n{text}", path.display()), &whole);
            }
        }
    }
    assert!(count > 300, "only {count} violations were explained");
}

/// What the explanation of a level calls the violation.
fn name_at(text: &str, level: Level) -> &'static str {
    let whole = history(text);
    let index = Index::new(&whole);
    let Verdict::Violated(violated) = Check::new(&whole, &index, &Limits::NONE).decide(level)
    else {
        panic!("{level} is not violated");
    };
    let found = explain((&whole, &index), level, &violated, Options::default(), &Limits::NONE);
    found.expect("an explanation").anomaly.kind.name()
}

#[test]
fn a_snapshot_level_is_not_blamed_for_the_write_skew_that_it_allows() {
    let skew = "init *=0\nA: r(x,0) w(y,1)\nB: r(y,0) w(x,2)\n";
    assert_eq!(name_at(skew, Level::RepeatableRead), "write-skew");
    let both_write = "init *=0\nA: r(x,0) w(y,1) w(z,1)\nB: r(y,0) w(x,2) w(z,2)\n";
    assert_eq!(name_at(both_write, Level::RepeatableRead), "write-skew");
    for level in [Level::UpdateAtomic, Level::ParallelSnapshotIsolation, Level::SnapshotIsolation] {
        assert_eq!(name_at(both_write, level), "read-skew", "{level}");
    }
}

#[test]
fn a_cycle_that_needs_writers_apart_is_a_read_skew_of_snapshot_levels() {
    let text = "A: r(x,nil) w(y,1) w(z,1)\nB: w(x,2) w(z,2)\nC: r(x,2) r(y,nil)\n";
    assert_eq!(name_at(text, Level::ParallelSnapshotIsolation), "read-skew");
    assert_eq!(name_at(text, Level::SnapshotIsolation), "read-skew");
    assert_eq!(name_at(text, Level::RepeatableRead), "read-only-transaction-anomaly");
}

/// It was called a read skew, which snapshot isolation forbids: but that holds.
#[test]
fn a_version_that_others_missed_in_a_row_is_no_read_skew() {
    let text = "A: w(x,1) w(y,1)\nB: w(y,2) r(z,nil)\nC: w(z,1) r(x,nil)\nD: r(y,2) r(x,1)\n";
    assert!(!is_violated(&history(text), Level::SnapshotIsolation));
    for level in [Level::RepeatableRead, Level::Serializable] {
        assert_eq!(name_at(text, level), "anti-dependency-cycle", "{level}");
    }
}

/// A read skew of an item that the reader writes too is what cursor stability forbids of it.
#[test]
fn an_item_replaced_by_who_missed_another_replacement_is_a_lost_update() {
    let text = "C: a(l,1) w(x,1)\nD: r(x,nil) d(x,nil) r(l,[1])\n";
    assert_eq!(name_at(text, Level::CursorStability), "lost-update");
    assert_eq!(name_at(text, Level::ReadAtomic), "fractured-read");
}

/// Without the last element its list would be that of the first writer, of whom it is half.
#[test]
fn a_list_that_has_become_that_of_others_blames_no_more_than_the_whole() {
    let text = "A: a(z,2) a(x,3)\nA: a(x,5)\nB: r(z,[]) r(x,[3 5])\n";
    assert!(!is_violated(&history(text), Level::ReadAtomic));
    assert_ne!(name_at(text, Level::ParallelSnapshotIsolation), "fractured-read");
    hold_all(text, &history(text));
}

/// Only the order of the session rules the result out, so it is not wrong by itself.
#[test]
fn an_aggregate_that_its_session_rules_out_is_not_wrong_by_itself() {
    let text = "A: w(x,2)\nA: w(x,3)\nA: p(max all -> 2)\n";
    assert_eq!(name_at(text, Level::Prefix), "no-version-order");
}

/// The operation has no key, which the report asked for.
#[test]
fn an_aggregate_that_no_row_gives_is_told_by_itself() {
    for text in [
        "A: p(count all -> 5)\n",
        "init *=0\nA: p(sum value 1..1 -> 5)\nB: w(x,1)\n",
        "init *=0\nB: w(x,1)\nA: p(sum value 1..1 -> 5)\n",
    ] {
        for level in [Level::Prefix, Level::SnapshotIsolation, Level::Serializable] {
            assert_eq!(name_at(text, level), "result-set-mismatch", "{level}: {text}");
        }
    }
}

#[test]
fn nothing_can_be_left_out_of_the_explanations_of_random_histories() {
    let size = Size { txns_max: 7, ops_max: 4, keys_max: 3 };
    let mut count = 0;
    for seed in 0..random_histories(400) {
        let text = random_history(seed, size);
        count += hold_all(&text, &history(&text));
    }
    assert!(count > 400, "only {count} violations were explained");
}

/// What is left of a history that violates a level, as text without its first line.
fn shrunk(text: &str, level: Level) -> Option<String> {
    let whole = history(text);
    let index = Index::new(&whole);
    let limits = Limits::NONE;
    let Verdict::Violated(violated) = Check::new(&whole, &index, &limits).decide(level) else {
        return None;
    };
    let options = Options::default();
    let part = shrink((&whole, &index), level, &violated, options, &limits, &|_| {});
    let left = to_text(&part.history);
    assert!(is_violated(&history(&left), level), "{level}\n{text}\n{left}");
    Some(left.split_once('\n').expect("a line").1.to_owned())
}

/// Keys that operations did not name were lost, and with them what is wrong with a sum.
#[test]
fn initial_values_that_conditions_find_are_kept_and_others_are_not() {
    for (text, left) in [
        (
            "init x=5 z=2\nA: p(sum all -> 10)\nB: r(x,5)",
            "init x=5\ninit z=2\nA/A: p(sum all -> 10)\n",
        ),
        ("init x=5 y=6 z=2\nA: p(all; z=2)\nB: r(x,5)", "init z=2\ninit x=5\nA/A: p(all; z=2)\n"),
        ("init *=3 x=3\nA: p(count all -> 0)", "init *=3\ninit x=3\nA/A: p(count all -> 0)\n"),
        ("init x=5\nA: p(sum all -> 10)\nB: w(x,3) aborted", "init x=5\nA/A: p(sum all -> 10)\n"),
        (
            "A: w(x,1) w(y,1)\nB: p(all; x=1)\nC: w(y,2) aborted",
            "A/A: w(x,1) w(y,1)\nB/B: p(all; x=1)\n",
        ),
        ("init x=5\nA: p(sum all -> 5) r(y,7)", "A/A: r(y,7)\n"),
    ] {
        assert_eq!(shrunk(text, Level::Serializable).as_deref(), Some(left));
    }
}

#[test]
fn what_was_shrunk_is_violated_still() {
    let mut count = 0;
    for seed in 0..300 {
        let text = format!("{}init 2=7 8=3\n", random_conditions(seed));
        for level in [Level::ReadCommitted, Level::SnapshotIsolation, Level::Serializable] {
            count += usize::from(shrunk(&text, level).is_some());
        }
    }
    assert!(count > 100, "only {count} violations were shrunk");
}
