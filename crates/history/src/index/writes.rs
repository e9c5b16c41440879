//! All writes of a history, in whatever form finds them fastest.

use super::unique::UniqueWrites;
use super::versions::{Version, Versions};
use crate::history::{History, KeyId};
use crate::value::Value;
use std::ops::Deref;
use std::sync::OnceLock;

pub(super) struct Writes {
    unique: Option<UniqueWrites>,
    /// Present from the start if values repeat, else once somebody asks for it.
    by_key: OnceLock<Versions>,
}

/// Writes of one value to one key.
pub(super) enum Found<'a> {
    /// At most one, because no value is written twice.
    Unique(Option<Version>),
    /// Any number.
    Several(&'a [Version]),
}

impl Deref for Found<'_> {
    type Target = [Version];

    #[inline]
    fn deref(&self) -> &[Version] {
        match self {
            Found::Unique(found) => found.as_slice(),
            Found::Several(found) => found,
        }
    }
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
    #[inline]
    pub(super) fn with_value(&self, key: KeyId, value: Value) -> Found<'_> {
        match &self.unique {
            Some(unique) => Found::Unique(unique.find(key, value)),
            None => Found::Several(self.by_key().with_value(key, value)),
        }
    }

    /// Frees what was only needed to join, once the same is there by key.
    pub(super) fn forget_unique(&mut self) {
        if self.by_key.get().is_some()
            && let Some(unique) = &mut self.unique
        {
            unique.forget();
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.unique.as_ref().map_or(0, UniqueWrites::memory)
            + self.by_key.get().map_or(0, Versions::memory)
    }
}
