//! What the verifier found: an event that no placement of the true instants explains.

use super::trace::{Cell, ClientId, Content, EventKind, Interval};

/// The mechanism that did not do what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mechanism {
    /// Reads see what they are promised.
    ConsistentRead,
    /// Locks exclude one another.
    MutualExclusion,
    /// Of two concurrent writers of a row one is refused.
    FirstUpdaterWins,
    /// What no serial order explains is refused.
    Certifier,
}

impl Mechanism {
    /// Its name, in kebab case.
    pub const fn name(self) -> &'static str {
        match self {
            Mechanism::ConsistentRead => "consistent-read",
            Mechanism::MutualExclusion => "mutual-exclusion",
            Mechanism::FirstUpdaterWins => "first-updater-wins",
            Mechanism::Certifier => "certifier",
        }
    }
}

/// What a finding is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Name {
    /// A read saw what nobody is known to have written.
    UnexplainedRead,
    /// A read saw the write of a transaction that was aborted.
    AbortedRead,
    /// A read saw a write before it could have been committed.
    DirtyRead,
    /// A read saw a write that its transaction replaced before it committed.
    IntermediateRead,
    /// A transaction did not read what it had written last.
    OwnWriteMissed,
    /// A read saw what had certainly been replaced before its snapshot.
    StaleRead,
    /// A read saw what was certainly committed after its snapshot.
    FutureRead,
    /// Reads of one snapshot saw what was never there together.
    ReadSkew,
    /// A row that met the condition at the snapshot was not listed.
    MissedRow,
    /// Two transactions held locks on one row that exclude one another.
    LockViolation,
    /// Two concurrent transactions wrote one row, and both committed.
    LostUpdate,
    /// Dependencies between committed transactions form a cycle.
    SerializationCycle,
    /// Two anti-dependencies in a row that had to be refused.
    DangerousStructure,
    /// A transaction committed although what it had read was replaced.
    FailedValidation,
    /// A transaction depends on one that began after it was over.
    TimestampInversion,
}

/// All names, in the order of their declaration.
pub static NAMES: &[Name] = &[
    Name::UnexplainedRead,
    Name::AbortedRead,
    Name::DirtyRead,
    Name::IntermediateRead,
    Name::OwnWriteMissed,
    Name::StaleRead,
    Name::FutureRead,
    Name::ReadSkew,
    Name::MissedRow,
    Name::LockViolation,
    Name::LostUpdate,
    Name::SerializationCycle,
    Name::DangerousStructure,
    Name::FailedValidation,
    Name::TimestampInversion,
];

impl Name {
    /// The name, in kebab case.
    pub const fn name(self) -> &'static str {
        match self {
            Name::UnexplainedRead => "unexplained-read",
            Name::AbortedRead => "aborted-read",
            Name::DirtyRead => "dirty-read",
            Name::IntermediateRead => "intermediate-read",
            Name::OwnWriteMissed => "own-write-missed",
            Name::StaleRead => "stale-read",
            Name::FutureRead => "future-read",
            Name::ReadSkew => "read-skew",
            Name::MissedRow => "missed-row",
            Name::LockViolation => "lock-violation",
            Name::LostUpdate => "lost-update",
            Name::SerializationCycle => "serialization-cycle",
            Name::DangerousStructure => "dangerous-structure",
            Name::FailedValidation => "failed-validation",
            Name::TimestampInversion => "timestamp-inversion",
        }
    }

    /// The mechanism that forbids it.
    pub const fn mechanism(self) -> Mechanism {
        match self {
            Name::LockViolation => Mechanism::MutualExclusion,
            Name::LostUpdate => Mechanism::FirstUpdaterWins,
            Name::SerializationCycle
            | Name::DangerousStructure
            | Name::FailedValidation
            | Name::TimestampInversion => Mechanism::Certifier,
            _ => Mechanism::ConsistentRead,
        }
    }
}

/// One event that a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Who made it.
    pub client: ClientId,
    /// Its transaction, by its number within the client.
    pub txn: u64,
    /// Its place among the operations of the transaction, from 1; 0 is the begin. Ends
    /// come after the last operation.
    pub operation: u32,
    /// What it is.
    pub kind: EventKind,
    /// When it took effect, as the client saw it.
    pub interval: Interval,
    /// What it read or wrote of the item that matters.
    pub cell: Option<Cell>,
    /// What it has to do with the finding.
    pub role: Role,
}

/// What an event has to do with a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It is the one that should not have been, or not so.
    Offender,
    /// The snapshot that the offending read should see was taken by it.
    Snapshot,
    /// It wrote what was read.
    WroteWhatWasRead,
    /// It made what was read visible, or ended without doing so.
    EndOfWriter,
    /// It replaced what was read.
    Replaced,
    /// It committed what replaced it.
    EndOfReplacer,
    /// It read or wrote before, and narrowed the snapshot.
    Earlier,
    /// It took the other lock.
    OtherLock,
    /// It ended the transaction of the other lock, or of the other writer.
    EndOfOther,
    /// It wrote the same row.
    OtherWrite,
    /// It ends the next transaction of the cycle, or of the structure.
    Next,
}

/// A version that a read could have seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its content; [`Content::UNKNOWN`] for what was there before everything.
    pub content: Content,
    /// The client and transaction that wrote it, if they are still known.
    pub writer: Option<(ClientId, u64)>,
    /// Between which instants it was committed, as far as that was narrowed down.
    pub committed: Interval,
}

/// How one transaction of a cycle leads to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DependencyKind {
    /// The next one read what it wrote.
    WriteRead = 0,
    /// The next one replaced what it wrote.
    WriteWrite = 1,
    /// The next one replaced what it read.
    ReadWrite = 2,
}

/// One step of a cycle or dangerous structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Client and number of the transaction that comes first.
    pub from: (ClientId, u64),
    /// Client and number of the one that comes after it.
    pub to: (ClientId, u64),
    /// Why.
    pub kind: DependencyKind,
    /// The item that it is about.
    pub item: u32,
}

/// A violation: no placement of the true instants inside the intervals explains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is called.
    pub name: Name,
    /// The event that should not have been.
    pub offender: Step,
    /// The events that it contradicts, in the order in which they are best told.
    pub others: Vec<Step>,
    /// What the offending read could have seen.
    pub candidates: Vec<Candidate>,
    /// Where the snapshot of the offending read lay, as far as that was narrowed down.
    pub snapshot: Option<Interval>,
    /// The cycle or structure, each transaction once, in order.
    pub dependencies: Vec<Dependency>,
}

impl Finding {
    /// The mechanism that did not do what it should.
    pub const fn mechanism(&self) -> Mechanism {
        self.name.mechanism()
    }
}
