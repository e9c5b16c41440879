//! Which versions add something to what an operation by condition finds.
//!
//! Versions are kept by value, and by remainder for each divisor that is asked for; keys
//! are kept by name, and for each the versions in which its row exists. So an operation looks
//! at the versions and keys that meet its condition, not at all. Where more versions meet it
//! than that is worth, chains are walked from the version that was seen to the nearest changes
//! (`walk`), which are near then. Conditions of other kinds, and values that are no numbers, are
//! looked at one by one.

use super::runs::Runs;
use super::walk::{NO_ROW, Test};
use super::{KeyRuns, SlotWrites};
use crate::strong::conditions::places::Chains;
use crate::strong::versions::{INITIAL_SLOT, Slot, Versions};
use hashbrown::HashMap;
use isolde_history::{
    Condition, Datum, Function, History, KeyId, OpId, OpKind, Predicate, Share, Value,
};
use std::rc::Rc;

/// See the module's documentation.
pub(super) struct Matches<'v, 'a> {
    versions: &'v Versions<'a>,
    writes: Rc<SlotWrites>,
    /// By key, whether it is a list.
    lists: Vec<bool>,
    has_lists: bool,
    /// Every version that is a number, in the order of these.
    by_value: Vec<(i128, KeyId, Slot)>,
    /// Whether all versions of all rows are small numbers.
    all_numbers: bool,
    /// Keys by name; empty if not all are numbers.
    by_name: Vec<(i128, KeyId)>,
    /// By divisor and remainder, versions by key.
    by_remainder: HashMap<(u64, u64), Rc<KeySlots>>,
    /// The versions in which the row of a key exists.
    existing: HashMap<(KeyId, Takes), Rc<KeyRuns>>,
    /// Answers that may be asked for again.
    known: HashMap<(Condition, Takes), Rc<Found>>,
}

/// Versions with their keys, sorted.
type KeySlots = Vec<(KeyId, Slot)>;

/// What an operation takes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Takes {
    Rows,
    Values,
}

/// The keys that have versions which add something, ascending.
pub(super) struct Found {
    pub(super) keys: Vec<(KeyId, Rc<KeyRuns>)>,
    /// Whether it could be told of all versions of all keys.
    pub(super) tells_all: bool,
    /// In place of the keys, if so many versions meet the condition that all keys are looked at.
    pub(super) dense: Option<Test>,
}

/// From so many matching versions for each key on, chains are walked.
const DENSE: usize = 3;

/// Whether chains can be walked over a number.
fn is_small(number: i128) -> bool {
    i64::try_from(number).is_ok_and(|number| number != NO_ROW)
}

impl Found {
    pub(super) fn has(&self, key: KeyId) -> bool {
        self.dense.is_some() || self.keys.binary_search_by_key(&key, |entry| entry.0).is_ok()
    }
}

impl<'v, 'a> Matches<'v, 'a> {
    pub(super) fn new(versions: &'v Versions<'a>, writes: Rc<SlotWrites>) -> Self {
        let history = versions.history;
        let mut lists = vec![false; history.key_count()];
        for (kind, key) in history.op_kinds().iter().zip(history.op_keys()) {
            if matches!(kind, OpKind::Append | OpKind::ReadList) {
                lists[key.index()] = true;
            }
        }
        let mut matches = Matches {
            versions,
            writes,
            has_lists: lists.contains(&true),
            lists,
            by_value: Vec::new(),
            all_numbers: true,
            by_name: Vec::new(),
            by_remainder: HashMap::new(),
            existing: HashMap::new(),
            known: HashMap::new(),
        };
        matches.sort_versions();
        matches
    }

    fn sort_versions(&mut self) {
        let (versions, history) = (self.versions, self.versions.history);
        for key in history.keys().filter(|key| !self.lists[key.index()]) {
            for slot in std::iter::once(INITIAL_SLOT).chain(versions.slots_of(key)) {
                let Some(value) = self.live_value(key, slot) else { continue };
                match history.datum(value) {
                    Datum::Int(number) if is_small(number) => {
                        self.by_value.push((number, key, slot));
                    }
                    _ => self.all_numbers = false,
                }
            }
        }
        self.by_value.sort_unstable();
        let name = |key: KeyId| match history.datum(history.key_name(key)) {
            Datum::Int(number) => Some((number, key)),
            _ => None,
        };
        let names: Option<Vec<(i128, KeyId)>> = history.keys().map(name).collect();
        self.by_name = names.unwrap_or_default();
        self.by_name.sort_unstable();
    }

    fn live_value(&self, key: KeyId, slot: Slot) -> Option<Value> {
        self.writes.live_value(self.versions.history, key, slot)
    }

    /// The operation that installed a version; none for the initial one.
    pub(super) fn write(&self, slot: Slot) -> Option<OpId> {
        self.writes.of(slot)
    }

    pub(super) fn is_list(&self, key: KeyId) -> bool {
        self.lists[key.index()]
    }

    /// Versions of a key that do not meet a condition, and whether none does.
    pub(super) fn that_fail(&self, predicate: &Predicate, key: KeyId) -> (Vec<Slot>, bool) {
        let history = self.versions.history;
        let slots = std::iter::once(INITIAL_SLOT).chain(self.versions.slots_of(key));
        let meets = |slot: Slot| history.meets(&predicate.condition, key, self.writes.of(slot));
        let others: Vec<Slot> = slots.filter(|&slot| meets(slot) == Some(false)).collect();
        let all = 1 + self.versions.slots_of(key).len();
        let adds_nothing = others.len() == all;
        (others, adds_nothing)
    }

    /// Whether it can be told of all versions of a key what they add.
    pub(super) fn can_tell(&self, predicate: &Predicate, key: KeyId) -> bool {
        let history = self.versions.history;
        let mut slots = std::iter::once(INITIAL_SLOT).chain(self.versions.slots_of(key));
        !self.is_list(key)
            && slots.all(|slot| history.share(predicate, key, self.writes.of(slot)).is_some())
    }

    /// All keys that add something to what an operation finds.
    pub(super) fn of(&mut self, chains: &mut Chains<'v, 'a>, predicate: &Predicate) -> Rc<Found> {
        let takes = match predicate.aggregate {
            Some(it) if it.function != Function::Count => Takes::Values,
            _ => Takes::Rows,
        };
        let condition = &predicate.condition;
        let history = self.versions.history;
        let number = |value: Value| match history.datum(value) {
            Datum::Int(number) => Some(number),
            _ => None,
        };
        // Nil is no bound.
        let bounds = |low: Value, high: Value| {
            let low = if low == Value::NIL { Some(i128::MIN) } else { number(low) };
            let high = if high == Value::NIL { Some(i128::MAX) } else { number(high) };
            low.zip(high)
        };
        match *condition {
            Condition::KeyRange { low, high } if !self.by_name.is_empty() => {
                match bounds(low, high) {
                    Some((low, high)) => Rc::new(self.keys_between(chains, low, high, takes)),
                    None => self.one_by_one(chains, predicate, takes),
                }
            }
            Condition::ValueRange { low, high } if self.all_numbers => match bounds(low, high) {
                Some((low, high)) => Rc::new(self.values_between(chains, low, high, takes)),
                None => self.one_by_one(chains, predicate, takes),
            },
            Condition::Equals(value) if self.all_numbers => match number(value) {
                Some(number) => Rc::new(self.values_between(chains, number, number, takes)),
                None => self.one_by_one(chains, predicate, takes),
            },
            Condition::Modulo { modulus, remainder } if self.all_numbers => {
                let asked = (condition.clone(), takes);
                if let Some(known) = self.known.get(&asked) {
                    return Rc::clone(known);
                }
                let slots = self.with_remainder(modulus, remainder);
                if slots.len() > DENSE * history.key_count()
                    && let (Ok(modulus), Ok(remainder)) =
                        (i64::try_from(modulus), i64::try_from(remainder))
                {
                    return Rc::new(self.dense(Test::Remainder(modulus, remainder)));
                }
                let keys = self.grouped(chains, &slots, takes);
                let found = Rc::new(Found { keys, tells_all: !self.has_lists, dense: None });
                self.known.insert(asked, Rc::clone(&found));
                found
            }
            _ => self.one_by_one(chains, predicate, takes),
        }
    }

    fn keys_between(
        &mut self,
        chains: &mut Chains<'v, 'a>,
        low: i128,
        high: i128,
        takes: Takes,
    ) -> Found {
        let start = self.by_name.partition_point(|entry| entry.0 < low);
        let end = self.by_name.partition_point(|entry| entry.0 <= high);
        let mut keys: Vec<KeyId> =
            self.by_name[start..end.max(start)].iter().map(|entry| entry.1).collect();
        keys.sort_unstable();
        keys.retain(|key| !self.lists[key.index()]);
        let keys = keys.into_iter().filter_map(|key| {
            let runs = self.existing(chains, key, takes);
            (!runs.is_empty()).then_some((key, runs))
        });
        Found { keys: keys.collect(), tells_all: !self.has_lists, dense: None }
    }

    fn dense(&self, test: Test) -> Found {
        Found { keys: Vec::new(), tells_all: !self.has_lists, dense: Some(test) }
    }

    /// The versions in which the row of a key exists.
    fn existing(&mut self, chains: &mut Chains<'v, 'a>, key: KeyId, takes: Takes) -> Rc<KeyRuns> {
        if let Some(known) = self.existing.get(&(key, takes)) {
            return Rc::clone(known);
        }
        let slots = std::iter::once(INITIAL_SLOT).chain(self.versions.slots_of(key));
        let live: Vec<(KeyId, Slot)> = slots
            .filter(|&slot| self.live_value(key, slot).is_some())
            .map(|it| (key, it))
            .collect();
        let runs = Rc::new(self.runs(chains, key, &live, takes));
        self.existing.insert((key, takes), Rc::clone(&runs));
        runs
    }

    fn values_between(
        &self,
        chains: &mut Chains<'v, 'a>,
        low: i128,
        high: i128,
        takes: Takes,
    ) -> Found {
        let start = self.by_value.partition_point(|entry| entry.0 < low);
        let end = self.by_value.partition_point(|entry| entry.0 <= high);
        if end.saturating_sub(start) > DENSE * self.versions.history.key_count() {
            return self.dense(Test::between(low, high));
        }
        let mut slots: Vec<(KeyId, Slot)> =
            self.by_value[start..end.max(start)].iter().map(|entry| (entry.1, entry.2)).collect();
        slots.sort_unstable();
        let keys = self.grouped(chains, &slots, takes);
        Found { keys, tells_all: !self.has_lists, dense: None }
    }

    fn with_remainder(&mut self, modulus: u64, remainder: u64) -> Rc<KeySlots> {
        let asked = (modulus, remainder);
        if !self.by_remainder.contains_key(&asked) {
            let of = |number: i128| number.rem_euclid(i128::from(modulus));
            let fits = self.by_value.iter().filter(|entry| of(entry.0) == i128::from(remainder));
            let mut slots: Vec<(KeyId, Slot)> = fits.map(|entry| (entry.1, entry.2)).collect();
            slots.sort_unstable();
            self.by_remainder.insert(asked, Rc::new(slots));
        }
        Rc::clone(&self.by_remainder[&asked])
    }

    /// Versions, sorted by key, as runs of each key.
    fn grouped(
        &self,
        chains: &mut Chains<'v, 'a>,
        slots: &[(KeyId, Slot)],
        takes: Takes,
    ) -> Vec<(KeyId, Rc<KeyRuns>)> {
        let groups = slots.chunk_by(|one, other| one.0 == other.0);
        groups
            .map(|slots| (slots[0].0, Rc::new(self.runs(chains, slots[0].0, slots, takes))))
            .collect()
    }

    /// The runs of one key, of which these versions add something.
    fn runs(
        &self,
        chains: &mut Chains<'v, 'a>,
        key: KeyId,
        slots: &[(KeyId, Slot)],
        takes: Takes,
    ) -> KeyRuns {
        if !self.versions.settled[key.index()] {
            let all = std::iter::once(INITIAL_SLOT).chain(self.versions.slots_of(key));
            let others = all.filter(|slot| !slots.iter().any(|entry| entry.1 == *slot));
            let adds_nothing = slots.is_empty();
            return KeyRuns::Unordered { others: others.collect(), adds_nothing };
        }
        let mut places: Vec<(u32, Slot)> =
            slots.iter().map(|entry| (chains.place(key, entry.1), entry.1)).collect();
        places.sort_unstable();
        let mut runs = Runs::default();
        for (place, slot) in places {
            let value = self.live_value(key, slot).expect("a version that adds something");
            let share = if takes == Takes::Rows { Share::Row } else { Share::Value(value) };
            runs.push(place, share);
        }
        KeyRuns::Ordered(Rc::new(runs))
    }

    /// Looks at every version of every key.
    fn one_by_one(
        &mut self,
        chains: &mut Chains<'v, 'a>,
        predicate: &Predicate,
        takes: Takes,
    ) -> Rc<Found> {
        let asked = (predicate.condition.clone(), takes);
        if let Some(known) = self.known.get(&asked) {
            return Rc::clone(known);
        }
        let history = self.versions.history;
        let mut found = Found { keys: Vec::new(), tells_all: !self.has_lists, dense: None };
        for key in history.keys().filter(|key| !self.lists[key.index()]) {
            match self.slots_that_meet(history, &predicate.condition, key) {
                Some(slots) if slots.is_empty() => {}
                Some(slots) => {
                    let runs = self.runs(chains, key, &slots, takes);
                    found.keys.push((key, Rc::new(runs)));
                }
                None => found.tells_all = false,
            }
        }
        let found = Rc::new(found);
        self.known.insert(asked, Rc::clone(&found));
        found
    }

    /// Versions of a key that meet a condition, if it can be told of all.
    fn slots_that_meet(
        &self,
        history: &History,
        condition: &Condition,
        key: KeyId,
    ) -> Option<Vec<(KeyId, Slot)>> {
        let mut slots = Vec::new();
        for slot in std::iter::once(INITIAL_SLOT).chain(self.versions.slots_of(key)) {
            let write: Option<OpId> = self.writes.of(slot);
            if history.meets(condition, key, write)? {
                slots.push((key, slot));
            }
        }
        Some(slots)
    }
}
