//! What a check may use, when it gives up, and what it is at.
//!
//! Time and memory are the caller's: the core reads no clock. Where a level is left open so that
//! others have their turn, [`Work`] decides, which is counted: the same check of the same history
//! gives up at the same place on every machine, however many threads there are and however busy
//! they are.

use crate::level::Level;
use crate::strategy::StrategyName;
use crate::unknown::Limit;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a check may use. The core reads no clock: the caller says when to stop.
pub struct Limits<'a> {
    /// Asked now and then; once true, open levels become [`Unknown::Limit`](crate::Unknown).
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Whether memory was the reason when `stop` last was true, and not time.
    pub is_memory: &'a (dyn Fn() -> bool + Sync),
    /// Memory for clocks and other working state, beside history and index.
    pub working_bytes_max: Option<usize>,
    /// The work of whom this is a part; a check counts its own.
    pub work: Option<&'a Work<'a>>,
    /// Told what the check is at.
    pub observe: &'a (dyn Fn(Stage) + Sync),
}

impl Limits<'_> {
    /// No limits.
    pub const NONE: Limits<'static> = Limits {
        stop: &|| false,
        is_memory: &|| false,
        working_bytes_max: None,
        work: None,
        observe: &|_| {},
    };

    /// Whether to give up.
    pub(crate) fn is_over(&self) -> bool {
        self.work.is_some_and(Work::is_done) || (self.stop)()
    }

    /// Counts work. Threads do not share one: see [`Work::part`].
    pub(crate) fn spend(&self, units: u64) {
        if let Some(work) = self.work {
            work.spend(units);
        }
    }

    /// What is left of the work, if that is limited.
    pub(crate) fn work_left(&self) -> Option<u64> {
        self.work.map(Work::left).filter(|&left| left < u64::MAX)
    }

    /// What to say of a level at which it is over.
    pub(crate) fn reached(&self) -> Limit {
        if self.work.is_some_and(Work::is_done) {
            Limit::Turn
        } else if (self.is_memory)() {
            Limit::Memory
        } else {
            Limit::Time
        }
    }
}

/// How much work is done, and how much may be.
///
/// The unit is that of [`acyclic::Limits::work_max`], a few of which take a microsecond.
pub struct Work<'a> {
    done: AtomicU64,
    most: AtomicU64,
    /// Who else counts it.
    within: Option<&'a Work<'a>>,
}

impl<'a> Work<'a> {
    /// As much as `within` allows.
    pub(crate) const fn new(within: Option<&'a Work<'a>>) -> Self {
        Work { done: AtomicU64::new(0), most: AtomicU64::new(u64::MAX), within }
    }

    /// One of several parts that are done at the same time: it counts by itself, or it would be
    /// their race where each of them ends.
    pub(crate) fn part(limits: &Limits<'_>, parts: usize) -> Work<'static> {
        let left = limits.work_left().map_or(u64::MAX, |left| left / parts.max(1) as u64);
        Work { done: AtomicU64::new(0), most: AtomicU64::new(left), within: None }
    }

    /// Allows so much work from now on.
    pub(crate) fn allow(&self, units: u64) {
        self.most.store(self.done().saturating_add(units), Relaxed);
    }

    /// Does something within so much of what is left.
    pub(crate) fn within<T>(&self, units: u64, act: impl FnOnce() -> T) -> T {
        let most = self.most.load(Relaxed);
        self.most.store(most.min(self.done().saturating_add(units)), Relaxed);
        let result = act();
        self.most.store(most, Relaxed);
        result
    }

    pub(crate) fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left() == 0
    }

    fn spend(&self, units: u64) {
        self.done.fetch_add(units, Relaxed);
        if let Some(within) = self.within {
            within.spend(units);
        }
    }

    /// The largest number if it is not limited.
    fn left(&self) -> u64 {
        let own = match self.most.load(Relaxed) {
            u64::MAX => u64::MAX,
            most => most.saturating_sub(self.done.load(Relaxed)),
        };
        self.within.map_or(own, |within| own.min(within.left()))
    }
}

/// What a check is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Deciding this level.
    Decide(Level),
    /// This strategy decided a level.
    Decided {
        /// The level.
        level: Level,
        /// What decided it.
        by: StrategyName,
    },
    /// Finding versions and known orders.
    Infer,
    /// Sorting and guessing.
    Witness,
    /// A serial order along the clients' times explains every read.
    Replayed {
        /// How often it was put right.
        repairs: u64,
    },
    /// What is known about version orders.
    Versions {
        /// Pairs of versions of one key, as far as its order is open.
        pairs: u64,
        /// Keys whose order is open.
        open_keys: u64,
    },
    /// Putting all sessions in one order, where values repeat.
    Interleave,
    /// Trying who wrote what was read, where values repeat.
    Choose,
    /// Trying all orders of what was done to some keys.
    Enumerate,
    /// Deciding what the guess gets wrong.
    Solve,
    /// The solver ended.
    Solved {
        /// Pairs of versions it was asked about.
        choices: u64,
        /// Times that decisions contradicted each other.
        conflicts: u64,
    },
    /// Deriving what follows.
    Saturate,
    /// Nothing more follows.
    Saturated {
        /// Rounds it took.
        rounds: u64,
        /// Edges found.
        derived: u64,
        /// Pairs of versions whose order does not follow.
        open: u64,
    },
    /// Finding the shortest explanation.
    Explain,
}
