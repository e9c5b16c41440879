//! Aggregates over a condition: which versions of each key their result allows.
//!
//! **Impossible** is a result that no choice of versions gives (`impossible`).
//!
//! **Told.** If the database told what an operation saw, the result either follows from these
//! versions or contradicts them.
//!
//! **Not told.** The result still rules versions out: of a count or sum, those with which all
//! other keys together cannot make up the rest; of a least or largest value, those beyond it,
//! and, where one key alone can have it, all other versions of that key. A key of which only
//! versions side by side are left that add the same was seen there, as by a select. What is not
//! ruled out is left to the order that is found.

use super::matches::Found;
use super::runs::Runs;
use super::unnamed_writers;
use super::{Changes, Finder, KeyRuns, Reading};
use crate::strong::versions::{INITIAL_SLOT, Slot};
use isolde_history::{Aggregate, Computed, Datum, Function, History, KeyId, Share, Value};
use std::rc::Rc;

/// Larger histories are not looked through for every aggregate that many versions add to.
const DENSE_OPS_MAX: usize = 4096;

impl Finder<'_, '_> {
    /// An aggregate is exact if the database told what it saw of every key that may count.
    pub(super) fn aggregate(&mut self, reading: &Reading<'_>, aggregate: Aggregate) {
        let found = self.matches.of(&mut self.chains, reading.predicate);
        let computed = aggregate.computed(self.versions.history.values());
        if computed == Computed::Untold || !found.tells_all {
            return;
        }
        let history = self.versions.history;
        // It is about all keys; the first stands for them.
        if history.key_count() > 0 && self.is_impossible(reading, aggregate, &found) {
            return self.mismatch(reading, KeyId(0), None);
        }
        let mut shares: Vec<Share> = Vec::new();
        for (&key, &own) in reading.own {
            shares.extend(history.share(reading.predicate, key, Some(own)));
        }
        if !reading.listed.is_empty() {
            return self.leave_open(reading, None);
        }
        if !self.chains.has_snapshot() {
            self.narrowed(reading, aggregate, &found);
            return self.leave_open(reading, None);
        }
        if let Some(test) = found.dense {
            return self.dense_aggregate(reading, aggregate, shares, test);
        }
        let mut seen: Vec<(KeyId, Rc<Runs>, u32)> = Vec::new();
        for &(key, ref runs) in &found.keys {
            if reading.own.contains_key(&key) {
                continue;
            }
            let KeyRuns::Ordered(runs) = &**runs else { return self.leave_open(reading, None) };
            let place = self.chains.snapshot_place(key);
            let Some(place) = place else { return self.leave_open(reading, None) };
            shares.push(runs.share(place));
            seen.push((key, Rc::clone(runs), place));
        }
        match aggregate.agrees(history.values(), shares.into_iter()) {
            Some(true) => {
                for (key, runs, place) in seen {
                    self.edges(reading, key, &runs, place);
                }
            }
            Some(false) => self.mismatch(reading, KeyId(0), None),
            None => {}
        }
    }
}

/// What an aggregate allows its keys to add.
struct Narrowing {
    function: Function,
    result: Option<i128>,
    /// The least and most that all keys add together.
    least: i128,
    most: i128,
    /// How many keys can have the result by themselves.
    supporters: usize,
}

/// What a key can add.
struct Shares {
    least: i128,
    most: i128,
    is_supporter: bool,
}

impl Narrowing {
    fn number(history: &History, value: Value) -> Option<i128> {
        match history.datum(value) {
            Datum::Int(number) => Some(number),
            _ => None,
        }
    }

    /// What a share adds to a count or sum.
    fn amount(history: &History, share: Share) -> Option<i128> {
        match share {
            Share::Nothing => Some(0),
            Share::Row => Some(1),
            Share::Value(value) => Self::number(history, value),
        }
    }

    fn new(history: &History, aggregate: Aggregate) -> Option<Narrowing> {
        let result = match aggregate.computed(history.values()) {
            Computed::Number(number) => Some(number),
            Computed::Nothing => None,
            Computed::Untold | Computed::NoNumber => return None,
        };
        let function = aggregate.function;
        Some(Narrowing { function, result, least: 0, most: 0, supporters: 0 })
    }

    /// Adds a key that can add any of these.
    fn add(&mut self, history: &History, shares: &[Share]) -> Option<Shares> {
        let mut of_key = Shares { least: i128::MAX, most: i128::MIN, is_supporter: false };
        for &share in shares {
            let amount = Self::amount(history, share)?;
            of_key.least = of_key.least.min(amount);
            of_key.most = of_key.most.max(amount);
            of_key.is_supporter |= share != Share::Nothing && Some(amount) == self.result;
        }
        self.least = self.least.checked_add(of_key.least)?;
        self.most = self.most.checked_add(of_key.most)?;
        self.supporters += usize::from(of_key.is_supporter);
        Some(of_key)
    }

    /// Whether a key can add this, with what the others can.
    fn allows(&self, history: &History, of_key: &Shares, share: Share) -> bool {
        let Some(amount) = Self::amount(history, share) else { return true };
        let Some(result) = self.result else { return share == Share::Nothing };
        match self.function {
            Function::Count | Function::Sum => {
                let rest = |all: i128, own: i128| all.saturating_sub(own).saturating_add(amount);
                rest(self.least, of_key.least) <= result && result <= rest(self.most, of_key.most)
            }
            Function::Min | Function::Max => {
                let is_within = share == Share::Nothing
                    || (self.function == Function::Max && amount <= result)
                    || (self.function == Function::Min && amount >= result);
                let has_it = share != Share::Nothing && amount == result;
                let others = self.supporters - usize::from(of_key.is_supporter);
                is_within && (has_it || others > 0)
            }
        }
    }
}

impl Finder<'_, '_> {
    /// Edges to the changes around the one place that the result leaves a key.
    fn narrowed(&mut self, reading: &Reading<'_>, aggregate: Aggregate, found: &Found) {
        let history = self.versions.history;
        if found.dense.is_some() && history.op_count() > DENSE_OPS_MAX || self.has_uncounted() {
            return;
        }
        let Some(mut narrowing) = Narrowing::new(history, aggregate) else { return };
        for (&key, &own) in reading.own {
            let share = history.share(reading.predicate, key, Some(own));
            if share.and_then(|share| narrowing.add(history, &[share])).is_none() {
                return;
            }
        }
        let keys: Vec<KeyId> = match found.dense {
            Some(_) => history.keys().collect(),
            None => found.keys.iter().map(|entry| entry.0).collect(),
        };
        let mut of_keys = Vec::new();
        for key in keys.into_iter().filter(|key| !reading.own.contains_key(key)) {
            let Some(versions) = self.shares_of(reading, key) else { return };
            let shares: Vec<Share> = versions.iter().map(|it| it.1).collect();
            let Some(of_key) = narrowing.add(history, &shares) else { return };
            of_keys.push((key, versions, of_key));
        }
        for (key, mut versions, of_key) in of_keys {
            versions.retain(|&(_, share)| narrowing.allows(history, &of_key, share));
            self.narrowed_key(reading, key, &versions);
        }
    }

    /// Whether transactions that nobody is known to have seen may count all the same.
    pub(super) fn has_uncounted(&self) -> bool {
        *self.has_uncounted.get_or_init(|| {
            unnamed_writers(self.versions.history, self.versions.index).next().is_some()
        })
    }

    /// All versions of a key by others than the reader, with what each adds.
    fn shares_of(&self, reading: &Reading<'_>, key: KeyId) -> Option<Vec<(Slot, Share)>> {
        let versions = self.versions;
        let others = versions.slots_of(key).filter(|&it| versions.writer(it) != reading.txn);
        let slots = std::iter::once(INITIAL_SLOT).chain(others);
        let share = |slot| {
            let write = self.matches.write(slot);
            versions.history.share(reading.predicate, key, write).map(|share| (slot, share))
        };
        slots.map(share).collect()
    }

    /// A key of which these versions are left.
    fn narrowed_key(&mut self, reading: &Reading<'_>, key: KeyId, left: &[(Slot, Share)]) {
        let versions = self.versions;
        if !versions.settled[key.index()] {
            if left.len() == 1 && left[0].0 == INITIAL_SLOT {
                self.missed_all(reading, key);
            }
            return;
        }
        let own_place = self.chains.own_place(key, reading.txn);
        let length = self.chains.length(key);
        let mut shares = vec![Share::Nothing; length as usize];
        for slot in std::iter::once(INITIAL_SLOT).chain(versions.slots_of(key)) {
            let place = self.chains.place(key, slot) as usize;
            let write = self.matches.write(slot);
            let Some(share) = versions.history.share(reading.predicate, key, write) else { return };
            shares[place] = share;
        }
        let mut places: Vec<u32> = left.iter().map(|it| self.chains.place(key, it.0)).collect();
        places.retain(|&place| place < own_place);
        places.sort_unstable();
        let (Some(&first), Some(&last)) = (places.first(), places.last()) else { return };
        let seen = shares[first as usize];
        if shares[first as usize..=last as usize].iter().any(|&share| share != seen) {
            return;
        }
        let differs = |place: &u32| shares[*place as usize] != seen;
        let saw = (0..first).rev().find(differs).map(|place| place + 1);
        let missed = (last + 1..length).find(differs);
        self.changes(reading, key, Changes { saw, missed });
    }
}
