//! Values that repeat: rounds cannot tell which of their writers was read.
//!
//! What earlier rounds left is known by its value, and what was there before everything by
//! being written by nobody. Where a value has several writers, or was read before the only one
//! of them can have written it, both may be wrong, and so may be every verdict.

use super::Segment;
use super::epoch::RoundTxn;
use crate::online::trace::{Content, Time};
use hashbrown::HashMap;
use isolde_history::Outcome;

/// What is looked at.
pub(super) struct Repeated<'a> {
    pub(super) segments: &'a [Segment],
    pub(super) lost: &'a [RoundTxn],
    /// Last versions before everything that is kept.
    pub(super) state: &'a HashMap<u32, Content>,
    /// Whether keys that are not in `state` are known to be unwritten.
    pub(super) is_state_whole: bool,
    pub(super) unwritten: Option<Content>,
    pub(super) drift: Time,
}

/// Who wrote a value.
struct Writers {
    count: u32,
    /// When the first of them began.
    begun: Time,
    is_repeated: bool,
}

impl Repeated<'_> {
    /// How many values repeat. That there is nothing may be written any number of times.
    pub(super) fn count(&self) -> usize {
        let mut values: HashMap<(u32, Content), Writers> = HashMap::new();
        let mut write = |value: (u32, Content), begun: Time| {
            let new = Writers { count: 0, begun, is_repeated: false };
            let writers = values.entry(value).or_insert(new);
            writers.count += 1;
            writers.begun = writers.begun.min(begun);
        };
        for (&item, &content) in self.state {
            write((item, content), Time::MIN);
        }
        for segment in self.segments {
            if let Segment::Summary(summary) = segment {
                let versions = summary.versions.iter();
                versions.for_each(|(&item, &content)| write((item, content), summary.from));
            }
        }
        for txn in self.txns() {
            txn.writes().into_iter().for_each(|value| write(value, txn.begin.invoked));
        }
        for txn in self.txns() {
            for value in self.read_too_early(txn, &values) {
                if let Some(writers) = values.get_mut(&value) {
                    writers.is_repeated = true;
                }
            }
        }
        let is_repeated = |(value, writers): &(&(u32, Content), &Writers)| {
            value.1 != Content::ABSENT
                && (writers.is_repeated || writers.count > 1 || self.unwritten == Some(value.1))
        };
        values.iter().filter(is_repeated).count()
    }

    /// Transactions that may have taken effect.
    fn txns(&self) -> impl Iterator<Item = &RoundTxn> {
        let epochs = self.segments.iter().filter_map(|segment| match segment {
            Segment::Epoch(epoch) => Some(&epoch.txns),
            Segment::Summary(_) => None,
        });
        let all = epochs.flatten().chain(self.lost);
        all.filter(|txn| txn.outcome != Outcome::Aborted)
    }

    /// What a transaction read of items whose state is not known, before the first that wrote
    /// it can have done so: itself, later on, or one that had not begun.
    fn read_too_early(
        &self,
        txn: &RoundTxn,
        values: &HashMap<(u32, Content), Writers>,
    ) -> Vec<(u32, Content)> {
        if self.is_state_whole {
            return Vec::new();
        }
        let own = txn.writes();
        let ended = txn.commit.completed.saturating_add(self.drift);
        let reads = txn.outer_reads().map(|op| (op.item, op.content));
        reads
            .filter(|value| !self.state.contains_key(&value.0))
            .filter(|value| {
                let is_early = values.get(value).is_some_and(|writers| ended < writers.begun);
                own.contains(value) || is_early
            })
            .collect()
    }
}
