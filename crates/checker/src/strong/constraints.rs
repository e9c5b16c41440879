//! How many choices a history leaves, before and after saturation.
//!
//! Counted as in Table 3 of `PolySI`, so that the two can be compared: a *constraint* is
//! two transactions that write the same key, and its *dependencies* are the edges of
//! both of its sides: from each writer to the other, and from each reader of the one to
//! the other. Before saturation the initial state is a writer too, of the keys whose
//! initial value somebody read; it is known to be the first, so it is never open. The
//! paper does not say whether it counts it; of counting it never, there or always, this
//! comes closest to its figures, without being equal to them.

use super::Options;
use super::clocks::Clocks;
use super::decision::{CLOCK_BYTES_MAX, Decision};
use super::model::Model;
use super::orders::witness::guess;
use super::repeated::{Refused, repeated_reads};
use super::runs::Runs;
use super::saturate::{Saturated, Saturation};
use super::versions::{Slot, Versions};
use crate::level::Level;
use crate::limits::Limits;
use isolde_history::{History, Index, KeyId};
use std::ops::AddAssign;

/// Choices between two orders of versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Constraints {
    /// Pairs of transactions that write the same key.
    pub pairs: u64,
    /// Edges that depend on them.
    pub dependencies: u64,
}

impl AddAssign for Constraints {
    fn add_assign(&mut self, other: Constraints) {
        self.pairs += other.pairs;
        self.dependencies += other.dependencies;
    }
}

/// What a history leaves open at a strong level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// All pairs, with the initial state as a writer of what was read of it.
    pub before: Constraints,
    /// Those of keys whose order read-modify-writes, lists or given orders do not show.
    pub open: Constraints,
    /// Those that saturation leaves undecided: what a solver would have to decide.
    pub after: Constraints,
}

/// Counts the choices that a history leaves at a level, with session order where the
/// level has it. `None` if the level is not a strong one, if values repeat, or if
/// known edges alone already refute it.
///
/// A check saturates only if the solver finds it hard; this always does.
pub fn constraints(history: &History, index: &Index, level: Level) -> Option<Pruned> {
    let model = Model::of(level)?;
    let options = Options::default();
    let mut versions = Versions::new(history, index, model, options.sources);
    versions.find_conditions(model, &|| false);
    if !repeated_reads(model, &versions, Refused::Tried).ok()?.is_empty()
        || !versions.divergences.is_empty()
    {
        return None;
    }
    let mut before = Constraints::default();
    history.keys().for_each(|key| before += pairs_of(&versions, key));
    before += pairs_with_initial(&versions);
    let mut open = Constraints::default();
    versions.open_keys().for_each(|key| open += pairs_of(&versions, key));
    let mut decision = Decision::new(model, &versions, &[], options, &Limits::NONE);
    if !model.session {
        decision.give_up_all();
    }
    let decided = decided_by_saturation(&decision, &versions)?;
    let after = Constraints {
        pairs: open.pairs - decided.pairs,
        dependencies: open.dependencies - decided.dependencies,
    };
    Some(Pruned { before, open, after })
}

fn decided_by_saturation(decision: &Decision<'_>, versions: &Versions<'_>) -> Option<Constraints> {
    let mut graph = decision.explained_graph();
    let order = guess(&graph, versions, decision.options.sources).ok()?;
    let cover = decision.cover(&graph, &order, CLOCK_BYTES_MAX);
    let runs = Runs::new(versions, &cover);
    let clocks = Clocks::new(&graph, &cover);
    let mut saturation = Saturation { versions, cover: &cover, runs: &runs, clocks, rounds: 0 };
    let Saturated::Fixpoint(_) = saturation.run(&mut graph, order, None, decision.limits) else {
        return None;
    };
    let mut decided = Constraints::default();
    saturation.for_each_decided(&graph, |before, after| {
        decided += pair(versions, before, after);
    });
    Some(decided)
}

/// All pairs of versions of one key.
fn pairs_of(versions: &Versions<'_>, key: KeyId) -> Constraints {
    let slots = versions.slots_of(key);
    let writers = slots.len() as u64;
    let mut sum = Constraints::default();
    if writers == 0 {
        return sum;
    }
    sum.pairs = writers * (writers - 1) / 2;
    sum.dependencies = 2 * sum.pairs;
    for slot in slots {
        for &read in versions.reads_of(slot) {
            // There is no edge from a transaction to itself.
            let writes = versions.index.writes(versions.reader(read), key);
            sum.dependencies += writers - 1 - u64::from(writes);
        }
    }
    sum
}

/// Pairs of a version and the initial one, of keys whose initial value was read.
fn pairs_with_initial(versions: &Versions<'_>) -> Constraints {
    let mut sum = Constraints::default();
    for reads in versions.initial_reads().chunk_by(|one, other| one.0 == other.0) {
        let key = reads[0].0;
        let slots = versions.slots_of(key);
        let writers = slots.len() as u64;
        sum.pairs += writers;
        sum.dependencies += 2 * writers;
        for &(_, read) in reads {
            let writes = versions.index.writes(versions.reader(read), key);
            sum.dependencies += writers - u64::from(writes);
        }
        sum.dependencies += slots.map(|slot| versions.reads_of(slot).len() as u64).sum::<u64>();
    }
    sum
}

/// A pair of versions with its dependencies.
fn pair(versions: &Versions<'_>, one: Slot, other: Slot) -> Constraints {
    let readers = |seen: Slot, writer: Slot| {
        let writer = versions.writer(writer);
        let reads = versions.reads_of(seen).iter();
        reads.filter(|&&read| versions.reader(read) != writer).count() as u64
    };
    Constraints { pairs: 1, dependencies: 2 + readers(one, other) + readers(other, one) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_history::{HistoryBuilder, OpKind, Value};

    /// Sessions of one transaction each, such as `r(1,0) w(1,2)`.
    fn counted(sessions: &[&str], level: Level) -> Option<Pruned> {
        let mut builder = HistoryBuilder::new();
        builder.initial_default(Value::small(0).expect("small"));
        for (number, text) in (0..).zip(sessions) {
            let session = builder.session(Value::small(number).expect("small"));
            builder.begin(session);
            for word in text.split_whitespace() {
                let (kind, rest) = word.split_at(1);
                let kind = if kind == "r" { OpKind::Read } else { OpKind::Write };
                let mut numbers = rest
                    .trim_matches(['(', ')'])
                    .split(',')
                    .map(|number| Value::small(number.parse().expect("a number")).expect("small"));
                let key = builder.key(numbers.next().expect("a key"));
                let value = numbers.next().expect("a value");
                builder.op(kind, key, value);
            }
        }
        let history = builder.finish("test").expect("well-formed");
        let index = Index::new(&history);
        constraints(&history, &index, level)
    }

    fn of(pairs: u64, dependencies: u64) -> Constraints {
        Constraints { pairs, dependencies }
    }

    #[test]
    fn two_blind_writes_stay_open_with_their_readers() {
        let sessions = ["w(1,1)", "w(1,2)", "r(1,1)", "r(1,2)", "r(1,2)"];
        let open = of(1, 5);
        let expected = Pruned { before: open, open, after: open };
        assert_eq!(counted(&sessions, Level::SessionSnapshotIsolation), Some(expected));
    }

    #[test]
    fn a_read_modify_write_leaves_nothing_open() {
        let sessions = ["w(1,1)", "r(1,1) w(1,2)", "r(1,1)"];
        let expected = Pruned { before: of(1, 3), open: of(0, 0), after: of(0, 0) };
        assert_eq!(counted(&sessions, Level::SessionSnapshotIsolation), Some(expected));
    }

    #[test]
    fn saturation_decides_what_follows_from_another_key() {
        let sessions = ["w(1,1) w(2,1)", "r(2,1) w(1,2)"];
        let expected = Pruned { before: of(1, 2), open: of(1, 2), after: of(0, 0) };
        assert_eq!(counted(&sessions, Level::SessionSnapshotIsolation), Some(expected));
    }

    #[test]
    fn the_initial_state_is_a_writer_where_it_was_read() {
        let sessions = ["r(1,0)", "w(1,1)", "w(1,2)", "r(1,2)", "w(2,1)"];
        let expected = Pruned { before: of(3, 10), open: of(1, 3), after: of(1, 3) };
        assert_eq!(counted(&sessions, Level::SessionSnapshotIsolation), Some(expected));
    }

    #[test]
    fn pairs_of_transactions_that_share_nothing_stay_open() {
        let sessions = ["w(1,1)", "w(1,2)", "w(2,1)", "w(2,2)", "r(1,1)"];
        let open = of(2, 5);
        let expected = Pruned { before: open, open, after: open };
        assert_eq!(counted(&sessions, Level::SessionSnapshotIsolation), Some(expected));
    }

    #[test]
    fn refuted_histories_and_weak_levels_are_not_counted() {
        let lost_update = ["w(1,1)", "r(1,1) w(1,2)", "r(1,1) w(1,3)"];
        assert_eq!(counted(&lost_update, Level::SessionSnapshotIsolation), None);
        assert_eq!(counted(&["w(1,1)"], Level::Causal), None);
    }
}
