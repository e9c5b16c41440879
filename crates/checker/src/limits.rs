//! What a check may use, and what it tells while it goes on.

use crate::level::Level;

/// What a check may use. The core reads no clock: the caller says when to stop.
pub struct Limits<'a> {
    /// Asked now and then; once true, open levels become [`Unknown::Limit`](crate::Unknown::Limit).
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Whether memory was the reason when `stop` last was true, and not time.
    pub is_memory: &'a (dyn Fn() -> bool + Sync),
    /// Memory for clocks and other working state, beside history and index.
    pub working_bytes_max: Option<usize>,
    /// Told what the check is at.
    pub observe: &'a (dyn Fn(Stage) + Sync),
}

impl Limits<'_> {
    /// No limits.
    pub const NONE: Limits<'static> =
        Limits { stop: &|| false, is_memory: &|| false, working_bytes_max: None, observe: &|_| {} };

    /// What to say of a level at which `stop` was true.
    pub(crate) fn reached(&self) -> &'static str {
        if (self.is_memory)() { MEMORY_REACHED } else { "the time limit was reached" }
    }
}

/// What is said of a level that needs more memory than there is.
pub(crate) const MEMORY_REACHED: &str = "the memory limit was reached";

/// What a check is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Deciding this level.
    Decide(Level),
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
    /// What is left falls apart, and is decided part by part.
    Components(ComponentCounts),
    /// Finding the shortest explanation.
    Explain,
}

/// Parts of an undecided history that can be decided one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComponentCounts {
    /// How many parts there are.
    pub parts: u64,
    /// Events in all of them.
    pub events: u64,
    /// Events in the largest.
    pub largest: u64,
}
