//! Every explanation is accepted by a judge that knows only the definition of the level and what
//! the explanation shows.
//!
//! The judge takes the operations that a scenario marks as involved as a history of their own.
//! Session order and real time are part of it only if the level means them and a step says so.
//! That history must violate the level by the definition, tried in all orders; and no step may be
//! one of session order or real time at a level that has none. What a sentence about an order says
//! that a list was must have been a state of the list.
//!
//! Two things the judge takes from the whole history: what a transaction did of which only its
//! place in its session or its times matter, and that a transaction of unknown outcome took effect,
//! as others saw what it wrote.

mod support;

use isolde::reference::{self, Reference};
use isolde::{Level, applicable_levels};
use isolde_history::format::{parse_text, to_text};
use isolde_history::{History, Index, OpId, OpKind, Part, Selection};
use isolde_report::scenario::{EdgeKind, Scenario};
use random::{Random, random_history};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

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
fn shown(history: &History, index: &Index, scenario: &Scenario) -> Vec<OpId> {
    let named: HashMap<String, _> =
        history.txns().map(|txn| (history.readable_name(txn), txn)).collect();
    let mut ops: Vec<OpId> = Vec::new();
    for txn in &scenario.transactions {
        let Some(&id) = named.get(&txn.name) else { continue };
        let is_bystander = !txn.operations.iter().any(|op| op.involved);
        let all = history.ops_of(id).zip(&txn.operations);
        let all = all.filter(|(_, op)| op.involved || is_bystander).map(|(id, _)| id);
        for id in all {
            ops.push(id);
            let it = history.op(id);
            if is_bystander && it.kind == OpKind::Read {
                // Without what it read it would be left out.
                let versions = index.versions_of(history, it.key).iter();
                let seen = versions.filter(|version| version.value == it.value);
                ops.extend(seen.map(|version| version.op()));
            }
        }
    }
    ops.sort_unstable();
    ops.dedup();
    ops
}

/// The longest list of each key, without what its reader had appended itself; `None` if lists or
/// reads contradict each other.
fn longest_lists(history: &History, index: &Index) -> Option<HashMap<String, Vec<String>>> {
    if !index.conflicts().is_empty() || !index.misreads().is_empty() {
        return None;
    }
    let mut longest: HashMap<String, Vec<String>> = HashMap::new();
    for txn in history.txns() {
        let mut own: HashMap<_, Vec<_>> = HashMap::new();
        for op in history.ops_of(txn) {
            let it = history.op(op);
            match it.kind {
                OpKind::Append => own.entry(it.key).or_default().push(it.value),
                OpKind::ReadList => {
                    let own = own.get(&it.key).map_or(&[][..], |own| own);
                    let others = history.list(op).strip_suffix(own)?;
                    let others = others.iter().map(|&element| history.datum(element).to_string());
                    let others: Vec<String> = others.collect();
                    let key = history.datum(history.key_name(it.key)).to_string();
                    let known = longest.entry(key).or_default();
                    if others.len() > known.len() {
                        *known = others;
                    }
                }
                _ => {}
            }
        }
    }
    Some(longest)
}

/// A list that a text says somebody read and that the list of this key never was.
fn impossible_list(text: &str, longest: &HashMap<String, Vec<String>>) -> Option<String> {
    longest.iter().find_map(|(key, longest)| {
        let start = format!("read {key} = [");
        text.match_indices(&start).find_map(|(at, _)| {
            let list = &text[at + start.len()..];
            let list = &list[..list.find(']').expect("a list ends")];
            let elements: Vec<&str> = list.split_whitespace().collect();
            let is_state = longest.iter().zip(&elements).all(|(one, other)| one == other)
                && elements.len() <= longest.len();
            (!is_state).then(|| format!("{key} was never [{list}]: {text}"))
        })
    })
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
    if let (false, Some(longest)) = (edges.is_empty(), longest_lists(history, index)) {
        let told = edges.iter().map(|edge| &edge.explanation).chain([&scenario.summary]);
        if let Some(why) = told.into_iter().find_map(|text| impossible_list(text, &longest)) {
            return Judgement::Refused(why);
        }
    }
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
    let mut selection =
        Selection { ops: shown(history, index, scenario), apart, timeless, initial };
    selection.close(history, index);
    let part = to_text(&Part::new(history, index, &selection).history);
    let part = parse_text(&part.replace(" unknown\n", "\n")).expect("a history as it was written");
    match reference::decide(&part, level) {
        Reference::Violated => Judgement::Accepted,
        Reference::Unknown(_) => Judgement::Open,
        Reference::Satisfied => {
            Judgement::Refused(format!("what is shown is allowed:\n{}", to_text(&part)))
        }
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

/// The texts of all histories below a folder, by path.
fn texts(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            texts.extend(self::texts(&path));
        } else if path.extension().is_some_and(|it| it == "txt") {
            let text = fs::read_to_string(&path).expect("text");
            texts.push((path, text));
        }
    }
    texts
}

/// Levels without session order were shown by arguments that use it, and what makes two
/// transactions conflict was left out.
#[test]
fn explanations_of_the_corpus_are_accepted() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut accepted = 0;
    for folder in ["anomalies", "boundaries", "papers", "peers"] {
        for (path, text) in texts(&corpus.join(folder)) {
            let found = judge_all(&text);
            accepted += found.0;
            assert!(found.2.is_empty(), "{}: {:#?}", path.display(), found.2);
        }
    }
    assert!(accepted > 200, "only {accepted} explanations were judged");
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

/// Transactions that append to lists and read them, own appends among what they read: each list
/// is a state that others left, with the own appends behind it.
fn lists(seed: u64) -> String {
    let mut random = Random::new(seed);
    let keys = 1 + random.below(3);
    let (txns, sessions) = (2 + random.below(4), 1 + random.below(5));
    let mut plan: Vec<Vec<(usize, bool)>> = Vec::new();
    for _ in 0..txns {
        let ops = 1 + random.below(4);
        plan.push((0..ops).map(|_| (random.below(keys), random.below(2) == 0)).collect());
    }
    // Each key has an order of its own of the transactions that append to it.
    let value = |txn: usize, place: usize| 1 + 10 * txn + place;
    let mut sequences: Vec<Vec<(usize, usize)>> = Vec::new();
    for key in 0..keys {
        let mut left: Vec<usize> = (0..txns).collect();
        let mut sequence = Vec::new();
        while !left.is_empty() {
            let txn = left.remove(random.below(left.len()));
            let places = (0..plan[txn].len()).filter(|&place| plan[txn][place] == (key, true));
            sequence.extend(places.map(|place| (txn, place)));
        }
        sequences.push(sequence);
    }
    let mut text = String::new();
    for (txn, ops) in plan.iter().enumerate() {
        write!(text, "s{}:", random.below(sessions)).expect("a string grows");
        for (place, &(key, is_append)) in ops.iter().enumerate() {
            if is_append {
                write!(text, " a(k{key},{})", value(txn, place)).expect("a string grows");
                continue;
            }
            let sequence = &sequences[key];
            let first = sequence.iter().position(|it| it.0 == txn).unwrap_or(sequence.len());
            let own = (0..place).filter(|&earlier| ops[earlier] == (key, true));
            let others = sequence[..random.below(first + 1)].iter().copied();
            let list: Vec<String> = (others.chain(own.map(|place| (txn, place))))
                .map(|(txn, place)| value(txn, place).to_string())
                .collect();
            write!(text, " r(k{key},[{}])", list.join(" ")).expect("a string grows");
        }
        text.push('\n');
    }
    if random.below(3) > 0 {
        text.push_str("reader:");
        for (key, sequence) in sequences.iter().enumerate() {
            let list: Vec<String> =
                sequence.iter().map(|&(txn, place)| value(txn, place).to_string()).collect();
            write!(text, " r(k{key},[{}])", list.join(" ")).expect("a string grows");
        }
        text.push('\n');
    }
    text
}

#[test]
fn explanations_of_lists_are_accepted() {
    judge_each(2000, 2000, lists);
}
