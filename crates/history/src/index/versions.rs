//! All writes grouped by key and sorted by value: the build side of the join.

use super::marks::KeyMarks;
use crate::history::{History, KeyId, OpId, TxnId};
use crate::value::Value;
use hashbrown::HashMap;
use rayon::prelude::*;
use std::ops::Range;

/// One write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The value written.
    pub value: Value,
    /// The writing transaction.
    pub txn: TxnId,
    /// The write; the top bit is set if it is its transaction's last of the key.
    packed_op: u32,
}

const FINAL: u32 = 1 << 31;
/// Holds a place until the write is known.
const NONE: Version = Version { value: Value::NIL, txn: TxnId(u32::MAX), packed_op: 0 };

impl Version {
    /// The operation and whether it is its transaction's last write of the key, as
    /// [`Version::unpack`] takes them.
    #[inline]
    pub(super) fn pack(op: OpId, is_final: bool) -> u32 {
        debug_assert!(op.0 < FINAL, "operations fit in 31 bits");
        op.0 | if is_final { FINAL } else { 0 }
    }

    #[inline]
    pub(super) fn unpack(value: Value, txn: TxnId, packed_op: u32) -> Version {
        Version { value, txn, packed_op }
    }

    /// The writing operation.
    #[inline]
    pub fn op(self) -> OpId {
        OpId(self.packed_op & !FINAL)
    }

    /// Whether it is its transaction's last write of the key.
    #[inline]
    pub fn is_final(self) -> bool {
        self.packed_op & FINAL != 0
    }
}

pub(super) struct Versions {
    starts: Vec<u32>,
    sorted: Vec<Version>,
    /// The values of `sorted` again: a search touches a third of the memory.
    values: Vec<Value>,
}

impl Versions {
    pub(super) fn new(history: &History) -> Versions {
        let (kinds, keys) = (history.op_kinds(), history.op_keys());
        let values = history.op_values();
        let written = kinds.iter().zip(keys).filter(|(kind, _)| kind.is_write());
        let starts = group_starts(history.key_count(), written.map(|(_, &key)| key));
        let mut next = starts.clone();
        let mut versions = vec![NONE; starts[history.key_count()] as usize];
        let mut last_writes = LastWrites::default();
        for txn in history.txns() {
            let range = history.op_range(txn);
            last_writes.enter(history, range.clone());
            for op in range.rev() {
                let index = op as usize;
                if !kinds[index].is_write() {
                    continue;
                }
                let slot = &mut next[keys[index].index()];
                let packed_op = Version::pack(OpId(op), last_writes.contains(history, op));
                versions[*slot as usize] = Version { value: values[index], txn, packed_op };
                *slot += 1;
            }
        }
        sort_groups(&starts, &mut versions);
        let values = versions.iter().map(|version| version.value).collect();
        Versions { starts, sorted: versions, values }
    }

    /// From writes that come sorted by value.
    pub(super) fn of_sorted<I>(keys: usize, writes: impl Fn() -> I) -> Versions
    where
        I: Iterator<Item = (KeyId, Version)>,
    {
        let starts = group_starts(keys, writes().map(|(key, _)| key));
        let mut next = starts.clone();
        let mut sorted = vec![NONE; starts[keys] as usize];
        for (key, version) in writes() {
            let slot = &mut next[key.index()];
            sorted[*slot as usize] = version;
            *slot += 1;
        }
        let values = sorted.iter().map(|version| version.value).collect();
        Versions { starts, sorted, values }
    }

    pub(super) fn of(&self, key: KeyId) -> &[Version] {
        let range = self.starts[key.index()]..self.starts[key.index() + 1];
        &self.sorted[range.start as usize..range.end as usize]
    }

    /// The writes of one value to a key, in order of their operations.
    #[inline]
    pub(super) fn with_value(&self, key: KeyId, value: Value) -> &[Version] {
        let range = self.starts[key.index()] as usize..self.starts[key.index() + 1] as usize;
        let values = &self.values[range.clone()];
        let start = values.partition_point(|&other| other < value);
        let length = run(&values[start..], value);
        &self.sorted[range.start + start..range.start + start + length]
    }

    /// For each of `wanted`, the place in all versions of the first one with at
    /// least its value. The searches go step by step together, so that memory
    /// answers all of them at once instead of one after the other.
    pub(super) fn search(&self, wanted: &[(KeyId, Value)], places: &mut Vec<u32>) {
        places.clear();
        let mut sizes: Vec<u32> = Vec::with_capacity(wanted.len());
        let mut largest = 0;
        for &(key, _) in wanted {
            let (start, end) = (self.starts[key.index()], self.starts[key.index() + 1]);
            places.push(start);
            sizes.push(end - start);
            largest = largest.max(end - start);
        }
        while largest > 0 {
            largest /= 2;
            for ((place, size), &(_, value)) in places.iter_mut().zip(&mut sizes).zip(wanted) {
                if *size == 0 {
                    continue;
                }
                let half = *size / 2;
                let is_below = self.values[(*place + half) as usize] < value;
                *place += if is_below { half + 1 } else { 0 };
                *size = if is_below { *size - half - 1 } else { half };
            }
        }
    }

    /// The versions of a value, given the place where [`Versions::search`] found it.
    #[inline]
    pub(super) fn at(&self, place: u32, key: KeyId, value: Value) -> &[Version] {
        let end = self.starts[key.index() + 1] as usize;
        let place = place as usize;
        let length = run(&self.values[place..end], value);
        &self.sorted[place..place + length]
    }

    pub(super) fn memory(&self) -> usize {
        self.starts.capacity() * 4 + self.sorted.capacity() * (size_of::<Version>() + 4)
    }
}

/// Where the group of each key starts, given the key of every member.
pub(super) fn group_starts(keys: usize, members: impl Iterator<Item = KeyId>) -> Vec<u32> {
    let mut starts = vec![0u32; keys + 1];
    for key in members {
        starts[key.index() + 1] += 1;
    }
    for key in 0..keys {
        starts[key + 1] += starts[key];
    }
    starts
}

/// How many of these sorted values, none of which is less, are this one. Nearly
/// always none or one; where a value repeats very often, counting would not do.
#[inline]
fn run(values: &[Value], value: Value) -> usize {
    match values {
        [first, second, ..] if *first == value && *second == value => {
            values.partition_point(|&other| other <= value)
        }
        [first, ..] if *first == value => 1,
        _ => 0,
    }
}

/// Tells which writes of a transaction are its last of their keys. Writes are asked
/// about from last to first.
#[derive(Default)]
pub(super) struct LastWrites {
    /// The keys of writes asked about so far.
    later: KeyMarks,
    end: u32,
    /// The last write of every key, for a long transaction only. Short ones are
    /// searched if need be, which is all in the cache.
    last: HashMap<KeyId, u32>,
}

impl LastWrites {
    pub(super) fn enter(&mut self, history: &History, range: Range<u32>) {
        const OPS_SHORT: usize = 64;
        self.later = KeyMarks::default();
        self.end = range.end;
        self.last.clear();
        if range.len() > OPS_SHORT {
            let writes = range.filter(|&op| history.op_kinds()[op as usize].is_write());
            self.last.extend(writes.map(|op| (history.op_keys()[op as usize], op)));
        }
    }

    #[inline]
    pub(super) fn contains(&mut self, history: &History, op: u32) -> bool {
        let key = history.op_keys()[op as usize];
        let mark = KeyMarks::of(key);
        if !self.later.may_contain(mark) {
            self.later.add(mark);
            return true;
        }
        if !self.last.is_empty() {
            return self.last.get(&key) == Some(&op);
        }
        !(op + 1..self.end).any(|later| {
            history.op_keys()[later as usize] == key
                && history.op_kinds()[later as usize].is_write()
        })
    }
}

/// Sorts each key's versions by value, keys in parallel.
fn sort_groups(starts: &[u32], versions: &mut [Version]) {
    const KEYS_PER_TASK: usize = 4096;
    let mut tasks: Vec<(&[u32], &mut [Version])> = Vec::new();
    let mut rest = versions;
    let mut key = 0;
    while key + 1 < starts.len() {
        let end = (key + KEYS_PER_TASK).min(starts.len() - 1);
        let (head, tail) = rest.split_at_mut((starts[end] - starts[key]) as usize);
        tasks.push((&starts[key..=end], head));
        rest = tail;
        key = end;
    }
    tasks.into_par_iter().for_each(|(starts, versions)| {
        let base = starts[0];
        for pair in starts.windows(2) {
            let group = &mut versions[(pair[0] - base) as usize..(pair[1] - base) as usize];
            let rank = |version: &Version| {
                u64::from(version.value.bits()) << 32 | u64::from(version.packed_op & !FINAL)
            };
            group.sort_unstable_by_key(rank);
        }
    });
}
