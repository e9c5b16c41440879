//! The rules of derivations: why one event precedes another.
//!
//! This is the one language in which anybody says so: engines derive in it, certificates are
//! written in it, and explanations read it. Each of them holds a path in its own way. What a rule
//! demands of a history is the verifier's to know (`verify/derivation.rs`), and nobody else's.

use isolde_history::{KeyId, OpId};

/// The place of a step among the steps of its derivation, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId(pub u32);

/// Why one event precedes another.
///
/// Paths are earlier steps, each of which starts where the one before ends; from a
/// transaction's begin to its commit no step is needed. A reader "reads from" a
/// transaction if that is the only possible origin of the read.
///
/// A derivation names the steps of a path by their places. Others who speak of the same rules
/// may hold a `Path` in another way: whoever derives by its ends, whoever explains by the steps
/// themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule<Path = Vec<StepId>> {
    /// One session ran one transaction before the other: commit to begin.
    Session,
    /// A client saw one event complete before it, or another, invoked the other.
    RealTime,
    /// The initial transaction precedes all others.
    InitialFirst,
    /// `to` begins the reader, `from` commits the transaction it read `key` from.
    ReadsFrom {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
    },
    /// A list read shows an append of `from` before one of `to`, or one of `from` and
    /// not one of `to`: version order.
    ListOrder {
        /// The list read.
        read: OpId,
        /// Its key.
        key: KeyId,
    },
    /// The database said that `from` installed a version of the key before `to` did:
    /// version order.
    GivenOrder {
        /// The key.
        key: KeyId,
    },
    /// The reader that `from` begins saw the initial state of a key that `to` writes.
    InitialRead {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
    },
    /// Two writers of a key. The other order would contradict the path, which leads
    /// from the begin of the first writer to the commit of the second (for prefix
    /// consistency from commit to commit): version order.
    Pair {
        /// The key.
        key: KeyId,
        /// Why not the other way round.
        path: Path,
    },
    /// A reader reads `key` from `to`, although `from` writes the key too and was
    /// visible to it: so `from` was overwritten, version order. For levels of begins
    /// and commits the path leads from the commit of `from` to the begin of the
    /// reader; for levels of one commit order it is one that the level calls visible.
    /// There `to` is [the initial one](crate::Node::INITIAL) if the reader saw the initial state.
    Visible {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
        /// From `from` to the reader.
        path: Path,
    },
    /// The reader that `from` begins reads `key` from a transaction whose version
    /// precedes the one of `to`, as the path shows in the way of [`Rule::Pair`].
    AntiDependency {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
        /// From the transaction read from to `to`.
        path: Path,
    },
    /// The reader that `to` begins selected by condition, and saw of `key` the change by `from`,
    /// or something later that adds the same to what it found.
    SawChange {
        /// The read by condition.
        read: OpId,
        /// The key.
        key: KeyId,
    },
    /// The reader that `from` begins selected by condition, and `to` was the next to change
    /// what `key` adds to what it found.
    MissedChange {
        /// The read by condition.
        read: OpId,
        /// The key.
        key: KeyId,
    },
}

impl<Path> Rule<Path> {
    /// The operation that it rests on beside its path, if there is one.
    pub const fn read(&self) -> Option<OpId> {
        match *self {
            Rule::ReadsFrom { read, .. }
            | Rule::ListOrder { read, .. }
            | Rule::InitialRead { read, .. }
            | Rule::Visible { read, .. }
            | Rule::AntiDependency { read, .. }
            | Rule::SawChange { read, .. }
            | Rule::MissedChange { read, .. } => Some(read),
            Rule::Session
            | Rule::RealTime
            | Rule::InitialFirst
            | Rule::GivenOrder { .. }
            | Rule::Pair { .. } => None,
        }
    }

    /// The key that it is about, if there is one.
    pub const fn key(&self) -> Option<KeyId> {
        match *self {
            Rule::Session | Rule::RealTime | Rule::InitialFirst => None,
            Rule::ReadsFrom { key, .. }
            | Rule::ListOrder { key, .. }
            | Rule::GivenOrder { key }
            | Rule::InitialRead { key, .. }
            | Rule::Pair { key, .. }
            | Rule::Visible { key, .. }
            | Rule::AntiDependency { key, .. }
            | Rule::SawChange { key, .. }
            | Rule::MissedChange { key, .. } => Some(key),
        }
    }

    /// The path that it follows from, if it needs one.
    pub const fn path(&self) -> Option<&Path> {
        match self {
            Rule::Pair { path, .. }
            | Rule::Visible { path, .. }
            | Rule::AntiDependency { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub const fn path_mut(&mut self) -> Option<&mut Path> {
        match self {
            Rule::Pair { path, .. }
            | Rule::Visible { path, .. }
            | Rule::AntiDependency { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The same rule about other operations and keys, with a path that is held in another way.
    pub fn map<Other>(
        &self,
        op: impl Fn(OpId) -> OpId,
        key: impl Fn(KeyId) -> KeyId,
        path: impl FnOnce(&Path) -> Other,
    ) -> Rule<Other> {
        match self {
            Rule::Session => Rule::Session,
            Rule::RealTime => Rule::RealTime,
            Rule::InitialFirst => Rule::InitialFirst,
            Rule::ReadsFrom { read, key: of } => Rule::ReadsFrom { read: op(*read), key: key(*of) },
            Rule::ListOrder { read, key: of } => Rule::ListOrder { read: op(*read), key: key(*of) },
            Rule::GivenOrder { key: of } => Rule::GivenOrder { key: key(*of) },
            Rule::InitialRead { read, key: of } => {
                Rule::InitialRead { read: op(*read), key: key(*of) }
            }
            Rule::Pair { key: of, path: by } => Rule::Pair { key: key(*of), path: path(by) },
            Rule::Visible { read, key: of, path: by } => {
                Rule::Visible { read: op(*read), key: key(*of), path: path(by) }
            }
            Rule::AntiDependency { read, key: of, path: by } => {
                Rule::AntiDependency { read: op(*read), key: key(*of), path: path(by) }
            }
            Rule::SawChange { read, key: of } => Rule::SawChange { read: op(*read), key: key(*of) },
            Rule::MissedChange { read, key: of } => {
                Rule::MissedChange { read: op(*read), key: key(*of) }
            }
        }
    }

    /// The same rule with a path that is held in another way.
    pub fn with_path<Other>(&self, path: impl FnOnce(&Path) -> Other) -> Rule<Other> {
        self.map(|op| op, |key| key, path)
    }

    /// The name in certificates.
    pub const fn name(&self) -> &'static str {
        match self {
            Rule::Session => "session",
            Rule::RealTime => "real-time",
            Rule::InitialFirst => "initial-first",
            Rule::ReadsFrom { .. } => "reads-from",
            Rule::ListOrder { .. } => "list-order",
            Rule::GivenOrder { .. } => "given-order",
            Rule::InitialRead { .. } => "initial-read",
            Rule::Pair { .. } => "pair",
            Rule::Visible { .. } => "visible",
            Rule::AntiDependency { .. } => "anti-dependency",
            Rule::SawChange { .. } => "saw-change",
            Rule::MissedChange { .. } => "missed-change",
        }
    }
}
