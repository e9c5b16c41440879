//! What beside the history decides a strong level.

use super::sources::Sources;
use isolde_history::Time;

/// What beside the history decides a strong level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which sources of order are used.
    pub sources: Sources,
    /// How far clocks of clients may be apart, in nanoseconds.
    pub clock_drift: Time,
    /// When to derive what follows from the known edges.
    pub saturate: Saturate,
    /// What decides what is left open.
    pub engine: Engine,
    /// Contradictions after which the search at a level of one order of commits is given
    /// up, or the work that these usually take. Where many writes are blind and the stronger
    /// levels do not hold, it may take longer than anybody waits.
    pub conflicts_max: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            sources: Sources::ALL,
            clock_drift: 0,
            saturate: Saturate::WhenHard,
            engine: Engine::Own,
            conflicts_max: None,
        }
    }
}

/// When to derive what follows from the known edges. The verdict is the same; how long it
/// takes and which violation is shown may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saturate {
    /// Once the solver has met many conflicts: most histories are decided sooner.
    WhenHard,
    /// Before the solver is asked anything.
    First,
    /// Not at all.
    Never,
}

/// What decides what is left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The solver of this project, which proves what it says.
    Own,
    /// CaDiCaL, for comparing: violations come without proof, and often without a cycle.
    #[cfg(feature = "cadical")]
    Cadical,
}
