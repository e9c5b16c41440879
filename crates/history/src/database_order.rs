//! Orders of versions that a database gave, and what their entries stand for.
//!
//! An entry names a version by its value. Where several operations wrote the value, as all
//! removals of a row write nil, it stands for
//!
//! 1. the one whose transaction has the number that the database told with the entry;
//! 2. else the one whose transaction had the version of the entry before it when it wrote: it
//!    had written that one itself, or found its value by the condition of the same update. Who
//!    removes a row removes the version that it found. A read by another operation tells
//!    nothing, as that may have been replaced meanwhile, and neither does an entry before it
//!    that is one of several writes of its value by one transaction: it may be any of them;
//! 3. else the one that no other entry stands for, if only one transaction is left.
//!
//! Entries of one value and one transaction stand for its writes in the order it made them.
//!
//! The initial version comes first or not at all. An entry that is still open tells nothing.

use crate::history::{History, KeyId, OpId, OpKind, Outcome, TxnId};
use crate::snapshot::{NO_NUMBER, NO_SNAPSHOT, SnapshotColumns};
use crate::value::Value;
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;

/// Orders that a database revealed about its own execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenOrders {
    /// Per key, chains of values in the order they were installed.
    pub versions: Vec<VersionChain>,
    /// All committed transactions in the order the database serialized them.
    pub total: Option<Vec<TxnId>>,
}

/// A known part of one key's version order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionChain {
    /// The key.
    pub key: KeyId,
    /// Values, first installed first.
    pub values: Vec<Value>,
    /// Places among the values, ascending, with the database's number of the transaction that
    /// wrote there, where it told.
    pub numbers: Vec<(u32, u64)>,
    /// Whether these are all versions of the key.
    pub complete: bool,
}

/// What an entry of a [`VersionChain`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    /// The version before all writes. At another place than the first it contradicts that.
    Initial,
    /// This write.
    Write(OpId),
    /// One of several writes, and nothing tells which.
    Open,
    /// Nobody wrote it.
    Nobody,
}

impl VersionChain {
    /// What each entry stands for; `writes_of` gives all writes of a value to the key.
    pub fn named(&self, history: &History, writes_of: &dyn Fn(Value) -> Vec<OpId>) -> Vec<Named> {
        let initial = history.initial(self.key);
        let mut named = Vec::with_capacity(self.values.len());
        let mut repeated: BTreeMap<Value, Vec<usize>> = BTreeMap::new();
        for (place, &value) in self.values.iter().enumerate() {
            named.push(match *writes_of(value) {
                [] if value == initial => Named::Initial,
                [] => Named::Nobody,
                [only] if value != initial => Named::Write(only),
                _ => {
                    repeated.entry(value).or_default().push(place);
                    Named::Open
                }
            });
        }
        for (value, mut places) in repeated {
            let mut writes = writes_of(value);
            writes.retain(|&op| history.outcome(history.txn_of(op)) != Outcome::Aborted);
            if places[0] == 0 && value == initial {
                self.name_first(&mut named, &mut places, writes.len());
            }
            self.name_repeated(history, &mut named, &places, writes);
        }
        named
    }

    /// The same with only these entries.
    pub(crate) fn keeping(&self, is_kept: impl Fn(usize) -> bool) -> VersionChain {
        let kept: Vec<usize> = (0..self.values.len()).filter(|&place| is_kept(place)).collect();
        let number = |(new, place): (u32, &usize)| Some((new, self.number(*place)?));
        VersionChain {
            values: kept.iter().map(|&place| self.values[place]).collect(),
            numbers: (0..).zip(&kept).filter_map(number).collect(),
            ..*self
        }
    }

    /// Decides whether the first entry is the initial version, which its value says it may be.
    fn name_first(&self, named: &mut [Named], places: &mut Vec<usize>, writes: usize) {
        if self.complete && places.len() == writes {
            return;
        }
        if self.complete && places.len() > writes {
            named[0] = Named::Initial;
        }
        places.remove(0);
    }

    /// Names the entries of one value, which these operations wrote.
    fn name_repeated(
        &self,
        history: &History,
        named: &mut [Named],
        places: &[usize],
        mut left: Vec<OpId>,
    ) {
        let number = |op: OpId| {
            let is_told = !self.numbers.is_empty();
            is_told.then(|| history.number(history.txn_of(op))).flatten()
        };
        let by_number = grouped(&left, number);
        let by_own = grouped(&left, |op| own_before(history, self.key, op));
        let by_found = grouped(&left, |op| match own_before(history, self.key, op) {
            Some(_) => None,
            None => found_before(history, self.key, op),
        });
        let mut taken: HashSet<OpId> = HashSet::new();
        for &place in places {
            let candidates = if let Some(told) = self.number(place) {
                by_number.get(&told)
            } else if let Some(Named::Write(before)) = place.checked_sub(1).map(|it| named[it])
                && is_only(history, before)
            {
                by_own.get(&before).or_else(|| by_found.get(&history.op(before).value))
            } else {
                None
            };
            let candidates = candidates.map_or(&[][..], Vec::as_slice);
            if are_of_one(history, candidates)
                && let Some(&op) = candidates.iter().find(|op| !taken.contains(*op))
            {
                taken.insert(op);
                named[place] = Named::Write(op);
            }
        }
        left.retain(|op| !taken.contains(op));
        if are_of_one(history, &left) {
            let open = places.iter().filter(|&&place| named[place] == Named::Open);
            let open: Vec<usize> = open.copied().collect();
            for (place, op) in open.into_iter().zip(left) {
                named[place] = Named::Write(op);
            }
        }
        sort_within_txns(history, named, places);
    }

    /// The number of the transaction that wrote an entry, if the database told it.
    pub(crate) fn number(&self, place: usize) -> Option<u64> {
        let entry = self.numbers.binary_search_by_key(&(place as u32), |entry| entry.0).ok()?;
        Some(self.numbers[entry].1)
    }
}

/// Names the entries of one transaction among these in the order of its writes. They were named
/// as they were found out, and nothing but their order tells them apart.
fn sort_within_txns(history: &History, named: &mut [Named], places: &[usize]) {
    let mut by_txn: HashMap<TxnId, (Vec<usize>, Vec<OpId>)> = HashMap::new();
    for &place in places {
        if let Named::Write(op) = named[place] {
            let (places, ops) = by_txn.entry(history.txn_of(op)).or_default();
            places.push(place);
            ops.push(op);
        }
    }
    for (places, mut ops) in by_txn.into_values() {
        ops.sort_unstable();
        for (place, op) in places.into_iter().zip(ops) {
            named[place] = Named::Write(op);
        }
    }
}

fn grouped<K: std::hash::Hash + Eq>(
    ops: &[OpId],
    group: impl Fn(OpId) -> Option<K>,
) -> HashMap<K, Vec<OpId>> {
    let mut groups: HashMap<K, Vec<OpId>> = HashMap::new();
    for &op in ops {
        if let Some(group) = group(op) {
            groups.entry(group).or_default().push(op);
        }
    }
    groups
}

/// Whether there are operations, and all of one transaction.
fn are_of_one(history: &History, ops: &[OpId]) -> bool {
    let mut txns = ops.iter().map(|&op| history.txn_of(op));
    let first = txns.next();
    first.is_some() && txns.all(|txn| Some(txn) == first)
}

/// Whether a write is the only one of its value to its key by its transaction.
fn is_only(history: &History, write: OpId) -> bool {
    let it = history.op(write);
    let is_same = |op: &OpId| {
        let other = history.op(*op);
        other.kind.is_write() && (other.key, other.value) == (it.key, it.value)
    };
    history.ops_of(history.txn_of(write)).filter(is_same).count() == 1
}

/// The operations of a write's transaction before it, the nearest first.
fn earlier(history: &History, write: OpId) -> impl Iterator<Item = OpId> {
    let start = history.op_range(history.txn_of(write)).start;
    (start..write.0).rev().map(OpId)
}

/// What the transaction had written to the key itself.
fn own_before(history: &History, key: KeyId, write: OpId) -> Option<OpId> {
    earlier(history, write).find(|&op| {
        let it = history.op(op);
        it.kind.is_write() && it.key == key
    })
}

/// What an update by condition, of which the write is a part, says that it found of the key.
fn found_before(history: &History, key: KeyId, write: OpId) -> Option<Value> {
    let update = earlier(history, write)
        .find(|&op| !matches!(history.op(op).kind, OpKind::Write | OpKind::Delete))
        .filter(|&op| history.op(op).kind == OpKind::PredicateUpdate)?;
    let rows = &history.predicate(update).rows;
    let row = rows.iter().find(|row| row.key == key && row.matched)?;
    (row.value != Value::UNKNOWN).then_some(row.value)
}

/// Puts in place of each number that no transaction has the least one of a transaction from it
/// on, if what that one saw ended before it.
pub(crate) fn settle_numbers(chains: &mut [VersionChain], snapshots: &SnapshotColumns) {
    if chains.iter().all(|chain| chain.numbers.is_empty()) {
        return;
    }
    let below = |txn: usize| {
        let place = snapshots.of_txns.get(txn).copied().unwrap_or(NO_SNAPSHOT);
        snapshots.table.get(place as usize).map_or(u64::MAX, |snapshot| snapshot.below)
    };
    let numbered = snapshots.numbers.iter().enumerate().filter(|entry| *entry.1 != NO_NUMBER);
    let mut sorted: Vec<(u64, u64)> = numbered.map(|(txn, &it)| (it, below(txn))).collect();
    sorted.sort_unstable();
    for (_, number) in chains.iter_mut().flat_map(|chain| &mut chain.numbers) {
        let next = sorted.partition_point(|&(it, _)| it < *number);
        if let Some(&(next, below)) = sorted.get(next)
            && below <= *number
        {
            *number = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::parse_text;

    /// What the entries of the first chain stand for, by the names of transactions.
    fn check(text: &str, expected: &str) {
        check_by(text, &|history, op| history.txn_name(history.txn_of(op)), expected);
    }

    /// The same by the places of operations.
    fn check_ops(text: &str, expected: &str) {
        check_by(text, &|_, op| op.0.to_string(), expected);
    }

    fn check_by(text: &str, name: &dyn Fn(&History, OpId) -> String, expected: &str) {
        let history = parse_text(text).expect("a well-formed history");
        let chain = &history.orders().versions[0];
        let writes_of = |value: Value| {
            let all = (0..history.op_count() as u32).map(OpId);
            let is_one = |op: &OpId| {
                let it = history.op(*op);
                it.kind.is_write() && it.key == chain.key && it.value == value
            };
            all.filter(is_one).collect()
        };
        let names = chain.named(&history, &writes_of).into_iter().map(|named| match named {
            Named::Initial => "initial".to_owned(),
            Named::Write(op) => name(&history, op),
            Named::Open => "?".to_owned(),
            Named::Nobody => "nobody".to_owned(),
        });
        assert_eq!(names.collect::<Vec<_>>().join(" "), expected, "{text}");
    }

    #[test]
    fn the_only_removal_is_the_one_behind_a_write() {
        check("A: w(x,5)\nB: d(x)\nC: w(x,7)\norder x complete: 5 nil 7\n", "A B C");
        check("A: w(x,5)\nB: d(x)\norder x: nil 5\n", "? A");
        check("A: w(x,5)\nB: d(x)\norder x complete: nil 5 nil\n", "initial A B");
        check("A: w(x,5)\nB: d(x)\norder x complete: nil 5\n", "B A");
    }

    #[test]
    fn who_removes_a_row_removes_the_version_that_it_found() {
        let text = "A: w(x,5)\nB: w(x,7)\nC: u(value 5..6; x=5) d(x)\nD: d(x)\n";
        check(&format!("{text}order x complete: 5 nil 7 nil\n"), "A C B D");
        check("A: w(x,5) d(x)\nB: w(x,7)\nD: d(x)\norder x: 7 nil 5 nil\n", "B D A A");
    }

    #[test]
    fn the_database_may_tell_who_removed_a_row() {
        let text = "A: w(x,5)\nB: w(x,7)\nC id=3: d(x)\nD id=9: d(x)\n";
        check(&format!("{text}order x complete: 5 nil 7 nil\n"), "A ? B ?");
        check(&format!("{text}order x complete: 5 nil@9 7 nil@3\n"), "A D B C");
    }

    #[test]
    fn entries_of_one_transaction_are_its_writes_in_their_order() {
        check_ops("A id=2: d(x) d(x)\nB: w(x,2)\norder x complete: nil nil@2 2\n", "0 1 2");
    }

    #[test]
    fn a_removal_among_several_of_one_transaction_tells_nothing_of_the_next() {
        let text = "A id=2: d(x) d(x)\nB: d(x)\nC: w(x,1)\n";
        check(&format!("{text}order x complete: 1 nil nil@2 nil\n"), "C ? A ?");
    }

    #[test]
    fn two_who_found_one_version_leave_open_who_removed_it() {
        let text = "A: w(x,5)\nB: w(x,7)\nC: u(all; x=5) d(x)\nD: u(all; x=5) d(x)\n";
        check(&format!("{text}order x complete: 5 nil 7 nil\n"), "A ? B ?");
    }
}
