//! All writes of a history, in whatever form finds them fastest.

use super::unique::UniqueWrites;
use super::versions::{Version, Versions};
use crate::history::{History, KeyId};
use crate::value::Value;
use std::ops::Deref;
use std::sync::OnceLock;

pub(super) struct Writes {
    form: Form,
    /// Present from the start if values repeat, else once somebody asks for it.
    by_key: OnceLock<Versions>,
}

/// What tells who wrote a value.
enum Form {
    /// A table, as no value is written twice.
    Unique(UniqueWrites),
    /// The same, and the table was only needed to join.
    WasUnique,
    /// The writes by key.
    ByKey,
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
        let form = UniqueWrites::new(history).map_or(Form::ByKey, Form::Unique);
        let writes = Writes { form, by_key: OnceLock::new() };
        if !writes.are_unique() {
            writes.by_key(history);
        }
        writes
    }

    /// The writes by value, if no value is written twice and they were not forgotten.
    #[inline]
    pub(super) fn unique(&self) -> Option<&UniqueWrites> {
        match &self.form {
            Form::Unique(unique) => Some(unique),
            Form::WasUnique | Form::ByKey => None,
        }
    }

    /// Whether it is plain that no value is written twice.
    pub(super) fn are_unique(&self) -> bool {
        !matches!(self.form, Form::ByKey)
    }

    /// The writes by key, sorted by value.
    pub(super) fn by_key(&self, history: &History) -> &Versions {
        self.by_key.get_or_init(|| match &self.form {
            Form::Unique(unique) => unique.by_key(),
            // Whoever asks may be a task among others. Sorting is shared out, and a task that
            // waits for those may meet one that waits for it; the table needs no sorting.
            Form::WasUnique => {
                UniqueWrites::new(history).expect("the same history has the same values").by_key()
            }
            Form::ByKey => Versions::new(history),
        })
    }

    /// The writes of one value to a key, in order of their operations.
    #[inline]
    pub(super) fn with_value(&self, history: &History, key: KeyId, value: Value) -> Found<'_> {
        match self.unique() {
            Some(unique) => Found::Unique(unique.find(key, value)),
            None => Found::Several(self.by_key(history).with_value(key, value)),
        }
    }

    /// Frees what was only needed to join. It takes as much as all else that an index has of
    /// writes, and few ask for the writes by key, which are made of the history again.
    pub(super) fn forget_unique(&mut self) {
        if self.are_unique() {
            self.form = Form::WasUnique;
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.unique().map_or(0, UniqueWrites::memory)
            + self.by_key.get().map_or(0, Versions::memory)
    }
}
