//! Writes by value, for histories in which no value is written twice.
//!
//! Most generators number their writes, so that the value alone tells the write.
//! One table by value then answers what would else take a sort and a search per
//! key. It is built only if values repeat nowhere and are natural numbers not much
//! larger than their number.

use super::versions::{LastWrites, Version, Versions};
use crate::history::{History, KeyId, OpId, TxnId};
use crate::prefetch::prefetch;
use crate::value::Value;

pub(super) struct UniqueWrites {
    /// By value: key, transaction from 1, and the write as [`Version`] packs it.
    /// All zeros where nobody wrote the value.
    slots: Vec<[u32; 3]>,
    keys: usize,
}

impl UniqueWrites {
    /// `None` if a value repeats, or the table would be too large.
    pub(super) fn new(history: &History) -> Option<UniqueWrites> {
        let (kinds, keys, values) = (history.op_kinds(), history.op_keys(), history.op_values());
        let mut slots = vec![[0u32; 3]; slot_count(history)?];
        let mut last_writes = LastWrites::default();
        // Values mostly grow with time, so that neighbours write neighbouring slots.
        for txn in history.txns_interleaved() {
            let range = history.op_range(txn);
            last_writes.enter(history, range.clone());
            for op in range.rev() {
                let index = op as usize;
                if !kinds[index].is_write() {
                    continue;
                }
                let slot = &mut slots[values[index].bits() as usize];
                if slot[1] != 0 {
                    return None;
                }
                let packed = Version::pack(OpId(op), last_writes.contains(history, op));
                *slot = [keys[index].0, txn.0 + 1, packed];
            }
        }
        Some(UniqueWrites { slots, keys: history.key_count() })
    }

    /// The write of a value to a key.
    #[inline]
    pub(super) fn find(&self, key: KeyId, value: Value) -> Option<Version> {
        let &[written, txn, packed_op] = self.slots.get(value.bits() as usize)?;
        (txn != 0 && written == key.0).then(|| Version::unpack(value, TxnId(txn - 1), packed_op))
    }

    /// A value will be asked for soon.
    #[inline]
    pub(super) fn expect(&self, value: Value) {
        prefetch(&self.slots, value.bits() as usize);
    }

    /// The same writes by key. Walked in order of values, they need no sorting.
    pub(super) fn by_key(&self) -> Versions {
        let written = |(value, &[key, txn, packed_op]): (u32, &[u32; 3])| {
            let version =
                Version::unpack(Value::from_bits(value), TxnId(txn.wrapping_sub(1)), packed_op);
            (txn != 0).then_some((KeyId(key), version))
        };
        let writes = || (0..).zip(&self.slots).filter_map(written);
        Versions::of_sorted(self.keys, writes)
    }

    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<[u32; 3]>()
    }
}

/// One more than the largest value written, if that is not out of proportion.
fn slot_count(history: &History) -> Option<usize> {
    const SLOTS_FREE: usize = 1 << 10;
    let (mut largest, mut writes) = (0, 0);
    for (kind, value) in history.op_kinds().iter().zip(history.op_values()) {
        if kind.is_write() {
            largest = largest.max(value.bits());
            writes += 1;
        }
    }
    let small = Value::small(u64::from(largest)).is_some();
    let slots = largest as usize + 1;
    (small && slots <= 2 * writes + SLOTS_FREE).then_some(slots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::parse_text;

    fn history(text: &str) -> History {
        parse_text(text).expect("a history")
    }

    #[test]
    fn the_table_holds_the_same_writes_as_the_sorted_form() {
        let history = history(
            "A: w(x,1) w(y,5) w(x,2)
             B: w(y,3) r(x,2)
             B: w(x,7)",
        );
        let unique = UniqueWrites::new(&history).expect("no value repeats");
        let (one, other) = (unique.by_key(), Versions::new(&history));
        for key in history.keys() {
            assert_eq!(one.of(key), other.of(key));
            for value in (0..9).map(Value::from_bits) {
                assert_eq!(unique.find(key, value).as_slice(), other.with_value(key, value));
            }
        }
    }

    #[test]
    fn repeated_large_and_wordy_values_have_no_table() {
        for text in ["A: w(x,1)\nB: w(y,1)", "A: w(x,1000000)", "A: w(x,one)"] {
            assert!(UniqueWrites::new(&history(text)).is_none(), "{text}");
        }
    }
}
