//! Operations by conditions that many versions meet: all keys are looked at, each at the
//! version that was seen.

use super::walk::Test;
use super::{Changes, Finder, KeyRuns, Listed, Reading};
use isolde_history::{Aggregate, Function, KeyId, Share};
use std::rc::Rc;

impl Finder<'_, '_> {
    /// What a key means to an operation that returned rows.
    pub(super) fn dense_key(&mut self, reading: &Reading<'_>, key: KeyId, test: Test) {
        if self.matches.is_list(key) {
            return;
        }
        if !self.versions.settled[key.index()] {
            let (others, adds_nothing) = self.matches.that_fail(reading.predicate, key);
            match (adds_nothing, reading.listed(key)) {
                (true, Listed::Absent) => {}
                (true, Listed::Replaced) => self.mismatch(reading, key, None),
                _ => self.unordered_key(reading, key, &others),
            }
            return;
        }
        let listed = reading.listed(key);
        if listed == Listed::Untold {
            return;
        }
        if let Some(place) = self.chains.snapshot_place(key) {
            let walk = self.chains.walk(key, test, false);
            let adds = walk.adds(place);
            let changes = Changes { saw: walk.last_change(place), missed: walk.next_change(place) };
            if self.fits(listed, adds, key, place) {
                self.changes(reading, key, changes);
            } else {
                let write = self.chains.write(key, place);
                self.mismatch(reading, key, write);
            }
            return;
        }
        let runs = self.chains.runs(key, test);
        let runs = KeyRuns::Ordered(Rc::new(runs));
        if !runs.is_empty() {
            self.key(reading, key, &runs);
        } else if listed != Listed::Absent {
            self.key_without_matches(reading, key, listed);
        }
    }

    /// An aggregate.
    pub(super) fn dense_aggregate(
        &mut self,
        reading: &Reading<'_>,
        aggregate: Aggregate,
        mut shares: Vec<Share>,
        test: Test,
    ) {
        let history = self.versions.history;
        let takes_values = aggregate.function != Function::Count;
        let mut found = Vec::with_capacity(history.key_count());
        for key in history.keys().filter(|key| !reading.own.contains_key(key)) {
            let is_settled = self.versions.settled[key.index()];
            let told = is_settled.then(|| self.chains.snapshot_place(key)).flatten();
            let Some(place) = told else { return self.leave_open(reading, None) };
            let walk = self.chains.walk(key, test, takes_values);
            let changes = Changes { saw: walk.last_change(place), missed: walk.next_change(place) };
            if walk.adds(place) {
                let value = takes_values.then(|| self.chains.value(key, place));
                shares.push(value.map_or(Share::Row, Share::Value));
            }
            found.push((key, changes));
        }
        match aggregate.agrees(history.values(), shares.into_iter()) {
            Some(true) => {
                for (key, changes) in found {
                    self.changes(reading, key, changes);
                }
            }
            Some(false) => self.mismatch(reading, KeyId(0), None),
            None => {}
        }
    }
}
