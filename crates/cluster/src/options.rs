//! What workers are asked.

use isolde::Level;
use isolde_history::Time;

/// What is asked.
#[derive(Clone)]
pub struct Options {
    /// The levels to decide.
    pub levels: Vec<Level>,
    /// How far clocks may be apart, in nanoseconds.
    pub clock_drift: Time,
    /// What the history is, the same for all processes: its parts, by number and size.
    pub subject: String,
    /// About how many transactions a window has, if they are short: with fewer, windows take less
    /// memory and more work.
    pub window: u64,
    /// Whether there is no more memory.
    pub is_full: fn() -> bool,
}

/// So many transactions in a window are usual.
pub const USUAL_WINDOW: u64 = 1 << 14;
