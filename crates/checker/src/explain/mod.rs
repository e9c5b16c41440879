//! The smallest counterexample: what remains of a violation when nothing more can be left out.
//!
//! An engine proves a violation by the first contradiction it meets, which is seldom the
//! shortest or the plainest. Here the proof only says where to look. The operations that it
//! names are a history of their own, in which the weakest level that is violated says what
//! the violation is really about. From this history everything goes that can go while that
//! level stays violated: transactions, operations, orders of sessions, times. What remains is
//! told as an argument of its own.
//!
//! **Invariant: what is left out is not missed.** A part of a history violates no level that
//! the whole satisfies ([`Part`]), so every counterexample is one of the whole history.
//!
//! **Invariant: nothing more can be left out.** Each thing was tried after the last that went.
//! The order of attempts decides only which of several smallest counterexamples is shown.

mod admissible;
mod back;
mod conflicts;
mod counterexamples;
mod in_depth;
mod near;
mod seeds;
mod seen;
mod shrink;

pub use counterexamples::{COUNTEREXAMPLES_MAX, Counterexample, Counterexamples, counterexamples};
pub use shrink::{Progress, shrink};

use crate::anomaly::{Anomaly, AnomalyKind, Evidence, NO_KEY, found_by_reading, of_operations};
use crate::check::{Check, Interpretations, applicable_levels, single_operation};
use crate::level::Level;
use crate::limits::Limits;
use crate::linearizable::{self, Account, Reading};
use crate::naming;
use crate::strong::{self, Options};
use crate::verdict::{Verdict, Violated};
use admissible::is_admissible;
use conflicts::with_conflicts;
use in_depth::in_depth;
use isolde_history::{History, Index, OpId, OpKind, Part, Selection};
use shrink::{Keep, Shrinker, work_of};

/// So many times the work of looking at the whole history once may go into a smaller
/// counterexample, within the bounds below. Counted and not timed, so that the same history has
/// the same explanation.
const WORK_FACTOR: usize = 50;
const WORK_LEAST: usize = 200_000;
const WORK_MAX: usize = 4_000_000;

/// A counterexample that could not be made minimal within its work is shown if it has at most
/// so many transactions: what the engine found is shorter than a larger one.
const UNFINISHED_TXNS_MAX: usize = 20;

/// Histories of so many operations are shrunk as a whole if nothing says where to look.
const WHOLE_OPS_MAX: usize = 10_000;

/// The same where every attempt tries all orders.
const TRIED_OPS_MAX: usize = 1_000;

/// A violation as an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What shows it.
    pub anomaly: Anomaly,
    /// The level whose definition the argument is about: the one that was asked for, or a
    /// weaker one.
    pub shown_at: Level,
    /// The levels that this alone rules out, from weak to strong.
    pub rules_out: Vec<Level>,
    /// What the argument rests on: operations, orders of sessions, times.
    pub rests_on: Selection,
    /// Whether nothing of that can be left out.
    pub is_minimal: bool,
}

/// Explains why a level is violated, as briefly as can be. `None` if the violation does not
/// say where to look, or nothing brief was found with a bounded amount of work.
pub fn explain(
    (history, index): (&History, &Index),
    level: Level,
    violated: &Violated,
    options: Options,
    limits: &Limits<'_>,
) -> Option<Explanation> {
    let of_objects = violated.anomalies.is_empty().then(|| of_objects(history, level, limits));
    let of_objects = of_objects.flatten();
    let Some(first) = violated.anomalies.first().or(of_objects.as_ref()) else {
        return of_the_whole((history, index), level, options, limits);
    };
    let mut first = first.clone();
    let is_enough = |selection: &Selection, level| {
        let part = Part::new(history, index, selection);
        is_violated(&part.history, level, options, limits)
    };
    // What nothing explains is all that the search can say; what else is needed to see that
    // is somewhere among the operations of the same object.
    let mut object = None;
    if first.kind == AnomalyKind::UnexplainedOperation {
        match with_holders(history, &first, limits) {
            Some(told) => first = told,
            None => {
                object = seeds::object(history, index, &first)
                    .filter(|it| it.ops.len() <= WHOLE_OPS_MAX && is_enough(it, level));
            }
        }
    }
    if let (Evidence::Operations { ops, .. }, None) = (&first.evidence, &object) {
        return Some(by_operations((history, index), (level, &first), ops, options, limits));
    }
    let mut selection =
        object.unwrap_or_else(|| seeds::of(history, index, &first, violated.proof.as_deref()));
    if !is_enough(&selection, level) {
        selection = seeds::widened(history, index, &selection);
    }
    if !is_enough(&selection, level) {
        if history.op_count() > WHOLE_OPS_MAX {
            return None;
        }
        selection = Selection::all(history);
    }
    let found = shrunk((history, index), level, selection, options, limits)?;
    Some(nearer((history, index), &found, options, limits).unwrap_or(found))
}

/// The same violation within a short time, if the transactions that show it are apart.
fn nearer(
    (history, index): (&History, &Index),
    found: &Explanation,
    options: Options,
    limits: &Limits<'_>,
) -> Option<Explanation> {
    let is_apart = |it: &Explanation| near::is_apart(history, &it.rests_on.txns(history));
    if !is_apart(found) {
        return None;
    }
    let part = near::part((history, index), found.shown_at, options, limits)?;
    let nearer = shrunk((history, index), found.shown_at, part, options, limits)?;
    (nearer.is_minimal && !is_apart(&nearer)).then_some(nearer)
}

/// Explains what was found by trying all orders: only the whole history says where to look.
fn of_the_whole(
    (history, index): (&History, &Index),
    level: Level,
    options: Options,
    limits: &Limits<'_>,
) -> Option<Explanation> {
    let is_small = history.op_count() <= TRIED_OPS_MAX;
    let all = is_small.then(|| Selection::all(history))?;
    shrunk((history, index), level, all, options, limits)
}

/// Explains a level by a part that violates it, as small as it can be made.
fn shrunk(
    (history, index): (&History, &Index),
    level: Level,
    selection: Selection,
    options: Options,
    limits: &Limits<'_>,
) -> Option<Explanation> {
    let part = Part::new(history, index, &selection);
    let weaker = weakest(&part.history, level, options, limits);
    let whole = Whole { history, index, options, limits };
    let shown_at = if whole.breaks(&selection, level, weaker) { weaker } else { level };
    let start = Start { selection, kept: Vec::new() };
    let found = shrunk_at((history, index), shown_at, start, options, limits)?;
    let told = seen::by_reads((history, index), &found)
        .and_then(|start| shrunk_at((history, index), shown_at, start, options, limits));
    Some(told.filter(|told| !seen::is_general(told.anomaly.kind)).unwrap_or(found))
}

/// What a part is of.
struct Whole<'a> {
    history: &'a History,
    index: &'a Index,
    options: Options,
    limits: &'a Limits<'a>,
}

impl Whole<'_> {
    /// Whether all of it breaks a level that a part breaks, given one that both break: a part with
    /// lists that have become those of others may break more, and so may one without lists that
    /// contradict each other.
    fn breaks(&self, part: &Selection, broken: Level, level: Level) -> bool {
        let is_implied = level == broken || level.weaker_than().contains(&broken);
        let same = self.index.conflicts().is_empty() && part.keeps_lists(self.history, self.index);
        is_implied || same || {
            let check = Check::new(self.history, self.index, self.limits);
            matches!(check.with_options(self.options).decide(level), Verdict::Violated(_))
        }
    }
}

/// A part that violates a level.
struct Start {
    selection: Selection,
    /// What stays of it as long as anything else can go.
    kept: Vec<OpId>,
}

/// The same of a level that no weaker one says more than.
fn shrunk_at(
    (history, index): (&History, &Index),
    shown_at: Level,
    start: Start,
    options: Options,
    limits: &Limits<'_>,
) -> Option<Explanation> {
    let mut shrinker = Shrinker::new((history, index), shown_at, options, limits, start.selection);
    shrinker.work_left = (WORK_FACTOR * work_of(history)).clamp(WORK_LEAST, WORK_MAX);
    if !start.kept.is_empty() {
        shrinker.kept = start.kept;
        shrinker.run(Keep::OnlyWhatIsNeeded);
        shrinker.kept.clear();
    }
    shrinker.run(Keep::OnlyWhatIsNeeded);
    let is_minimal = shrinker.is_done;
    let part = Part::new(history, index, &shrinker.selection);
    if !is_minimal && part.history.txn_count() > UNFINISHED_TXNS_MAX {
        return None;
    }
    let mut rules_out = ruled_out(&part.history, options, limits);
    let whole = Whole { history, index, options, limits };
    rules_out.retain(|&it| whole.breaks(&shrinker.selection, shown_at, it));
    let mut anomaly = argue(&part.history, shown_at, options, limits)?;
    // A read skew as a weaker level names it, though the level asked for need not imply that one:
    // half of a transaction was seen, whether sessions are asked for or not, and only levels with
    // session order imply the one that says so.
    if anomaly.kind == AnomalyKind::ReadSkew {
        let named_at = rules_out.iter().copied().find(|&weaker| weaker < shown_at);
        let specific = named_at.and_then(|it| argue(&part.history, it, options, limits));
        let is_same = |specific: &Anomaly| {
            shown_at.forbids(specific.kind)
                && names_all(&part.history, specific)
                && is_admissible(&part.history, shown_at, specific)
        };
        anomaly = specific.filter(is_same).unwrap_or(anomaly);
    }
    if anomaly.kind == AnomalyKind::UnexplainedOperation {
        name_all(&part.history, &mut anomaly);
    }
    let of_part = (&part.history, &Index::new(&part.history));
    let anomaly = back::to_whole(&part, with_conflicts(of_part, shown_at, anomaly));
    let rests_on = shrinker.selection;
    Some(Explanation { anomaly, shown_at, rules_out, rests_on, is_minimal })
}

/// Operations that show a violation by themselves.
fn by_operations(
    (history, index): (&History, &Index),
    (level, anomaly): (Level, &Anomaly),
    ops: &[OpId],
    options: Options,
    limits: &Limits<'_>,
) -> Explanation {
    let mut rules_out = stronger(level);
    let part = Part::new(history, index, &seeds::supported(history, index, ops));
    rules_out.extend(ruled_out(&part.history, options, limits));
    rules_out.extend(single_operation::ruled_out(history, anomaly));
    if is_mismatch_of_versions(&part.history, anomaly) {
        for weakest in [Level::Prefix, Level::SnapshotIsolation] {
            if is_violated(history, weakest, options, limits) {
                rules_out.extend(stronger(weakest));
            }
        }
    }
    rules_out.sort_unstable();
    rules_out.dedup();
    let mut ops = ops.to_vec();
    ops.sort_unstable();
    ops.dedup();
    Explanation {
        anomaly: anomaly.clone(),
        shown_at: level,
        rules_out,
        rests_on: Selection { ops, ..Selection::default() },
        is_minimal: true,
    }
}

/// Whether it takes the versions of the whole history, and not the rows of this part alone, to
/// see that a result is wrong: a snapshot that the database told, or versions none of which fit.
/// Levels that do not imply each other ask for that alike.
fn is_mismatch_of_versions(part: &History, anomaly: &Anomaly) -> bool {
    let is_mismatch = |anomaly: &Anomaly| anomaly.kind == AnomalyKind::ResultSetMismatch;
    is_mismatch(anomaly) && !found_by_reading(part, &Index::new(part)).iter().any(is_mismatch)
}

fn stronger(level: Level) -> Vec<Level> {
    let mut levels = vec![level];
    levels.extend(level.stronger_than());
    levels.sort_unstable();
    levels
}

/// The anomaly of a small history.
fn argue(
    history: &History,
    level: Level,
    options: Options,
    limits: &Limits<'_>,
) -> Option<Anomaly> {
    let index = Index::new(history);
    // Levels that only order commits have no argument of their own. That of snapshot
    // isolation, which implies them, does as well if it is about the same transactions.
    let argued_at = match level {
        Level::ParallelSnapshotIsolation | Level::UpdateAtomic => Level::SnapshotIsolation,
        level => level,
    };
    if let Some(evidence) = strong::argue(argued_at, (history, &index), options) {
        let anomaly = naming::of_argument(history, level, evidence);
        let is_of_level = || {
            level.forbids(anomaly.kind)
                && names_all(history, &anomaly)
                && is_admissible(history, level, &anomaly)
        };
        if argued_at == level || is_of_level() {
            return Some(anomaly);
        }
    }
    let verdict = Check::new(history, &index, limits).with_options(options).decide(level);
    let Verdict::Violated(violated) = verdict else { return None };
    let first = violated.anomalies.into_iter().next().map(|it| naming::plainly(history, it));
    let first = first.map(|anomaly| match &violated.proof {
        Some(proof) => in_depth(anomaly, proof),
        None => anomaly,
    });
    first
        .or_else(|| of_objects(history, level, limits))
        .or_else(|| {
            // In each way that it can be understood there is but one, so this ends.
            let argue_way = |history: &History| argue(history, level, options, limits);
            Interpretations::of(history, &index)?.argue(argue_way)
        })
        .or_else(|| of_everything(history, options, limits))
}

/// What cannot be told but by all that was done. Of one aggregate and writes it is that one
/// which was computed of what was not there, if it is so without sessions and times; it comes
/// first.
fn of_everything(history: &History, options: Options, limits: &Limits<'_>) -> Option<Anomaly> {
    let ops: Vec<OpId> = history.txns().flat_map(|txn| history.ops_of(txn)).collect();
    let mut keys = ops.iter().map(|&op| history.op(op).key);
    let key = keys.find(|key| key.index() < history.key_count()).or(history.keys().next());
    let key = key.unwrap_or(NO_KEY);
    let mut others = ops.iter().filter(|&&op| !history.op(op).kind.is_write());
    if let (Some(&only), None) = (others.next(), others.next())
        && history.op(only).kind == OpKind::PredicateRead
        && history.predicate(only).aggregate.is_some()
        && ruled_out(history, options, limits).contains(&Level::SnapshotIsolation)
    {
        let writes = ops.iter().copied().filter(|&op| op != only);
        let ops = std::iter::once(only).chain(writes).collect();
        return Some(of_operations(history, AnomalyKind::ResultSetMismatch, key, ops));
    }
    ops.first()?;
    Some(of_operations(history, AnomalyKind::NoVersionOrder, key, ops))
}

/// What is not linearizable, if every transaction is one operation on one object: where all
/// orders of transactions were tried in vain, that says more. These levels are the same then:
/// an operation's begin and commit have nothing between them that could be seen.
fn of_objects(history: &History, level: Level, limits: &Limits<'_>) -> Option<Anomaly> {
    if !matches!(level, Level::StrictSerializable | Level::StrongSnapshotIsolation) {
        return None;
    }
    match linearizable::decide(history, limits, Reading::default())? {
        Verdict::Violated(violated) => violated.anomalies.into_iter().next(),
        _ => None,
    }
}

/// Whether an anomaly is about every transaction that there is.
fn names_all(history: &History, anomaly: &Anomaly) -> bool {
    let part = seeds::of(history, &Index::new(history), anomaly, None);
    part.txns(history).len() == history.txn_count()
}

/// Lets an operation that nothing explains stand before all others.
fn name_all(history: &History, anomaly: &mut Anomaly) {
    let Evidence::Operations { ops, .. } = &mut anomaly.evidence else { return };
    ops.truncate(1);
    // Each transaction is one operation, told by its last.
    let last = history.txns().filter_map(|txn| history.ops_of(txn).next_back());
    let mut others: Vec<OpId> = last.filter(|op| !ops.contains(op)).collect();
    others.sort_by_key(|&op| history.txn_interval(history.txn_of(op)).invoked);
    ops.extend(others);
    anomaly.txns = ops.iter().map(|&op| history.txn_of(op)).collect();
}

/// An operation that nothing explains, with who held the lock, the calls that leave no place
/// for it, or who left what the object held instead, if that can be told: plainer than any part of the history.
fn with_holders(history: &History, anomaly: &Anomaly, limits: &Limits<'_>) -> Option<Anomaly> {
    let Evidence::Operations { key, ops } = &anomaly.evidence else { return None };
    let unexplained = *ops.first()?;
    let account = linearizable::account(history, unexplained, limits)?;
    // What else was open then is no part of it if the calls that matter are known.
    let is_whole = matches!(account, Account::Window(_));
    let mut all = if is_whole { vec![unexplained] } else { ops.clone() };
    for op in account.ops() {
        if !all.contains(&op) {
            all.push(op);
        }
    }
    Some(of_operations(history, anomaly.kind, *key, all))
}

fn is_violated(history: &History, level: Level, options: Options, limits: &Limits<'_>) -> bool {
    let index = Index::new(history);
    let mut check = Check::new(history, &index, limits).with_options(options);
    matches!(check.decide(level), Verdict::Violated(_))
}

/// The weakest level that is violated and that `level` implies.
fn weakest(history: &History, level: Level, options: Options, limits: &Limits<'_>) -> Level {
    let index = Index::new(history);
    let mut check = Check::new(history, &index, limits).with_options(options);
    let mut weaker = level.weaker_than();
    weaker.sort_unstable();
    let decided = applicable_levels(history);
    if check.values_repeat() {
        // One that holds saves the search for the writers of all weaker ones.
        let asked = weaker.iter().rev().filter(|level| decided.contains(level));
        asked.for_each(|&level| drop(check.decide(level)));
    }
    let is_violated = |level: &Level| {
        decided.contains(level) && matches!(check.decide(*level), Verdict::Violated(_))
    };
    weaker.into_iter().find(is_violated).unwrap_or(level)
}

fn ruled_out(history: &History, options: Options, limits: &Limits<'_>) -> Vec<Level> {
    let index = Index::new(history);
    let mut check = Check::new(history, &index, limits).with_options(options);
    let mut levels = applicable_levels(history);
    let mut ruled_out: Vec<Level> = Vec::new();
    levels.sort_unstable();
    for level in levels {
        let settled = level.weaker_than().iter().any(|weaker| ruled_out.contains(weaker));
        if settled || matches!(check.decide(level), Verdict::Violated(_)) {
            ruled_out.push(level);
        }
    }
    ruled_out
}
