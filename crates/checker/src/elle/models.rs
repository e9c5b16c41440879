//! Elle's consistency models in terms of our levels.

use crate::level::Level;

/// A consistency model as Elle names it.
#[derive(Debug, PartialEq, Eq)]
pub struct Model {
    /// Elle's names for it, the usual one first.
    pub names: &'static [&'static str],
    /// The model holds if one of these levels does.
    pub(super) holds_with: &'static [Level],
    /// The model is broken if one of these is.
    pub(super) broken_with: &'static [Broken],
    /// What orders transactions beside what they read and write.
    pub(super) order: Order,
}

/// What breaks a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The level is violated.
    Violated(Level),
    /// The level is violated, and what shows it does not use session order.
    WithoutSessions(Level),
    /// The level is violated by transactions that read from each other or follow
    /// each other in a session in a circle, and by nothing weaker than that.
    BySessionFlow(Level),
    /// An anomaly that Elle calls so is among what violates our levels.
    Shown(&'static str),
}

/// What orders transactions in a model beside what they read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Nothing,
    Session,
    RealTime,
}

use Broken::{BySessionFlow, Shown, Violated, WithoutSessions};

/// A model that is one of our levels.
macro_rules! exactly {
    ($level:ident, $order:ident, $($name:literal),+) => {
        Model {
            names: &[$($name),+],
            holds_with: &[Level::$level],
            broken_with: &[Violated(Level::$level)],
            order: Order::$order,
        }
    };
}

/// A model that lies between our levels.
const fn between(
    names: &'static [&'static str],
    holds_with: &'static [Level],
    broken_with: &'static [Broken],
    order: Order,
) -> Model {
    Model { names, holds_with, broken_with, order }
}

/// Every model Elle knows.
///
/// Three things differ from a plain list of synonyms. Elle's read committed is
/// Adya's, without sessions. Its read atomic, causal (Cerone's) and prefix know no
/// sessions either, ours do: so ours holding shows theirs, and ours being violated
/// refutes theirs only if session order plays no part in it. And some models (Adya's
/// views, the strong forms of weak levels) are none of our levels: they lie between
/// two of them, and the answer is unknown where those two differ.
#[rustfmt::skip]
pub static MODELS: &[Model] = &[
    exactly!(ReadUncommitted, Nothing, "read-uncommitted", "PL-1"),
    exactly!(AdyaReadCommitted, Nothing, "read-committed", "PL-2"),
    exactly!(MonotonicAtomicView, Nothing, "monotonic-atomic-view"),
    exactly!(CursorStability, Nothing, "cursor-stability", "PL-CS"),
    exactly!(UpdateAtomic, Nothing, "update-atomic"),
    exactly!(ParallelSnapshotIsolation, Nothing, "parallel-snapshot-isolation"),
    exactly!(RepeatableRead, Nothing, "repeatable-read", "PL-2.99"),
    exactly!(SnapshotIsolation, Nothing, "snapshot-isolation", "PL-SI"),
    exactly!(SessionSnapshotIsolation, Session, "strong-session-snapshot-isolation"),
    exactly!(StrongSnapshotIsolation, RealTime, "strong-snapshot-isolation"),
    // Some version order must explain the history, so views and conflicts coincide.
    exactly!(Serializable, Nothing,
        "serializable", "PL-3", "conflict-serializable", "view-serializable", "1SR"),
    exactly!(SessionSerializable, Session, "strong-session-serializable", "session-serializable"),
    exactly!(StrictSerializable, RealTime, "strict-serializable", "PL-SS", "strong-serializable"),
    exactly!(ReadYourWrites, Session, "read-your-writes"),
    exactly!(MonotonicReads, Session, "monotonic-reads"),
    exactly!(MonotonicWrites, Session, "monotonic-writes"),
    exactly!(WritesFollowReads, Session, "writes-follow-reads"),
    between(&["read-atomic"], &[Level::ReadAtomic],
        &[Violated(Level::MonotonicAtomicView), WithoutSessions(Level::ReadAtomic)],
        Order::Nothing),
    between(&["causal-cerone"], &[Level::Causal],
        &[Violated(Level::MonotonicAtomicView), WithoutSessions(Level::ReadAtomic),
          WithoutSessions(Level::Causal)],
        Order::Nothing),
    between(&["prefix"], &[Level::Prefix],
        &[Violated(Level::MonotonicAtomicView), WithoutSessions(Level::ReadAtomic),
          WithoutSessions(Level::Causal)],
        Order::Nothing),
    between(&["monotonic-view", "PL-2L"], &[Level::ParallelSnapshotIsolation],
        &[Violated(Level::MonotonicAtomicView)],
        Order::Nothing),
    between(&["consistent-view", "PL-2+"], &[Level::ParallelSnapshotIsolation],
        &[Violated(Level::MonotonicAtomicView), Violated(Level::CursorStability),
          Shown("G-single")],
        Order::Nothing),
    between(&["forward-consistent-view", "PL-FCV"], &[Level::SnapshotIsolation],
        &[Violated(Level::MonotonicAtomicView), Violated(Level::CursorStability),
          Shown("G-single")],
        Order::Nothing),
    between(&["monotonic-snapshot-read", "PL-MSR"], &[Level::SnapshotIsolation],
        &[Violated(Level::AdyaReadCommitted)],
        Order::Nothing),
    between(&["update-serializable", "PL-3U"], &[Level::Serializable],
        &[Violated(Level::MonotonicAtomicView), Violated(Level::CursorStability),
          Shown("G-single")],
        Order::Nothing),
    between(&["strong-session-read-uncommitted", "strong-session-PL-1"], &[Level::ReadCommitted],
        &[Violated(Level::ReadUncommitted)],
        Order::Session),
    between(&["strong-session-read-committed", "strong-session-PL-2"], &[Level::ReadCommitted],
        &[Violated(Level::AdyaReadCommitted), BySessionFlow(Level::ReadCommitted)],
        Order::Session),
    between(&["strong-read-uncommitted", "strong-PL-1"],
        &[Level::StrongSnapshotIsolation, Level::StrictSerializable],
        &[Violated(Level::ReadUncommitted)],
        Order::RealTime),
    between(&["strong-read-committed", "strong-PL-2"],
        &[Level::StrongSnapshotIsolation, Level::StrictSerializable],
        &[Violated(Level::AdyaReadCommitted), BySessionFlow(Level::ReadCommitted)],
        Order::RealTime),
    between(&["PRAM"], &[Level::Causal],
        &[Violated(Level::ReadYourWrites), Violated(Level::MonotonicReads),
          Violated(Level::MonotonicWrites)],
        Order::Session),
    between(&["causal"], &[Level::Causal],
        &[Violated(Level::ReadYourWrites), Violated(Level::MonotonicReads),
          Violated(Level::MonotonicWrites), Violated(Level::WritesFollowReads)],
        Order::Session),
    // Of single objects: transactions on several may break the stronger level alone.
    between(&["sequential"], &[Level::SessionSerializable], &[], Order::Session),
    between(&["linearizable"], &[Level::StrictSerializable], &[], Order::RealTime),
];

impl Model {
    /// Whether Elle says that G1a breaks the model: so it does with read committed and all above.
    pub(super) fn forbids_aborted_reads(&self) -> bool {
        let committed = Level::AdyaReadCommitted;
        self.broken_with.iter().any(|broken| match *broken {
            Violated(level) => level == committed || level.weaker_than().contains(&committed),
            WithoutSessions(_) | BySessionFlow(_) | Shown(_) => false,
        })
    }

    /// The model of this name, with or without the colon of a keyword.
    pub fn parse(name: &str) -> Option<&'static Model> {
        let name = name.trim().trim_start_matches(':');
        MODELS.iter().find(|model| model.names.iter().any(|it| it.eq_ignore_ascii_case(name)))
    }
}
