//! What beside the history decides a strong level.

use super::sources::Sources;
use crate::strategy::Strategies;
use isolde_history::Time;

/// What beside the history decides a strong level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which sources of order are used.
    pub sources: Sources,
    /// How far clocks of clients may be apart, in nanoseconds.
    pub clock_drift: Time,
    /// Strategies that are not tried. Verdicts stay the same, or become unknown.
    pub without: Strategies,
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
            without: Strategies::NONE,
            engine: Engine::Own,
            conflicts_max: None,
        }
    }
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
