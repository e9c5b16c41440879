//! Sets of keys in 64 bits, for questions that nearly always have the answer no.

use crate::history::KeyId;

/// A set of keys that share bits: what it does not contain is certain, what it
/// contains is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyMarks(u64);

impl KeyMarks {
    /// The set of one key: two bits, so that four keys have another one's bits by
    /// chance in one of seventy cases.
    #[inline]
    pub fn of(key: KeyId) -> KeyMarks {
        let mixed = u64::from(key.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        KeyMarks(1 << (mixed >> 58) | 1 << (mixed >> 52 & 63))
    }

    /// Adds all keys of another set.
    #[inline]
    pub fn add(&mut self, other: KeyMarks) {
        self.0 |= other.0;
    }

    /// Whether it may contain all keys of another set.
    #[inline]
    pub fn may_contain(self, other: KeyMarks) -> bool {
        self.0 & other.0 == other.0
    }
}
