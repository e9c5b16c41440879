//! Every explanation is accepted by a judge that knows only the definition of the level and what
//! the explanation shows.
//!
//! The judge takes the operations that a scenario marks as involved as a history of their own.
//! Session order and real time are part of it only if the level means them and a step says so.
//! That history must violate the level by the definition, tried in all orders; and no step may be
//! one of session order or real time at a level that has none.

mod support;

use isolde::reference::{self, Reference};
use isolde::{Level, applicable_levels};
use isolde_history::format::parse_text;
use isolde_history::{History, Index, OpId, OpKind, Part, Selection};
use isolde_report::scenario::{EdgeKind, Scenario};
use random::{Random, random_history};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

#[path = "../../checker/tests/properties/support/random.rs"]
mod random;

/// How large random histories get.
#[derive(Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "a limit says which end it is")]
struct Size {
    txns_max: usize,
    ops_max: usize,
    keys_max: usize,
}

/// Levels that mean session order.
const SESSIONS: &[Level] = &[
    Level::ReadCommitted,
    Level::ReadAtomic,
    Level::ReadYourWrites,
    Level::MonotonicReads,
    Level::MonotonicWrites,
    Level::WritesFollowReads,
    Level::Causal,
    Level::Prefix,
    Level::SessionSnapshotIsolation,
    Level::PrefixConsistentSnapshotIsolation,
    Level::StrongSnapshotIsolation,
    Level::SessionSerializable,
    Level::StrictSerializable,
    Level::Linearizable,
];

/// Levels that mean real time.
const REAL_TIME: &[Level] = &[
    Level::GeneralizedSnapshotIsolation,
    Level::PrefixConsistentSnapshotIsolation,
    Level::StrongSnapshotIsolation,
    Level::StrictSerializable,
    Level::Linearizable,
];

/// What the judge says of one explanation.
#[derive(Debug, PartialEq, Eq)]
enum Judgement {
    Accepted,
    /// Not all of it is shown, or the definition could not be tried.
    Open,
    Refused(String),
}

/// The operations that a scenario shows.
fn shown(history: &History, scenario: &Scenario) -> Vec<OpId> {
    let named: HashMap<String, _> =
        history.txns().map(|txn| (history.readable_name(txn), txn)).collect();
    let mut ops: Vec<OpId> = Vec::new();
    for txn in &scenario.transactions {
        let Some(&id) = named.get(&txn.name) else { continue };
        let all = history.ops_of(id).zip(&txn.operations);
        ops.extend(all.filter(|(_, op)| op.involved).map(|(id, _)| id));
    }
    ops.sort_unstable();
    ops
}

/// Whether a part of a history means what the explanation says of it: conditions, given orders,
/// refused compare-and-sets and values that repeat tell less of a part than of the whole.
fn is_plain(history: &History) -> bool {
    let ops = || history.txns().flat_map(|txn| history.ops_of(txn)).map(|op| history.op(op));
    let mut met = HashSet::new();
    !history.has_predicates()
        && history.orders().versions.is_empty()
        && !ops().any(|op| op.kind == OpKind::ReadOther)
        && ops()
            .filter(|op| op.kind.is_write())
            .all(|op| met.insert((op.key, op.value)) && op.value != history.initial(op.key))
}

fn judge(history: &History, index: &Index, level: Level, scenario: &Scenario) -> Judgement {
    let edges = scenario.all_edges();
    let has = |kind: EdgeKind| edges.iter().any(|edge| edge.kind == kind);
    for (kind, levels) in [(EdgeKind::Session, SESSIONS), (EdgeKind::RealTime, REAL_TIME)] {
        if has(kind) && !levels.contains(&level) {
            return Judgement::Refused(format!("a step of {}", kind.name()));
        }
    }
    // Operations that contradict each other by themselves need no judge of orders.
    if edges.is_empty() || !is_plain(history) {
        return Judgement::Open;
    }
    if edges.iter().any(|edge| edge.left_out.is_some()) || scenario.cases_left_out > 0 {
        return Judgement::Open;
    }
    let is_meant = |kind: EdgeKind, levels: &[Level]| levels.contains(&level) && has(kind);
    let txns: Vec<_> = history.txns().collect();
    let apart = if is_meant(EdgeKind::Session, SESSIONS) { Vec::new() } else { txns.clone() };
    let timeless = if is_meant(EdgeKind::RealTime, REAL_TIME) { Vec::new() } else { txns };
    let initial = Selection::unwritten(history);
    let mut selection = Selection { ops: shown(history, scenario), apart, timeless, initial };
    selection.close(history, index);
    let part = Part::new(history, index, &selection);
    match reference::decide(&part.history, level) {
        Reference::Violated => Judgement::Accepted,
        Reference::Unknown(_) => Judgement::Open,
        Reference::Satisfied => Judgement::Refused(format!(
            "what is shown is allowed:\n{}",
            isolde_history::format::to_text(&part.history)
        )),
    }
}

/// How many explanations of a history the judge accepted and could not try; those that it refused.
fn judge_all(text: &str) -> (usize, usize, Vec<String>) {
    let history = parse_text(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let index = Index::new(&history);
    let report = support::report(&history, ("h.txt", "text"), &applicable_levels(&history));
    let (mut accepted, mut open, mut refused) = (0, 0, Vec::new());
    for told in &report.levels {
        let level = Level::parse(told.level).expect("a level");
        for anomaly in &told.anomalies {
            match judge(&history, &index, level, &anomaly.scenario) {
                Judgement::Accepted => accepted += 1,
                Judgement::Open => open += 1,
                Judgement::Refused(why) => refused.push(format!(
                    "{level}: {} is refused: {why}\n{}\n",
                    anomaly.name, anomaly.explanation
                )),
            }
        }
    }
    (accepted, open, refused)
}

/// At most so many refused explanations are shown.
const REFUSED_SHOWN_MAX: usize = 5;

/// Judges histories and counts; says what was refused.
fn judge_each(usual: u64, least: usize, history_of: impl Fn(u64) -> String) {
    let count = std::env::var("ISOLDE_RANDOM_HISTORIES").ok();
    let count: u64 = count.map_or(usual, |count| count.parse().expect("a number of histories"));
    let (mut accepted, mut open, mut refused) = (0, 0, Vec::new());
    for seed in 0..count {
        let text = history_of(seed);
        let found = judge_all(&text);
        accepted += found.0;
        open += found.1;
        refused.extend(found.2.iter().map(|why| format!("{text}\n{why}")));
    }
    let first: Vec<&String> = refused.iter().take(REFUSED_SHOWN_MAX).collect();
    assert!(
        refused.is_empty(),
        "of {count} histories, {accepted} accepted, {open} open, {} refused:\n{first:#?}",
        refused.len()
    );
    assert!(accepted > least, "only {accepted} explanations were judged");
}

#[test]
fn explanations_of_random_histories_are_accepted() {
    let size = Size { txns_max: 6, ops_max: 4, keys_max: 3 };
    judge_each(2000, 500, |seed| random_history(seed, size));
}

/// Transactions that write and read many registers, each value once: so that some pairs write a
/// common key that nobody reads.
fn registers(seed: u64) -> String {
    let mut random = Random::new(seed);
    let keys = 2 + random.below(6);
    let (txns, sessions) = (3 + random.below(3), 1 + random.below(5));
    let mut plan: Vec<Vec<(usize, bool)>> = Vec::new();
    for _ in 0..txns {
        let ops = 1 + random.below(5);
        plan.push((0..ops).map(|_| (random.below(keys), random.below(2) == 0)).collect());
    }
    let value = |txn: usize, place: usize| 1 + 10 * txn + place;
    let mut text = String::from("init *=0\n");
    for (txn, ops) in plan.iter().enumerate() {
        write!(text, "s{}:", random.below(sessions)).expect("a string grows");
        for (place, &(key, is_write)) in ops.iter().enumerate() {
            let mut values = vec![0];
            for (other, ops) in plan.iter().enumerate().filter(|it| it.0 != txn) {
                let last = ops.iter().rposition(|&op| op == (key, true));
                values.extend(last.map(|place| value(other, place)));
            }
            let written = is_write.then(|| value(txn, place));
            let value = written.unwrap_or_else(|| values[random.below(values.len())]);
            let letter = if is_write { 'w' } else { 'r' };
            write!(text, " {letter}(k{key},{value})").expect("a string grows");
        }
        text.push('\n');
    }
    text
}

#[test]
fn explanations_of_registers_are_accepted() {
    judge_each(2000, 5000, registers);
}
