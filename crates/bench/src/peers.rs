//! What other checkers were measured to need.
//!
//! Their figures were taken on a machine of the same kind, with histories of the
//! same parameters from another generator. With a path to the program they are
//! measured anew, on the very same file.

/// Processor seconds and memory of AWDIT for one level, of a million transactions
/// in 50 sessions, 8 operations each, half of them reads, on 100,000 keys.
pub(crate) struct Awdit {
    /// Its name for the level, which is ours too.
    pub(crate) level: &'static str,
    pub(crate) cpu: f64,
    pub(crate) peak: f64,
}

pub(crate) const AWDIT: [Awdit; 3] = [
    Awdit { level: "read-committed", cpu: 5.2, peak: 695.0 },
    Awdit { level: "read-atomic", cpu: 7.7, peak: 1149.0 },
    Awdit { level: "causal", cpu: 38.0, peak: 6791.0 },
];

/// Transactions that the figures are of.
pub(crate) const AWDIT_TRANSACTIONS: u32 = 1_000_000;
