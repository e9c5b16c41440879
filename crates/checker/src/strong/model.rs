//! What each strong level makes of dependencies: the table of events and edges.
//!
//! **Definition** [Adya99; the table is Isolde's]. Each counted transaction has a
//! begin B and a commit C with B → C, or one event where the level does not tell
//! them apart. A level says which edge between events each dependency means, and
//! holds if some version orders leave the graph of events without a cycle.
//!
//! | level | wr | ww | rw | beside |
//! |---|---|---|---|---|
//! | prefix | C→B | C→C | B→C | session C→B |
//! | snapshot isolation and its variants | C→B | C→B | B→C | session C→B, real time |
//! | serializable and its variants | one event | one event | one event | session, real time |
//!
//! Repeatable read is serializability without the anti-dependencies of rows read by
//! condition; cursor stability keeps only those of items that the reader also writes.

use crate::level::Level;
use isolde_history::{History, Interval, NEVER, Outcome, Time, TxnId};

/// A node of the graph: an event of a transaction, or a point that others pass through.
pub(super) type Node = u32;

/// How many events a transaction has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Events {
    /// Begin and commit fall together.
    One,
    /// Begin and commit are told apart.
    Two,
}

/// Where a writer's commit lies in relation to the next writer of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writers {
    /// Before the next one begins: no two writers of a key overlap.
    Apart,
    /// Before the next one commits.
    Overlap,
}

/// Which reads have anti-dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protected {
    /// All of them.
    Everything,
    /// Reads of items; not rows that were read by condition.
    Items,
    /// Reads of items that the reader also writes.
    RewrittenItems,
}

/// Events of two transactions that real time orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RealTime {
    pub(super) from: &'static [Event],
    pub(super) to: &'static [Event],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Begin,
    Commit,
}
use Event::{Begin, Commit};

impl Event {
    /// When a transaction's client asked for it and knew of it.
    pub(super) fn interval(self, history: &History, txn: TxnId) -> Interval {
        let times = history.txn_times(txn);
        match self {
            Begin => times.begin,
            Commit => times.commit,
        }
    }

    /// When it was over for all clocks, which are at most so far apart; [`NEVER`] if nobody
    /// knows, as with transactions of unknown outcome.
    #[inline]
    pub(super) fn completed(self, history: &History, txn: TxnId, clock_drift: Time) -> Time {
        match history.outcome(txn) {
            Outcome::Unknown => NEVER,
            Outcome::Committed | Outcome::Aborted => {
                self.interval(history, txn).completed.saturating_add(clock_drift)
            }
        }
    }
}

/// What a level makes of dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Model {
    pub(super) level: Level,
    pub(super) events: Events,
    pub(super) writers: Writers,
    pub(super) protected: Protected,
    pub(super) session: bool,
    pub(super) real_time: &'static [RealTime],
}

const SNAPSHOT: Model = Model {
    level: Level::SnapshotIsolation,
    events: Events::Two,
    writers: Writers::Apart,
    protected: Protected::Everything,
    session: false,
    real_time: &[],
};

const SERIAL: Model = Model { level: Level::Serializable, events: Events::One, ..SNAPSHOT };

/// Snapshots are not from the future, and commits keep their order.
const NOT_FROM_THE_FUTURE: RealTime = RealTime { from: &[Begin, Commit], to: &[Commit] };
/// Snapshots contain what had committed.
const LATEST: RealTime = RealTime { from: &[Commit], to: &[Begin, Commit] };
/// One event after another.
const AFTER: RealTime = RealTime { from: &[Commit], to: &[Begin] };

/// The levels of this family.
#[rustfmt::skip]
pub(super) static MODELS: &[Model] = &[
    Model { level: Level::CursorStability, protected: Protected::RewrittenItems, ..SERIAL },
    Model { level: Level::Prefix, writers: Writers::Overlap, session: true, ..SNAPSHOT },
    Model { level: Level::RepeatableRead, protected: Protected::Items, ..SERIAL },
    SNAPSHOT,
    Model { level: Level::GeneralizedSnapshotIsolation, real_time: &[NOT_FROM_THE_FUTURE], ..SNAPSHOT },
    Model { level: Level::SessionSnapshotIsolation, session: true, ..SNAPSHOT },
    Model { level: Level::PrefixConsistentSnapshotIsolation, session: true,
        real_time: &[NOT_FROM_THE_FUTURE], ..SNAPSHOT },
    Model { level: Level::StrongSnapshotIsolation, session: true,
        real_time: &[NOT_FROM_THE_FUTURE, LATEST], ..SNAPSHOT },
    SERIAL,
    Model { level: Level::SessionSerializable, session: true, ..SERIAL },
    Model { level: Level::StrictSerializable, session: true, real_time: &[AFTER], ..SERIAL },
];

impl Model {
    /// The row of a level, if it is of this family.
    pub(super) fn of(level: Level) -> Option<&'static Model> {
        MODELS.iter().find(|model| model.level == level)
    }

    /// How many nodes transactions have.
    pub(super) fn events_of(&self, txns: usize) -> usize {
        match self.events {
            Events::One => txns,
            Events::Two => 2 * txns,
        }
    }

    #[inline]
    pub(super) fn begin(&self, txn: TxnId) -> Node {
        match self.events {
            Events::One => txn.0,
            Events::Two => 2 * txn.0,
        }
    }

    #[inline]
    pub(super) fn commit(&self, txn: TxnId) -> Node {
        match self.events {
            Events::One => txn.0,
            Events::Two => 2 * txn.0 + 1,
        }
    }

    #[inline]
    pub(super) fn event(&self, txn: TxnId, event: Event) -> Node {
        match event {
            Begin => self.begin(txn),
            Commit => self.commit(txn),
        }
    }

    /// Where the edge from a writer to the next one of the key ends.
    #[inline]
    pub(super) fn next_writer(&self, txn: TxnId) -> Node {
        match self.writers {
            Writers::Apart => self.begin(txn),
            Writers::Overlap => self.commit(txn),
        }
    }

    /// The transaction of an event node.
    #[inline]
    pub(super) fn txn(&self, node: Node) -> TxnId {
        match self.events {
            Events::One => TxnId(node),
            Events::Two => TxnId(node / 2),
        }
    }

    /// Whether of two writers that both replace one version, one must have missed
    /// the other: a lost update.
    pub(super) fn forbids_divergence(&self) -> bool {
        self.writers == Writers::Apart
    }
}
