//! Aggregates with a result that no versions give, in whatever order they came.
//!
//! **Definition.** Each key adds to an aggregate what its own version adds, else what the initial
//! version or one that another transaction left does; one of unknown outcome may have left one
//! too. Where none of these choices gives the result, no order does.
//!
//! **Method.** Counts are all numbers from the least to the most, least and largest values those
//! that some key has and none need go beyond. Sums are collected key by key, as long as
//! they are few; what lies outside of the least and the most is no sum in any case.

use super::matches::Found;
use super::{Finder, Listed, Reading};
use hashbrown::HashSet;
use isolde_history::{Aggregate, Computed, Datum, Function, History, KeyId, OpId, Outcome, Share};
use std::collections::BTreeSet;

/// More different sums than these are not told apart.
const SUMS_MAX: usize = 4_096;
/// Versions and sums that are looked at for all aggregates of a history together.
pub(super) const WORK_MAX: usize = 1 << 20;

/// What a version adds: nothing or a number, which is 1 for a row that is counted.
type Amount = Option<i128>;
/// What a key can add.
type Amounts = HashSet<Amount>;

impl Finder<'_, '_> {
    /// Whether no choice of a version of each key gives the result.
    pub(super) fn is_impossible(
        &mut self,
        reading: &Reading<'_>,
        aggregate: Aggregate,
        found: &Found,
    ) -> bool {
        if self.work_left == 0 {
            return false;
        }
        let history = self.versions.history;
        let keys: Vec<KeyId> = match found.dense {
            None if !self.has_uncounted() => {
                let keys = found.keys.iter().map(|entry| entry.0);
                let others = reading.listed.keys().chain(reading.own.keys()).copied();
                keys.chain(others).collect::<BTreeSet<KeyId>>().into_iter().collect()
            }
            _ => history.keys().collect(),
        };
        let mut all = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(amounts) = self.amounts(reading, key) else { return false };
            all.push(amounts);
        }
        let result = match aggregate.computed(history.values()) {
            Computed::Number(result) => result,
            Computed::Nothing if aggregate.function != Function::Count => {
                return all.iter().any(|amounts| !amounts.contains(&None));
            }
            Computed::Untold => return false,
            // No number of rows, and no value of one.
            Computed::Nothing | Computed::NoNumber => return true,
        };
        // No version of some key is what was listed of it.
        if all.iter().any(Amounts::is_empty) {
            return true;
        }
        match aggregate.function {
            Function::Count => !is_between(&all, result),
            Function::Sum => !is_between(&all, result) || self.is_no_sum(&all, result),
            Function::Min => !is_extreme(&all, result, |amount| amount >= result),
            Function::Max => !is_extreme(&all, result, |amount| amount <= result),
        }
    }

    /// What a key can add; `None` if that cannot be told, or was looked at too often.
    fn amounts(&mut self, reading: &Reading<'_>, key: KeyId) -> Option<Amounts> {
        let versions = self.versions;
        let history = versions.history;
        let amount =
            |write: Option<OpId>| amount(history, history.share(reading.predicate, key, write)?);
        if let Some(&own) = reading.own.get(&key) {
            return Some(Amounts::from_iter([amount(Some(own))?]));
        }
        let written = versions.index.versions_of(versions.history, key);
        self.spend(1 + written.len())?;
        let by_others = written.iter().filter(|version| {
            version.is_final()
                && version.txn != reading.txn
                && history.outcome(version.txn) != Outcome::Aborted
        });
        let mut amounts = Amounts::new();
        for write in by_others.map(|version| Some(version.op())).chain([None]) {
            let amount = amount(write)?;
            let value = || write.map_or(history.initial(key), |write| history.op(write).value);
            let fits = match reading.listed(key) {
                Listed::Value { value: listed, matched } => {
                    value() == listed && matched == amount.is_some()
                }
                Listed::Replaced => amount.is_some(),
                Listed::Untold | Listed::Absent => true,
            };
            amounts.extend(fits.then_some(amount));
        }
        Some(amounts)
    }

    /// Takes from what may be looked at, if that is enough; nothing is left otherwise.
    fn spend(&mut self, work: usize) -> Option<()> {
        let left = self.work_left.checked_sub(work);
        self.work_left = left.unwrap_or(0);
        left.map(drop)
    }

    /// Whether rows cannot have this sum.
    fn is_no_sum(&mut self, all: &[Amounts], result: i128) -> bool {
        // Of nothing there is no sum, not even zero.
        let mut sums = Amounts::from_iter([None]);
        for amounts in all {
            if self.spend(sums.len() * amounts.len()).is_none() {
                return false;
            }
            let added = |sum: Amount, amount: Amount| match (sum, amount) {
                (Some(sum), Some(amount)) => Some(sum + amount),
                (one, other) => one.or(other),
            };
            let pairs = sums.iter().flat_map(|&sum| amounts.iter().map(move |&it| added(sum, it)));
            sums = pairs.collect();
            if sums.len() > SUMS_MAX {
                return false;
            }
        }
        !sums.contains(&Some(result))
    }
}

/// What a share adds, if it is a number. These have 64 bits, so that no sum is too large.
fn amount(history: &History, share: Share) -> Option<Amount> {
    match share {
        Share::Nothing => Some(None),
        Share::Row => Some(Some(1)),
        Share::Value(value) => match history.datum(value) {
            Datum::Int(number) => Some(Some(number)),
            _ => None,
        },
    }
}

/// Whether a result lies between the least and the most that all keys add together.
fn is_between(all: &[Amounts], result: i128) -> bool {
    let (mut least, mut most) = (0, 0);
    for amounts in all {
        let numbers = || amounts.iter().map(|amount| amount.unwrap_or(0));
        least += numbers().min().unwrap_or(0);
        most += numbers().max().unwrap_or(0);
    }
    (least..=most).contains(&result)
}

/// Whether a key can have this value while all others have none beyond it.
fn is_extreme(all: &[Amounts], result: i128, is_within: impl Fn(i128) -> bool) -> bool {
    let can_stay_within = |amounts: &Amounts| amounts.iter().any(|it| it.is_none_or(&is_within));
    all.iter().all(can_stay_within) && all.iter().any(|amounts| amounts.contains(&Some(result)))
}
