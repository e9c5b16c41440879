//! All writes of a history, in whatever form finds them fastest.

use super::unique::UniqueWrites;
use super::versions::{Version, Versions};
use crate::history::{History, KeyId};
use crate::value::Value;
use std::sync::OnceLock;

pub(super) struct Writes {
    unique: Option<UniqueWrites>,
    /// Present from the start if values repeat, else once somebody asks for it.
    by_key: OnceLock<Versions>,
}

impl Writes {
    pub(super) fn new(history: &History) -> Writes {
        let unique = UniqueWrites::new(history);
        let by_key = OnceLock::new();
        if unique.is_none() {
            by_key.get_or_init(|| Versions::new(history));
        }
        Writes { unique, by_key }
    }

    /// The writes by value, if no value is written twice.
    #[inline]
    pub(super) fn unique(&self) -> Option<&UniqueWrites> {
        self.unique.as_ref()
    }

    /// The writes by key, sorted by value.
    pub(super) fn by_key(&self) -> &Versions {
        self.by_key.get_or_init(|| {
            self.unique.as_ref().expect("one of the two forms is there from the start").by_key()
        })
    }

    /// All writes of a key, sorted by value.
    pub(super) fn of(&self, key: KeyId) -> &[Version] {
        self.by_key().of(key)
    }

    /// The writes of one value to a key, in order of their operations.
    pub(super) fn with_value(&self, key: KeyId, value: Value) -> &[Version] {
        self.by_key().with_value(key, value)
    }

    pub(super) fn memory(&self) -> usize {
        self.unique.as_ref().map_or(0, UniqueWrites::memory)
            + self.by_key.get().map_or(0, Versions::memory)
    }
}
