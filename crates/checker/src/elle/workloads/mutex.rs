//! `mutex`: a lock is held by one client at a time.
//!
//! **Definition** [Knossos's `mutex`]. `acquire` takes effect when the lock is free and
//! `release` when it is held, by whomever, one after another, each while it was open.
//! One that failed did not happen.
//!
//! **Method.** See [`linearizable`](crate::linearizable).

use super::{Finding, Misfit, Recorded};
use crate::linearizable::Reading;

pub(super) fn check(recorded: &Recorded<'_>) -> Result<Finding, Misfit> {
    recorded.linearizable(Reading::default(), "acquires and releases of a lock")
}
