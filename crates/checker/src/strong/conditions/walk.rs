//! Conditions on numbers that many versions meet: walking a chain to the nearest changes.

use super::runs::Runs;
use isolde_history::{Share, Value};

/// A condition on numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// Between these, both included.
    Between(i128, i128),
    /// Leaving, divided by the first, the second.
    Remainder(u64, u64),
}

impl Test {
    fn holds(self, number: i128) -> bool {
        match self {
            Test::Between(low, high) => low <= number && number <= high,
            Test::Remainder(modulus, remainder) => {
                number.rem_euclid(i128::from(modulus)) == i128::from(remainder)
            }
        }
    }
}

/// The versions of a key as numbers, in their order; none where the row does not exist.
pub(super) struct Walk<'a> {
    pub(super) rows: &'a [Option<(i128, Value)>],
    pub(super) test: Test,
    /// Whether it is values that are taken, not rows.
    pub(super) takes_values: bool,
}

impl Walk<'_> {
    /// What a version adds.
    pub(super) fn share(&self, place: u32) -> Share {
        match self.rows[place as usize] {
            Some((number, value)) if self.test.holds(number) => {
                if self.takes_values {
                    Share::Value(value)
                } else {
                    Share::Row
                }
            }
            _ => Share::Nothing,
        }
    }

    /// The last version at or before a place that changes what is found.
    pub(super) fn last_change(&self, place: u32) -> Option<u32> {
        let here = self.share(place);
        (1..=place).rev().find(|&at| self.share(at - 1) != here)
    }

    /// The first version after a place that changes what is found.
    pub(super) fn next_change(&self, place: u32) -> Option<u32> {
        let here = self.share(place);
        (place + 1..self.rows.len() as u32).find(|&at| self.share(at) != here)
    }

    /// All runs, where no place is known to walk from.
    pub(super) fn runs(&self) -> Runs {
        let mut runs = Runs::default();
        for place in 0..self.rows.len() as u32 {
            match self.share(place) {
                Share::Nothing => {}
                share => runs.push(place, share),
            }
        }
        runs
    }
}
