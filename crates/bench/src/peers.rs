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

/// What seconds are counted by; ours are compared with those of the same clock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    Processor,
    Wall,
}

/// What a checker needed for a history of the same parameters as one of ours.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    /// Its name and level.
    pub(crate) name: &'static str,
    /// Seconds, of the processor unless only those of the wall clock are known.
    pub(crate) seconds: f64,
    pub(crate) clock: Clock,
    /// MiB.
    pub(crate) peak: f64,
}

const fn peer(name: &'static str, seconds: f64, peak: f64) -> Peer {
    Peer { name, seconds, clock: Clock::Processor, peak }
}

/// 10,000 transactions of `BlindW-RW`.
pub(crate) const BLINDW_SERIALIZABLE: Peer = peer("VeriStrong SER", 23.8, 1017.0);
pub(crate) const BLINDW_SNAPSHOT: Peer = peer("VeriStrong SI", 42.7, 1686.0);
/// 10,000 transactions of `GeneralRW`.
pub(crate) const GENERAL_RW_SERIALIZABLE: Peer = peer("VeriStrong SER", 14.0, 801.0);
pub(crate) const GENERAL_RW_SNAPSHOT: Peer = peer("VeriStrong SI", 29.6, 1410.0);
/// 10,000 transactions of `GeneralWH`; snapshot isolation was not measured, and where
/// both were it took longer.
pub(crate) const GENERAL_WH: Peer = peer("VeriStrong SER", 35.7, 915.0);
/// 10,000 transactions of `PolySI`; the same holds.
pub(crate) const POLYSI: Peer = peer("VeriStrong SER", 52.0, 1388.0);
/// 100,000 transactions of `BlindW-RW` on 20,000 keys, with times.
pub(crate) const BLINDW_STRICT: Peer = peer("Vbox strict SER", 3.8, 547.0);
/// A million mini-transactions with times.
pub(crate) const MINI_STRICT: Peer = peer("Vbox strict SER", 19.9, 3376.0);
/// A million list transactions.
pub(crate) const LIST_APPEND: Peer =
    Peer { clock: Clock::Wall, ..peer("adya, wall clock", 44.0, 4100.0) };
