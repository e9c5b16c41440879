//! The rows that exist at one point of a replay, found by key and by value.

use isolde_history::{Condition, Datum, History, KeyId, OpId, Share, Value};
use isolde_history::{Function, Predicate};
use std::collections::{BTreeMap, BTreeSet};

/// The current version of every row.
///
/// Rows are ordered by name and by value where these are numbers, and by remainder for every
/// divisor that the history asks for, so that a condition looks at what meets it.
pub(super) struct State<'a> {
    history: &'a History,
    /// By key, the write of its version; `None` is the initial one.
    versions: Vec<Option<OpId>>,
    /// Rows that exist.
    live: BTreeSet<KeyId>,
    by_name: Option<BTreeSet<(i128, KeyId)>>,
    by_value: Option<BTreeSet<(i128, KeyId)>>,
    by_remainder: BTreeMap<u64, BTreeSet<(i128, KeyId)>>,
}

impl<'a> State<'a> {
    pub(super) fn new(history: &'a History) -> Self {
        let mut by_remainder = BTreeMap::new();
        for op in (0..history.op_count() as u32).map(OpId) {
            if !history.op(op).kind.has_key()
                && let Condition::Modulo { modulus, .. } = history.predicate(op).condition
            {
                by_remainder.insert(modulus, BTreeSet::new());
            }
        }
        let is_number = |value: Value| matches!(history.datum(value), Datum::Int(_) | Datum::Nil);
        let are_names_numbers = history.keys().all(|key| is_number(history.key_name(key)));
        let written = (0..history.op_count() as u32).map(|op| history.op(OpId(op)));
        let are_values_numbers = history.keys().all(|key| is_number(history.initial(key)))
            && written.filter(|op| op.kind.is_write()).all(|op| is_number(op.value));
        let mut state = State {
            history,
            versions: vec![None; history.key_count()],
            live: BTreeSet::new(),
            by_name: are_names_numbers.then(BTreeSet::new),
            by_value: are_values_numbers.then(BTreeSet::new),
            by_remainder,
        };
        for key in history.keys().filter(|&key| history.initial(key) != Value::NIL) {
            state.add(key);
            state.add_value(key, history.initial(key));
        }
        state
    }

    fn number(&self, value: Value) -> Option<i128> {
        match self.history.datum(value) {
            Datum::Int(number) => Some(number),
            _ => None,
        }
    }

    /// The value of a row, nil if it does not exist.
    pub(super) fn value(&self, key: KeyId) -> Value {
        match self.versions[key.index()] {
            Some(write) if self.history.op(write).kind == isolde_history::OpKind::Delete => {
                Value::NIL
            }
            Some(write) => self.history.op(write).value,
            None => self.history.initial(key),
        }
    }

    /// A row appears.
    fn add(&mut self, key: KeyId) {
        self.live.insert(key);
        let name = self.number(self.history.key_name(key));
        if let (Some(by_name), Some(name)) = (&mut self.by_name, name) {
            by_name.insert((name, key));
        }
    }

    /// A row goes.
    fn remove(&mut self, key: KeyId) {
        self.live.remove(&key);
        let name = self.number(self.history.key_name(key));
        if let (Some(by_name), Some(name)) = (&mut self.by_name, name) {
            by_name.remove(&(name, key));
        }
    }

    /// A row has a value.
    fn add_value(&mut self, key: KeyId, value: Value) {
        if let Some(number) = self.number(value) {
            if let Some(by_value) = &mut self.by_value {
                by_value.insert((number, key));
            }
            for (&modulus, rows) in &mut self.by_remainder {
                rows.insert((number.rem_euclid(i128::from(modulus)), key));
            }
        }
    }

    /// A row no longer has a value.
    fn remove_value(&mut self, key: KeyId, value: Value) {
        if let Some(number) = self.number(value) {
            if let Some(by_value) = &mut self.by_value {
                by_value.remove(&(number, key));
            }
            for (&modulus, rows) in &mut self.by_remainder {
                rows.remove(&(number.rem_euclid(i128::from(modulus)), key));
            }
        }
    }

    /// A version takes effect; none is the initial one.
    pub(super) fn put(&mut self, key: KeyId, version: Option<OpId>) {
        let before = self.value(key);
        self.versions[key.index()] = version;
        let after = self.value(key);
        self.remove_value(key, before);
        self.add_value(key, after);
        match (before == Value::NIL, after == Value::NIL) {
            (true, false) => self.add(key),
            (false, true) => self.remove(key),
            _ => {}
        }
    }

    /// The write of the current version of a key; none for the initial one.
    pub(super) fn version(&self, key: KeyId) -> Option<OpId> {
        self.versions[key.index()]
    }

    /// Rows that meet a condition, ascending; `None` if it cannot be told.
    pub(super) fn rows(&self, condition: &Condition) -> Option<Vec<KeyId>> {
        let bound = |value: Value, none: i128| {
            if value == Value::NIL { Some(none) } else { self.number(value) }
        };
        let between = |rows: &BTreeSet<(i128, KeyId)>, low: i128, high: i128| -> Vec<KeyId> {
            if low > high {
                return Vec::new();
            }
            let range = (low, KeyId(0))..=(high, KeyId(u32::MAX));
            rows.range(range).map(|entry| entry.1).collect()
        };
        let mut rows = match (condition, &self.by_name, &self.by_value) {
            (Condition::All, _, _) => self.live.iter().copied().collect(),
            (Condition::KeyRange { low, high }, Some(rows), _)
            | (Condition::ValueRange { low, high }, _, Some(rows)) => {
                between(rows, bound(*low, i128::MIN)?, bound(*high, i128::MAX)?)
            }
            (Condition::Equals(value), _, Some(rows)) if self.number(*value).is_some() => {
                let number = self.number(*value)?;
                between(rows, number, number)
            }
            (Condition::Modulo { modulus, remainder }, _, Some(_)) => {
                let rows = self.by_remainder.get(modulus)?;
                between(rows, (*remainder).into(), (*remainder).into())
            }
            _ => {
                let mut found = Vec::new();
                for &key in &self.live {
                    if self.history.meets(condition, key, self.version(key))? {
                        found.push(key);
                    }
                }
                found
            }
        };
        rows.sort_unstable();
        Some(rows)
    }

    /// Whether an aggregate of these rows has the result that was seen.
    pub(super) fn agrees(&self, predicate: &Predicate, rows: &[KeyId]) -> Option<bool> {
        let aggregate = predicate.aggregate?;
        let share = |&key: &KeyId| match aggregate.function {
            Function::Count => Share::Row,
            _ => Share::Value(self.value(key)),
        };
        aggregate.agrees(self.history.values(), rows.iter().map(share))
    }
}
