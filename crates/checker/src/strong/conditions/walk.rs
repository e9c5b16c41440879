//! Conditions on numbers that many versions meet: walking a chain to the nearest changes.

use super::runs::Runs;
use isolde_history::Share;

/// What stands for a row that does not exist.
pub(super) const NO_ROW: i64 = i64::MIN;

/// A condition on numbers. It is not met by [`NO_ROW`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// Between these, both included.
    Between(i64, i64),
    /// Leaving, divided by the first, the second.
    Remainder(i64, i64),
}

impl Test {
    /// Numbers between these, as far as rows have such.
    pub(super) fn between(low: i128, high: i128) -> Test {
        let least = i128::from(NO_ROW) + 1;
        let within = |bound: i128| bound.clamp(least, i64::MAX.into()) as i64;
        if high < least || low > i64::MAX.into() {
            return Test::Between(i64::MAX, NO_ROW + 1);
        }
        Test::Between(within(low), within(high))
    }

    #[inline]
    fn holds(self, number: i64) -> bool {
        match self {
            Test::Between(low, high) => low <= number && number <= high,
            Test::Remainder(modulus, remainder) => {
                number != NO_ROW && number.rem_euclid(modulus) == remainder
            }
        }
    }
}

/// The versions of a key as numbers, in their order.
pub(super) struct Walk<'a> {
    pub(super) rows: &'a [i64],
    pub(super) test: Test,
    /// Whether it is values that are taken, not rows.
    pub(super) takes_values: bool,
}

impl Walk<'_> {
    /// Whether a version adds something.
    pub(super) fn adds(&self, place: u32) -> bool {
        self.test.holds(self.rows[place as usize])
    }

    /// Whether two versions add the same.
    #[inline]
    fn is_like(&self, one: i64, adds: bool, other: i64) -> bool {
        adds == self.test.holds(other) && (!adds || !self.takes_values || one == other)
    }

    /// The last version at or before a place that changes what is found.
    pub(super) fn last_change(&self, place: u32) -> Option<u32> {
        let here = self.rows[place as usize];
        let adds = self.test.holds(here);
        let mut before = self.rows[..place as usize].iter();
        let at = before.rposition(|&other| !self.is_like(here, adds, other))?;
        Some(at as u32 + 1)
    }

    /// The first version after a place that changes what is found.
    pub(super) fn next_change(&self, place: u32) -> Option<u32> {
        let here = self.rows[place as usize];
        let adds = self.test.holds(here);
        let mut after = self.rows[place as usize + 1..].iter();
        let at = after.position(|&other| !self.is_like(here, adds, other))?;
        Some(place + 1 + at as u32)
    }

    /// All runs of rows, where no place is known to walk from.
    pub(super) fn runs(&self) -> Runs {
        let mut runs = Runs::default();
        for place in (0..self.rows.len() as u32).filter(|&place| self.adds(place)) {
            runs.push(place, Share::Row);
        }
        runs
    }
}
