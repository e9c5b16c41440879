//! All writes grouped by key and sorted by value: the build side of the join.

use crate::history::{History, KeyId, OpId, TxnId};
use crate::value::Value;
use rayon::prelude::*;

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

impl Version {
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
        let mut starts = vec![0u32; history.key_count() + 1];
        for (kind, key) in kinds.iter().zip(keys) {
            if kind.is_write() {
                starts[key.index() + 1] += 1;
            }
        }
        for key in 0..history.key_count() {
            starts[key + 1] += starts[key];
        }
        let total = starts[history.key_count()] as usize;
        // Filled from the back, so that a key's last write of a transaction comes
        // first and is known to be final by the slot above it.
        let mut next: Vec<u32> = starts[1..].to_vec();
        let none = Version { value: Value::NIL, txn: TxnId(u32::MAX), packed_op: 0 };
        let mut versions = vec![none; total];
        for txn in history.txns().rev() {
            for op in history.op_range(txn).rev() {
                let index = op as usize;
                if !kinds[index].is_write() {
                    continue;
                }
                let key = keys[index].index();
                let slot = next[key] as usize;
                let above = (slot < starts[key + 1] as usize).then(|| versions[slot].txn);
                let last = if above == Some(txn) { 0 } else { FINAL };
                debug_assert!(op < FINAL, "operations fit in 31 bits");
                versions[slot - 1] = Version { value: values[index], txn, packed_op: op | last };
                next[key] = slot as u32 - 1;
            }
        }
        sort_groups(&starts, &mut versions);
        let values = versions.iter().map(|version| version.value).collect();
        Versions { starts, sorted: versions, values }
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
        let length = values[start..].iter().take_while(|&&other| other == value).count();
        &self.sorted[range.start + start..range.start + start + length]
    }

    pub(super) fn memory(&self) -> usize {
        self.starts.capacity() * 4 + self.sorted.capacity() * (size_of::<Version>() + 4)
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
