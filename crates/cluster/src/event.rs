//! What windows of time are made of: events, when they may have happened, and what orders two.

use isolde_history::Time;
use serde::{Deserialize, Serialize};

/// The number of a transaction: its part in the upper half, its place there in the lower.
pub type TxnNumber = u64;

/// Which event of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// Begin and commit at once, where a level does not tell them apart.
    Whole,
    /// Its snapshot.
    Begin,
    /// Its commit.
    Commit,
}

/// An event, and the times between which it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Event {
    /// Not before this time.
    pub invoked: Time,
    /// Not after this time, on no clock.
    pub completed: Time,
    /// Whose event it is.
    pub txn: TxnNumber,
    /// Which of its events.
    pub kind: Kind,
}

impl Event {
    /// Whether real time puts this event before another. Two begins have no order: whether a
    /// snapshot was taken before another makes no difference to anybody.
    pub fn precedes(&self, other: &Event) -> bool {
        self.completed < other.invoked && !(self.kind == Kind::Begin && other.kind == Kind::Begin)
    }
}

/// An edge that a level demands between the events of two transactions, or of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Dependency {
    /// The earlier event.
    pub from: Event,
    /// The later one.
    pub to: Event,
}

impl Dependency {
    /// Whether it runs against real time: a cycle of two events.
    pub fn is_backward(&self) -> bool {
        self.to.precedes(&self.from)
    }

    /// Whether real time orders the two events the same way, so that the edge says nothing new.
    pub fn is_implied(&self) -> bool {
        self.from.precedes(&self.to)
    }
}
