//! Why a level was not decided: the limit that was reached, or what of the history is in the way.
//!
//! Reasons are data, and who steers by one looks at its variant. Their words are made here alone.

use isolde_history::memory_size;
use std::fmt;

/// Why a level was not decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The history has operations that are neither reads nor writes.
    Calls {
        /// How many.
        operations: usize,
        /// What the first one is called, and where it stands.
        first: String,
    },
    /// Repeated values leave too many possible writers to try them all.
    RepeatedValues {
        /// Reads with several possible writers.
        reads: usize,
    },
    /// A limit was reached; with more of it the level may be decided.
    Limit(Limit),
    /// This level is not decided for histories like this one, however long it takes.
    Unsupported(Obstacle),
}

/// A limit that ended the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The time of the caller.
    Time,
    /// The memory of the caller.
    Memory,
    /// What a level needs beside the history is more than is left.
    WorkingMemory {
        /// In bytes.
        needed: usize,
        /// In bytes.
        left: usize,
    },
    /// What a level may take so that others have their turn.
    Turn,
    /// How often decisions of a search may contradict each other.
    Conflicts,
    /// What a search may take.
    Work,
    /// Time, while operations on objects were put in order.
    TimeOfObjects,
    /// Memory, while operations on objects were put in order.
    MemoryOfObjects,
    /// Memory for the operations on an object that were open at once.
    OpenOperations {
        /// What the search may take.
        mebibytes: usize,
    },
    /// The threads that the system allows.
    Threads,
    /// A signal ended the work.
    Interruption,
    /// The short time of a level that nobody asked for.
    Unasked,
}

impl Limit {
    /// Whether it was time that ran out.
    pub const fn is_time(self) -> bool {
        matches!(self, Limit::Time | Limit::TimeOfObjects)
    }
}

/// What keeps a level from being decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The level is about times, and the history has none.
    NoTimes,
    /// Linearizability is about single operations.
    SeveralOperations,
    /// The same, said by the definition.
    LongTransaction,
    /// Session order is part of the level and is not looked at.
    WithoutSessions,
    /// Real time is part of the level and is not looked at.
    WithoutTimes,
    /// The order that lists show is not looked at.
    WithoutLists,
    /// A list shows an element that several appends may have added.
    RepeatedElement,
    /// A value may come from a transaction of unknown outcome, which nobody else observed.
    UnobservedWriter {
        /// What it is called.
        txn: String,
    },
    /// Too many versions that refused compare-and-sets may have found.
    RefusedOrigins,
    /// What was read by predicate may be due to too many transactions of unknown outcome.
    UnknownOutcomes,
    /// An order explains the rows that were read, but not what was found by predicate.
    OpenPredicate(VersionsKnown),
    /// Every object has an order, and whether one order fits all of them is open.
    OpenMerge,
    /// It was asked for without a search, and nothing refutes it so.
    NotSearched,
    /// Values repeat in a stream that is decided round by round.
    RepeatedInRound {
        /// How many.
        values: usize,
    },
    /// Every strategy that may decide it was switched off.
    SwitchedOff,
    /// The definition is tried on small histories only.
    TooLarge(Size),
    /// The definition says nothing of such histories.
    Undefined(Undefined),
}

/// What is known of versions that a read by predicate looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionsKnown {
    /// Their order, and snapshots.
    OrderAndSnapshots,
    /// Their order.
    Order,
    /// Nothing.
    Nothing,
}

/// What of a history is too much for trying a definition in all ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Transactions that count: how many, and how many may be.
    Txns(usize, usize),
    /// Operations, rows and list elements: how many, and how many may be.
    Operations(usize, usize),
    /// Keys whose version order is open: how many, and how many may be.
    OpenKeys(usize, usize),
    /// More combinations of writers of repeated values than this.
    Writers(usize),
    /// More combinations of versions that an aggregate may have seen than this.
    Aggregates(usize),
    /// More graphs of version orders than this.
    VersionOrders(usize),
    /// More graphs of reads by predicate than this.
    Predicates(usize),
}

/// What definitions say nothing of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undefined {
    /// Operations that are neither reads nor writes.
    Calls,
    /// A list with an element that nobody learned.
    UnlearnedElement,
    /// A write whose value nobody learned.
    UnlearnedWrite,
    /// A key that is a register and a list.
    RegisterAndList,
    /// A key whose initial value is not known.
    InitialValue,
}

impl fmt::Display for Unknown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unknown::Calls { operations, first } => write!(
                out,
                "{}, so isolation levels say nothing about it; `isolde elle` has models of such \
                 operations",
                match operations {
                    1 => format!("one operation is neither read nor write ({first})"),
                    count => format!(
                        "{count} operations are neither read nor write (the first: {first})"
                    ),
                }
            ),
            Unknown::RepeatedValues { reads } => write!(
                out,
                "values repeat: {reads} reads have several possible writers, and no choice of \
                 them was found that decides the level"
            ),
            Unknown::Limit(limit) => limit.fmt(out),
            Unknown::Unsupported(obstacle) => obstacle.fmt(out),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match *self {
            Limit::Time => "the time limit was reached",
            Limit::Memory => "the memory limit was reached",
            Limit::WorkingMemory { needed, left } => {
                let (needed, left) = (memory_size(needed), memory_size(left));
                return write!(
                    out,
                    "the memory limit was reached: {needed} of working memory, {left} left"
                );
            }
            Limit::Turn => "its part of the work was done",
            Limit::Conflicts => {
                "the search met too many contradictions and was given up; with a time limit it \
                 goes on until then"
            }
            Limit::Work => {
                "the search took too long and was given up; with a time limit it goes on until then"
            }
            Limit::TimeOfObjects => "time is up while orders are searched",
            Limit::MemoryOfObjects => "memory is up while orders are searched",
            Limit::OpenOperations { mebibytes } => {
                return write!(
                    out,
                    "too many operations are open at once: the search for an order needs more \
                     memory than {mebibytes} MB"
                );
            }
            Limit::Threads => "the system allows no more threads",
            Limit::Interruption => "interrupted",
            Limit::Unasked => {
                "it is not asked for, and got no more than five seconds beside the time of the \
                 levels that are"
            }
        })
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Obstacle::NoTimes => "the history has no times",
            Obstacle::SeveralOperations => {
                "linearizability is about single operations, and transactions have several"
            }
            Obstacle::LongTransaction => "a transaction has more than one operation",
            Obstacle::WithoutSessions => {
                "session order, which is part of this level, was switched off"
            }
            Obstacle::WithoutTimes => "real time, which is part of this level, was switched off",
            Obstacle::WithoutLists => "this level is decided only with the order that lists show",
            Obstacle::RepeatedElement => "an element of a list was appended more than once",
            Obstacle::UnobservedWriter { txn } => {
                return write!(
                    out,
                    "a value was written more than once, also by {txn}, whose outcome is unknown \
                     and which nobody else observed"
                );
            }
            Obstacle::RefusedOrigins => {
                "what refused compare-and-sets found was not recorded, and they may have seen too \
                 many versions to try them all"
            }
            Obstacle::UnknownOutcomes => {
                "what was found by condition may be due to transactions of unknown outcome, which \
                 are too many to try with and without each of them"
            }
            Obstacle::OpenPredicate(known) => {
                return write!(
                    out,
                    "an order of transactions was found that fits every read of a row, but not \
                     what was found by condition, and {known}"
                );
            }
            Obstacle::OpenMerge => {
                "every object has an order, but what sessions did one after another is not so by \
                 the times, and whether one order fits all objects is not decided for so many \
                 operations"
            }
            Obstacle::NotSearched => "nothing refutes this level without a search",
            Obstacle::RepeatedInRound { values } => {
                return write!(out, "{values} values repeat, and rounds need unique ones");
            }
            Obstacle::SwitchedOff => "the strategies that decide this level were switched off",
            Obstacle::TooLarge(size) => return size.fmt(out),
            Obstacle::Undefined(what) => return write!(out, "the history {what}"),
        })
    }
}

impl fmt::Display for VersionsKnown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            VersionsKnown::OrderAndSnapshots => {
                "the snapshots and the order of versions that the database told do not settle it"
            }
            VersionsKnown::Order => {
                "which versions were looked at is not known: the database told their order, and \
                 no snapshots"
            }
            VersionsKnown::Nothing => {
                "the order of the versions is not known; the database can tell it (`isolde run \
                 --white-box`)"
            }
        })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Size::Txns(found, most) => {
                write!(out, "the history has {found} transactions that count, more than {most}")
            }
            Size::Operations(found, most) => write!(
                out,
                "the history has {found} operations, rows and list elements, more than {most}"
            ),
            Size::OpenKeys(found, most) => write!(
                out,
                "the history has {found} keys whose version order is open, more than {most}"
            ),
            Size::Writers(most) => write!(
                out,
                "values repeat so that reads have more than {most} combinations of writers"
            ),
            Size::Aggregates(most) => {
                write!(out, "an aggregate may have seen more than {most} combinations of versions")
            }
            Size::VersionOrders(most) => {
                write!(out, "the version orders make more than {most} graphs")
            }
            Size::Predicates(most) => {
                write!(out, "reads by condition make more than {most} graphs")
            }
        }
    }
}

impl fmt::Display for Undefined {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Undefined::Calls => "has operations that are neither read nor write",
            Undefined::UnlearnedElement => "has a list with an element never learned",
            Undefined::UnlearnedWrite => "has a write whose value was never learned",
            Undefined::RegisterAndList => "uses a key both as a register and as a list",
            Undefined::InitialValue => "has a key whose initial value is not known",
        })
    }
}
