//! Bugs that the simulated database can have, one row each.
//!
//! A bug is a decision that the store gets wrong now and then, where it has the
//! opportunity: a snapshot taken too early, a check that is skipped, a version that is
//! picked wrongly. Everything else keeps its level, so the anomaly in the history is
//! the one that the bug is called after.

use crate::parameters::{Isolation, ParameterError, Parameters, TxnKind};
use crate::plan::{Action, Intent, Planner};
use crate::random::Random;
use Action::{Read, Write};

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

    /// What one transaction must do for it to show: in words, and as steps, of which it has
    /// to take one of these rows.
    fn takes(self) -> Option<(&'static str, &'static [&'static [Step]])> {
        Some(match self {
            Bug::FutureRead | Bug::LostUpdate => {
                ("read a key and then write it", &[&[(Read, 0), (Write, 0)]])
            }
            Bug::NotMyOwnWrite => ("write a key and then read it", &[&[(Write, 0), (Read, 0)]]),
            Bug::NotMyLastWrite => {
                ("write a key twice and then read it", &[&[(Write, 0), (Write, 0), (Read, 0)]])
            }
            Bug::IntermediateRead => ("write a key twice", &[&[(Write, 0), (Write, 0)]]),
            Bug::NonRepeatableRead => ("read a key twice", &[&[(Read, 0), (Read, 0)]]),
            Bug::NonMonotonicRead | Bug::FracturedRead => {
                ("read two keys", &[&[(Read, 0), (Read, 1)]])
            }
            Bug::CausalityViolation | Bug::WriteSkew => (
                "read one key and write another",
                &[&[(Read, 0), (Write, 1)], &[(Write, 0), (Read, 1)]],
            ),
            _ => return None,
        })
    }

    /// The options of a workload in which it is found within the number of transactions of its
    /// row, where the database has the weakest level that can have it.
    pub fn workload(self) -> &'static str {
        match self {
            Bug::LostInsert => "--preset inserts",
            bug if bug.is_of_rows() => "--preset phantoms",
            Bug::NonMonotonicRead | Bug::FracturedRead | Bug::CausalityViolation => {
                "--workload mixed --operations 4 --sessions 8 --keys 5 --distribution uniform"
            }
            _ => "--workload mini --sessions 8 --keys 5 --distribution uniform",
        }
    }

    /// What is said of a history in which it does not show.
    pub fn not_shown(self) -> String {
        let BugRow { name, violates, found_within, .. } = self.row();
        let level = if self.fits(Isolation::SnapshotIsolation) {
            Isolation::SnapshotIsolation
        } else {
            Isolation::Serializable
        };
        format!(
            "{name} does not show in this history, where {violates} holds: it is likely to with \
             `{} --transactions {found_within}` and a database of {}",
            self.workload(),
            level.name()
        )
    }

    /// Whether histories with these parameters can have it.
    pub fn validate(self, parameters: &Parameters) -> Result<(), ParameterError> {
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
        if self.is_of_rows() && !matches!(parameters.kind, TxnKind::Rows(_)) {
            return Err(ParameterError::new(format!(
                "expected a workload of rows for {name}, which takes conditions, found one without: \
                 take the preset `phantoms` or `inserts`"
            )));
        }
        if parameters.kind == TxnKind::ListAppend && !self.row().on_lists {
            return Err(ParameterError::new(format!(
                "expected a workload of registers for {name}, found one of lists"
            )));
        }
        match self.takes() {
            Some((words, rows)) if !is_planned(rows, parameters) => {
                Err(ParameterError::new(format!(
                    "expected a workload whose transactions {words} for {name}, found none in \
                     {} of them: take `{}`",
                    plans(parameters),
                    self.workload()
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Plans that are looked at. No kind of transaction of a workload is so rare that it is not
/// among them, unless the user wants it to be; of long ones, each has more of everything.
fn plans(parameters: &Parameters) -> u64 {
    const PLANS_MAX: u64 = 4096;
    const COMPARISONS_MAX: u64 = 1 << 24;
    let operations = u64::from(parameters.operations.max(1));
    (COMPARISONS_MAX / (operations * operations)).clamp(1, PLANS_MAX)
}

/// What is done with a key; keys are numbered from 0, different ones with different numbers.
type Step = (Action, usize);

/// Whether some transactions of a workload take one of these rows of steps. Those on rows of
/// tables are not planned ahead, and may.
fn is_planned(rows: &[&[Step]], parameters: &Parameters) -> bool {
    if let TxnKind::Rows(_) = parameters.kind {
        return true;
    }
    let mut planner = Planner::of_session(parameters);
    let (mut random, mut plan) = (Random::new(0), Vec::new());
    (0..plans(parameters)).any(|_| {
        planner.plan(&mut random, &mut plan);
        rows.iter().any(|steps| has_steps(&plan, steps, &mut Vec::new()))
    })
}

/// Whether a plan has these steps among others; `keys` are those of the steps before.
fn has_steps(plan: &[Intent], steps: &[Step], keys: &mut Vec<u32>) -> bool {
    let Some((&(action, number), later)) = steps.split_first() else { return true };
    plan.iter().enumerate().any(|(place, intent)| {
        let known = keys.get(number).copied();
        let is_key = known.map_or_else(|| !keys.contains(&intent.key), |known| known == intent.key);
        if intent.action != action || !is_key {
            return false;
        }
        let before = keys.len();
        if known.is_none() {
            keys.push(intent.key);
        }
        let found = has_steps(&plan[place + 1..], later, keys);
        keys.truncate(before);
        found
    })
}
