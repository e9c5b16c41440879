//! When to start again, and when to forget.
//!
//! Starting again costs little here: the order stays, and with it most of what was
//! decided. It is done when clauses of late have more levels than
//! clauses on the whole (Audemard and Simon 2012).

const RECENT: f64 = 1.0 / 32.0;
const OVERALL: f64 = 1.0 / 4096.0;
/// How much worse recent clauses must be.
const WORSE: f64 = 1.2;
const CONFLICTS_BETWEEN: u64 = 50;
const REMOVABLE_FIRST: usize = 1_000;
const REMOVABLE_MORE: usize = 300;

pub(crate) struct Pace {
    recent: f64,
    overall: f64,
    conflicts: u64,
    since_restart: u64,
    removable_max: usize,
}

impl Pace {
    pub(crate) fn new() -> Pace {
        Pace {
            recent: 0.0,
            overall: 0.0,
            conflicts: 0,
            since_restart: 0,
            removable_max: REMOVABLE_FIRST,
        }
    }

    /// Takes note of a learned clause in which so many levels met.
    pub(crate) fn note(&mut self, levels: u32) {
        self.conflicts += 1;
        self.since_restart += 1;
        let levels = f64::from(levels);
        // Averages of the first clauses are those of all clauses so far.
        let weight = 1.0 / f64::from(u32::try_from(self.conflicts).unwrap_or(u32::MAX));
        self.recent += (levels - self.recent) * RECENT.max(weight);
        self.overall += (levels - self.overall) * OVERALL.max(weight);
    }

    pub(crate) fn restart_due(&self) -> bool {
        self.since_restart >= CONFLICTS_BETWEEN && self.recent > WORSE * self.overall
    }

    pub(crate) fn restarted(&mut self) {
        self.since_restart = 0;
    }

    pub(crate) fn reduction_due(&self, removable: usize) -> bool {
        removable >= self.removable_max
    }

    pub(crate) fn reduced(&mut self) {
        self.removable_max += REMOVABLE_MORE;
    }
}
