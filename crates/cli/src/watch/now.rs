//! The time for everything of a watch that waits, gives up or is slow: of the system, or of a
//! simulation.

#[cfg(not(test))]
use std::time::{Duration, Instant};

/// The time by a clock that never goes back.
#[cfg(not(test))]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// How long to wait for what another thread does.
#[cfg(not(test))]
pub(super) fn patience(time: Duration) -> Duration {
    time
}

#[cfg(test)]
pub(super) use simulated::{advance, now, patience};

#[cfg(test)]
mod simulated {
    use std::cell::Cell;
    use std::time::{Duration, Instant};

    thread_local! {
        static TIME: Cell<Option<Instant>> = const { Cell::new(None) };
    }

    /// The time of this thread's simulation, or the system's where nothing is simulated.
    pub(in crate::watch) fn now() -> Instant {
        TIME.get().unwrap_or_else(Instant::now)
    }

    /// No time at all in a simulation, where nobody else does anything meanwhile.
    pub(in crate::watch) fn patience(time: Duration) -> Duration {
        if TIME.get().is_some() { Duration::ZERO } else { time }
    }

    /// From now on it is so much later in this thread, and time passes in no other way.
    pub(in crate::watch) fn advance(by: Duration) {
        TIME.set(Some(now() + by));
    }
}
