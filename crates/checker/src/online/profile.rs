//! Which mechanisms a database has, as data.
//!
//! A profile is what the verifier mirrors: it knows no databases. As text it is a list of
//! `name = value` lines; see [`Profile::parse`].

use super::trace::Time;

/// What a read is promised to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Nothing is promised, and nothing is checked.
    Unchecked,
    /// Each cell was committed, and not replaced, at an instant of its own while the
    /// statement ran.
    Item,
    /// As `item`, but at any instant from the transaction's begin on: snapshots that may
    /// be moved forward, or whose clocks order nothing but one item.
    Window,
    /// All cells of a statement at one instant while it ran.
    Statement,
    /// All cells of a transaction at one instant while it began.
    Begin,
    /// All cells of a transaction at one instant of its first request after the begin.
    FirstRequest,
    /// All cells of a transaction at one instant of its first read without a lock.
    FirstRead,
}

impl Reads {
    /// Whether all reads of a transaction have one instant.
    pub const fn is_transactional(self) -> bool {
        matches!(self, Reads::Begin | Reads::FirstRequest | Reads::FirstRead)
    }
}

/// What reads that lock, and reads of rows that the transaction has written, see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dml {
    /// The snapshot that all reads see.
    Snapshot,
    /// What is committed when the row is locked; a row that the transaction has written is
    /// from then on read as of that write.
    Current,
}

/// What becomes of two transactions that write one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// They may overwrite one another.
    Any,
    /// The second updater is refused, unless the first had committed before its snapshot.
    FirstUpdater,
    /// The second to commit is refused, unless the first had committed before its snapshot.
    FirstCommitter,
}

/// What is locked until the end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// Nothing.
    None,
    /// Rows that were written or read with a lock, against others that do so.
    Writes,
    /// Those, and rows that were read, against writers.
    ReadsAndWrites,
}

/// How much a lock locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// A row.
    Row,
    /// Everything: there is one writer at a time.
    Database,
}

/// How serializability is kept, if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certifier {
    /// It is not.
    None,
    /// In some way: dependencies form no cycle.
    Cycles,
    /// As `cycles`, and two anti-dependencies in a row between concurrent transactions, of
    /// which the last committed first, are refused.
    DangerousStructure,
    /// As `cycles`, and a transaction that writes is refused if anything that it read was
    /// replaced before it committed.
    Validation,
}

/// What one isolation level of one database is promised to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Consistent read.
    pub reads: Reads,
    /// What locking reads see.
    pub dml: Dml,
    /// First updater or committer wins.
    pub writers: Writers,
    /// Mutual exclusion.
    pub locks: Locks,
    /// What a lock covers.
    pub granularity: Granularity,
    /// Serialization certifier.
    pub certifier: Certifier,
    /// How old a snapshot may be, in nanoseconds: 0 where every read is of the present.
    pub staleness: Time,
}

impl Profile {
    /// Nothing is promised.
    pub const NONE: Profile = Profile {
        reads: Reads::Unchecked,
        dml: Dml::Snapshot,
        writers: Writers::Any,
        locks: Locks::None,
        granularity: Granularity::Row,
        certifier: Certifier::None,
        staleness: 0,
    };
}

/// A line of a profile that cannot be read. Displayed as `line 2: expected …, found …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    /// The line, from 1.
    pub line: usize,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl std::fmt::Display for ProfileError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "line {}: expected {}, found {}", self.line, self.expected, self.found)
    }
}

impl std::error::Error for ProfileError {}
