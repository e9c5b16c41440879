//! Times as clients note them.
//!
//! The store acts at instants, one after another. A client sees an interval around
//! the instant of its request, and intervals of different clients overlap.

use crate::random::Random;
use isolde_history::{Interval, Time, TxnTimes};

/// Nanoseconds from one instant to the next, at least.
const TICK: u32 = 1000;
/// A request is sent at most this long before the store acts.
const DELAY_MAX: u32 = 8 * TICK;

/// The store's time.
#[derive(Default)]
pub(crate) struct Clock {
    now: Time,
}

/// When the requests of one transaction were made.
#[derive(Default)]
pub(crate) struct Stamps {
    /// Begin, operations, commit.
    pub(crate) requests: Vec<Interval>,
    /// When the session's last answer came, of this transaction or an earlier one.
    answered: Time,
}

impl Clock {
    /// Notes a request that the store answers now.
    pub(crate) fn note(&mut self, stamps: &mut Stamps, random: &mut Random) {
        self.now += Time::from(TICK + random.below(TICK));
        let sent = self.now - Time::from(random.below(DELAY_MAX));
        // The answer comes before the store's next instant, hence before the
        // session's next request.
        let completed = self.now + Time::from(random.below(TICK));
        stamps.requests.push(Interval { invoked: sent.max(stamps.answered), completed });
        stamps.answered = completed;
    }

    /// An interval after all others.
    pub(crate) fn after_all(&self) -> Interval {
        let invoked = self.now + Time::from(TICK);
        Interval { invoked, completed: invoked + Time::from(TICK) }
    }
}

impl Stamps {
    pub(crate) fn clear(&mut self) {
        self.requests.clear();
    }

    /// Begin and commit. A transaction that was refused earlier ends there.
    pub(crate) fn times(&self) -> Option<TxnTimes> {
        let (first, last) = (self.requests.first()?, self.requests.last()?);
        Some(TxnTimes { begin: *first, commit: *last })
    }
}
