//! What the join found, and which transactions count by it.

use super::lists::external_part;
use super::own::OwnWrites;
use super::writes::Writes;
use super::{Choice, Misread, Origin, PackedOrigin, ReadId, SeveralOrigins, may_count};
use crate::history::{History, KeyId, Op, OpId, OpKind, Outcome, TxnId};
use hashbrown::HashMap;
use std::ops::Range;

/// The result of the join, in the order of transactions.
#[derive(Default)]
pub(super) struct Joined {
    pub(super) starts: Vec<u32>,
    pub(super) keys: Vec<KeyId>,
    pub(super) origins: Vec<PackedOrigin>,
    pub(super) ops: Vec<OpId>,
    pub(super) misreads: Vec<Misread>,
    pub(super) several: Vec<SeveralOrigins>,
    /// Whether a read has candidates that [`Candidates::Final`] leaves out.
    pub(super) has_lesser: bool,
}

/// What a task found beside reads.
#[derive(Default)]
pub(super) struct Found {
    pub(super) reads: usize,
    pub(super) misreads: Vec<Misread>,
    pub(super) several: Vec<SeveralOrigins>,
    pub(super) has_lesser: bool,
}

impl Joined {
    /// Closes the gaps that reads of own writes left between the tasks' parts. Of each are
    /// given its transactions, how many reads it had room for, and what it found.
    pub(super) fn put_together(&mut self, found: impl Iterator<Item = (Range<u32>, usize, Found)>) {
        let (mut from, mut to) = (0, 0);
        for (txns, room, part) in found {
            if from != to {
                self.keys.copy_within(from..from + part.reads, to);
                self.origins.copy_within(from..from + part.reads, to);
                self.ops.copy_within(from..from + part.reads, to);
            }
            for start in &mut self.starts[txns.start as usize..txns.end as usize] {
                *start += to as u32;
            }
            self.misreads.extend(part.misreads);
            self.has_lesser |= part.has_lesser;
            self.several.extend(part.several.into_iter().map(|mut several| {
                several.read.0 += to as u32;
                several
            }));
            from += room;
            to += part.reads;
        }
        self.truncate(to);
    }

    fn truncate(&mut self, count: usize) {
        *self.starts.last_mut().expect("there is one more than transactions") = count as u32;
        self.keys.truncate(count);
        self.origins.truncate(count);
        self.ops.truncate(count);
        if count < self.ops.capacity() / 8 * 7 {
            self.keys.shrink_to_fit();
            self.origins.shrink_to_fit();
            self.ops.shrink_to_fit();
        }
    }

    /// Settles reads of repeated values.
    pub(super) fn choose(&mut self, choices: &[Choice]) {
        if choices.is_empty() {
            return;
        }
        let chosen: HashMap<(OpId, KeyId), Origin> =
            choices.iter().map(|choice| ((choice.op, choice.key), choice.origin)).collect();
        let Joined { ops, keys, origins, several, .. } = self;
        several.retain(|several| {
            let read = several.read.0 as usize;
            match chosen.get(&(ops[read], keys[read])) {
                Some(Origin::Txn(txn)) => origins[read] = PackedOrigin(txn.0),
                Some(Origin::Initial) => origins[read] = PackedOrigin::INITIAL,
                Some(Origin::Nobody) => origins[read] = PackedOrigin::NOBODY,
                Some(Origin::Several) | None => return true,
            }
            false
        });
    }

    /// Which transactions count: committed ones, and unknown ones that a counted
    /// one observed.
    pub(super) fn counted(
        &self,
        history: &History,
        writes: &Writes,
        own: &OwnWrites<'_>,
    ) -> Vec<bool> {
        let outcomes = history.outcomes();
        let mut counted: Vec<bool> =
            outcomes.iter().map(|&outcome| outcome == Outcome::Committed).collect();
        if !outcomes.contains(&Outcome::Unknown) {
            return counted;
        }
        let mut open: Vec<TxnId> = history.txns().filter(|txn| counted[txn.index()]).collect();
        // Lists that share their elements are looked at once, up to the longest.
        let mut seen_to: HashMap<u32, usize> = HashMap::new();
        let mut observed: Vec<TxnId> = Vec::new();
        while let Some(txn) = open.pop() {
            observed.clear();
            let range = self.starts[txn.index()] as usize..self.starts[txn.index() + 1] as usize;
            for origin in &self.origins[range] {
                if let Origin::Txn(writer) = origin.unpack() {
                    observed.push(writer);
                }
            }
            for op in history.ops_of(txn) {
                let Op { kind, key, .. } = history.op(op);
                if kind == OpKind::ReadList {
                    let Some(list) = external_part(history, own, txn, op) else { continue };
                    let seen = seen_to.entry(history.list_span(op).0).or_insert(0);
                    for &element in list.iter().skip(*seen) {
                        if let [only] = &*writes.with_value(history, key, element) {
                            observed.push(only.txn);
                        }
                    }
                    *seen = list.len().max(*seen);
                }
            }
            for &writer in &observed {
                if !counted[writer.index()] && may_count(history, writer) {
                    counted[writer.index()] = true;
                    open.push(writer);
                }
            }
        }
        counted
    }

    /// Drops what transactions that do not count read.
    pub(super) fn forget_uncounted(&mut self, history: &History, counted: &[bool]) {
        self.misreads.retain(|misread| counted[history.txn_of(misread.read).index()]);
        let mut moved: Vec<u32> = Vec::new();
        let several = !self.several.is_empty();
        let mut kept = 0;
        for (txn, &counts) in counted.iter().enumerate() {
            let range = self.starts[txn] as usize..self.starts[txn + 1] as usize;
            self.starts[txn] = kept as u32;
            for index in range {
                if several {
                    moved.push(if counts { kept as u32 } else { u32::MAX });
                }
                if counts {
                    self.keys[kept] = self.keys[index];
                    self.origins[kept] = self.origins[index];
                    self.ops[kept] = self.ops[index];
                    kept += 1;
                }
            }
        }
        self.truncate(kept);
        self.several.retain_mut(|several| {
            several.read = ReadId(moved[several.read.0 as usize]);
            several.read.0 != u32::MAX
        });
    }
}
