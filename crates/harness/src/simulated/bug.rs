//! Bugs that the simulated database can have, one row each.
//!
//! A bug is a decision that the store gets wrong now and then, where it has the
//! opportunity: a snapshot taken too early, a check that is skipped, a version that is
//! picked wrongly. Everything else keeps its level, so the anomaly in the history is
//! the one that the bug is called after.

use crate::parameters::{Isolation, ParameterError, Parameters};

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A read returns a value that nobody wrote.
    ThinAirRead,
    /// The writes of a refused transaction stay.
    AbortedRead,
    /// A read is executed after a later write of its own transaction.
    FutureRead,
    /// Of several own writes, an earlier one is read.
    NotMyLastWrite,
    /// An own write is not read.
    NotMyOwnWrite,
    /// A write that its transaction replaced is read.
    IntermediateRead,
    /// A key that is read again is read outside of the snapshot.
    NonRepeatableRead,
    /// The snapshot is older than the session's last commit.
    SessionGuaranteeViolation,
    /// Of a transaction that was seen, another write is missed.
    NonMonotonicRead,
    /// A write outside of the snapshot is read, of a transaction that was missed before.
    FracturedRead,
    /// The snapshot misses a transaction that others in it have read from.
    CausalityViolation,
    /// The snapshot misses a transaction that nothing in it depends on.
    LongFork,
    /// The check of keys that were read and written is skipped.
    LostUpdate,
    /// The check of keys that were only read is skipped.
    WriteSkew,
    /// The snapshot is older than the transaction.
    StaleSnapshot,
    /// A write that is not committed yet is read.
    DirtyRead,
    /// A crash loses the last commits, which were acknowledged.
    LostCommit,
    /// A condition that is read by again is read outside of the snapshot.
    Phantom,
    /// Another condition than before is read outside of the snapshot.
    PredicateManyPreceders,
    /// Rows that a read by condition did not find are not checked.
    PredicateWriteSkew,
    /// The check of rows that were inserted is skipped.
    LostInsert,
}

/// What a bug is called, and how it shows.
#[derive(Clone, Copy, Debug)]
pub struct BugRow {
    /// The bug.
    pub bug: Bug,
    /// Its name on the command line and in addresses.
    pub name: &'static str,
    /// What happens, in a few words.
    pub title: &'static str,
    /// The weakest level that a database is expected to violate by it.
    pub violates: &'static str,
    /// Names of the anomalies that it is.
    pub shows: &'static [&'static str],
    /// It is found in so many transactions of a suitable workload.
    pub found_within: u32,
    /// Whether lists can have it. Their elements have one order, whoever reads them.
    pub on_lists: bool,
}

const fn row(
    bug: Bug,
    name: &'static str,
    title: &'static str,
    violates: &'static str,
    shows: &'static [&'static str],
) -> BugRow {
    BugRow { bug, name, title, violates, shows, found_within: 1000, on_lists: false }
}

/// All bugs. The first fourteen are those of [Gu et al., ICDE 2025, Table I].
#[rustfmt::skip]
pub static BUGS: &[BugRow] = &[
    row(Bug::ThinAirRead, "thin-air-read", "a read returns a value that nobody wrote",
        "adya-read-committed", &["thin-air-read"]),
    row(Bug::AbortedRead, "aborted-read", "the writes of a refused transaction stay",
        "adya-read-committed", &["aborted-read"]),
    row(Bug::FutureRead, "future-read", "a read sees its transaction's own later write",
        "adya-read-committed", &["future-read"]),
    row(Bug::NotMyLastWrite, "not-my-last-write", "of several own writes, an earlier one is read",
        "adya-read-committed", &["not-my-last-write"]),
    row(Bug::NotMyOwnWrite, "not-my-own-write", "an own write is not read",
        "adya-read-committed", &["not-my-own-write"]),
    row(Bug::IntermediateRead, "intermediate-read", "a write that its transaction replaced is read",
        "adya-read-committed", &["intermediate-read"]),
    row(Bug::NonRepeatableRead, "non-repeatable-read", "a second read leaves the snapshot",
        "read-atomic", &["non-repeatable-read"]),
    BugRow { on_lists: true, ..row(Bug::SessionGuaranteeViolation, "session-guarantee-violation",
        "the snapshot is older than the session's last commit",
        "read-your-writes", &["missed-own-write"]) },
    row(Bug::NonMonotonicRead, "non-monotonic-read",
        "of a transaction that was seen, another write is missed",
        "monotonic-atomic-view", &["observed-transaction-vanishes"]),
    row(Bug::FracturedRead, "fractured-read",
        "of a transaction that was missed, another write is seen",
        "read-atomic", &["fractured-read"]),
    BugRow { found_within: 5000, ..row(Bug::CausalityViolation, "causality-violation",
        "the snapshot misses a transaction that others in it have read from",
        "causal", &["causality-violation", "write-without-its-reads"]) },
    BugRow { found_within: 10_000, ..row(Bug::LongFork, "long-fork",
        "the snapshot misses a transaction that nothing in it depends on",
        "snapshot-isolation", &["long-fork"]) },
    row(Bug::LostUpdate, "lost-update", "the check of keys that are read and written is skipped",
        "cursor-stability", &["lost-update"]),
    BugRow { on_lists: true, ..row(Bug::WriteSkew, "write-skew",
        "the check of keys that are only read is skipped",
        "serializable", &["write-skew", "anti-dependency-cycle"]) },
    BugRow { on_lists: true, ..row(Bug::StaleSnapshot, "stale-snapshot",
        "the snapshot is older than the transaction, but not than its session",
        "strong-snapshot-isolation", &["stale-read", "real-time-read-skew", "real-time-long-fork"]) },
    row(Bug::DirtyRead, "dirty-read", "a write that is not committed yet is read",
        "adya-read-committed",
        &["aborted-read", "intermediate-read", "circular-information-flow"]),
    row(Bug::LostCommit, "lost-commit", "a crash loses the last commits, which were acknowledged",
        "cursor-stability", &["lost-update"]),
    row(Bug::Phantom, "phantom", "a condition that is read by again is read outside of the snapshot",
        "snapshot-isolation", &["phantom"]),
    row(Bug::PredicateManyPreceders, "predicate-many-preceders",
        "another condition than before is read outside of the snapshot",
        "snapshot-isolation", &["predicate-many-preceders", "phantom"]),
    row(Bug::PredicateWriteSkew, "predicate-write-skew",
        "rows that a read by condition did not find are not checked",
        "serializable", &["predicate-write-skew", "predicate-anti-dependency-cycle"]),
    row(Bug::LostInsert, "lost-insert", "of two inserts of one row, both succeed",
        "snapshot-isolation", &["lost-insert"]),
];

impl Bug {
    /// The bug of this name.
    pub fn by_name(name: &str) -> Option<Bug> {
        BUGS.iter().find(|row| row.name == name).map(|row| row.bug)
    }

    /// Its row of [`BUGS`].
    pub fn row(self) -> &'static BugRow {
        BUGS.iter().find(|row| row.bug == self).expect("every bug has a row")
    }

    /// Whether it takes conditions or inserts, which generated histories do not have.
    pub fn is_of_rows(self) -> bool {
        matches!(
            self,
            Bug::Phantom | Bug::PredicateManyPreceders | Bug::PredicateWriteSkew | Bug::LostInsert
        )
    }

    /// Whether a store of this level can have it: there must be a snapshot to spoil, or
    /// a check to skip.
    pub fn fits(self, isolation: Isolation) -> bool {
        match isolation {
            Isolation::Serializable => true,
            Isolation::SnapshotIsolation => {
                !matches!(self, Bug::WriteSkew | Bug::PredicateWriteSkew)
            }
            _ => false,
        }
    }

    /// Whether histories with these parameters can have it.
    pub(crate) fn validate(self, parameters: &Parameters) -> Result<(), ParameterError> {
        let name = self.row().name;
        if !self.fits(parameters.isolation) {
            let levels: Vec<&str> = (Isolation::ALL.into_iter())
                .filter(|&isolation| self.fits(isolation))
                .map(Isolation::name)
                .collect();
            return Err(ParameterError::new(format!(
                "expected {} for a database with {name}, found {}",
                levels.join(" or "),
                parameters.isolation.name()
            )));
        }
        if self.is_of_rows() && !matches!(parameters.kind, crate::TxnKind::Rows(_)) {
            return Err(ParameterError::new(format!(
                "expected a workload of rows for {name}, which takes conditions, found one without: \
                 take the preset `phantoms` or `inserts`"
            )));
        }
        if parameters.kind == crate::TxnKind::ListAppend && !self.row().on_lists {
            return Err(ParameterError::new(format!(
                "expected a workload of registers for {name}, found one of lists"
            )));
        }
        Ok(())
    }
}
