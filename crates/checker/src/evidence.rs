//! Why transactions have no order: edges, each with its reason, and cycles of them.
//!
//! There is one language for this, that of derivations ([`Rule`]): the engine proves in it,
//! certificates are written in it, and an edge is a step of it between transactions instead of
//! begins and commits, which holds what it follows from instead of naming it. What an
//! explanation says beside the rules is how far it goes: what is taken for the sake of
//! argument, and what it leaves out.

use isolde_certificate::Rule;
use isolde_history::{KeyId, OpId, TxnId, VersionEvidence, VersionStep};

/// Stands for the initial transaction, which precedes all others, in an [`Edge`].
pub const INITIAL: TxnId = TxnId(u32::MAX);

/// One step of a cycle: `before` precedes `after` in every commit order that
/// explains the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The earlier transaction, or [`INITIAL`].
    pub before: TxnId,
    /// The later transaction, or [`INITIAL`].
    pub after: TxnId,
    /// Why.
    pub reason: Reason,
    /// A key that who missed a version and who wrote that both write, where only such
    /// transactions must see each other and no other step shows that they do.
    pub conflict: Option<KeyId>,
}

/// Why one transaction precedes another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A rule says so. Its path are the edges that it follows from; it is empty where
    /// operations alone show it, such as that the later writer had read the version it replaced.
    Rule(Rule<Vec<Edge>>),
    /// `before` read the initial version of `key` and writes it: so it installs the first.
    /// A [`Rule::Pair`] that a read of the initial version shows by itself.
    FirstVersion {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
    },
    /// Taken for the sake of argument: the version of `key` by `first` comes before the
    /// one by `second`. `before` wrote the first, or read it.
    Assumed {
        /// The key.
        key: KeyId,
        /// The writer of the first.
        first: TxnId,
        /// The writer of the second, which is `after`.
        second: TxnId,
    },
    /// Taken for the sake of argument: `first`, which is `before`, comes before `second`.
    Supposed {
        /// The earlier transaction.
        first: TxnId,
        /// The later transaction.
        second: TxnId,
    },
    /// In place of what an edge follows from: the same was told of the same edge before.
    AsTold,
    /// In place of what an edge follows from: that is not told here.
    Untold {
        /// Steps of the proof that this leaves out, if they were counted.
        steps: Option<usize>,
    },
}

/// What kind of dependency an edge is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EdgeKind {
    /// The later transaction read what the earlier one wrote.
    #[default]
    Wr,
    /// The later transaction's version of the key follows that of the earlier one.
    Ww,
    /// The earlier transaction read a version that the later one replaced.
    Rw,
    /// One session ran one after the other.
    Session,
    /// One had completed when the other was invoked.
    RealTime,
    /// The initial state precedes everything.
    Initial,
    /// Taken for the sake of argument: one comes before the other.
    Assumed,
}

/// Transactions each of which precedes the next, and the last the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Each edge starts where the one before ends; the last ends where the first starts.
    pub edges: Vec<Edge>,
}

impl Reason {
    /// The rule, if it is one.
    pub const fn rule(&self) -> Option<&Rule<Vec<Edge>>> {
        match self {
            Reason::Rule(rule) => Some(rule),
            _ => None,
        }
    }
}

impl Edge {
    /// An edge for this reason.
    pub const fn new(before: TxnId, after: TxnId, reason: Reason) -> Edge {
        Edge { before, after, reason, conflict: None }
    }

    /// An edge by this rule.
    pub const fn by(rule: Rule<Vec<Edge>>, before: TxnId, after: TxnId) -> Edge {
        Edge::new(before, after, Reason::Rule(rule))
    }

    /// A step along a session.
    pub const fn session(before: TxnId, after: TxnId) -> Edge {
        Edge::by(Rule::Session, before, after)
    }

    /// One transaction read what another wrote.
    pub const fn reads_from(writer: TxnId, reader: TxnId, read: OpId, key: KeyId) -> Edge {
        Edge::by(Rule::ReadsFrom { read, key }, writer, reader)
    }

    /// An order of versions that a list shows or the database told.
    pub const fn version(step: &VersionStep) -> Edge {
        let key = step.key;
        let rule = match step.evidence {
            VersionEvidence::ListRead(read) | VersionEvidence::NotInList(read) => {
                Rule::ListOrder { read, key }
            }
            VersionEvidence::Given => Rule::GivenOrder { key },
        };
        Edge::by(rule, step.before, step.after)
    }

    /// What kind of dependency it is.
    pub fn kind(&self) -> EdgeKind {
        match &self.reason {
            Reason::Rule(rule) => match rule {
                Rule::Session => EdgeKind::Session,
                Rule::RealTime => EdgeKind::RealTime,
                Rule::InitialFirst => EdgeKind::Initial,
                Rule::ReadsFrom { .. } | Rule::SawChange { .. } => EdgeKind::Wr,
                Rule::ListOrder { .. }
                | Rule::GivenOrder { .. }
                | Rule::Pair { .. }
                | Rule::Visible { .. } => EdgeKind::Ww,
                Rule::InitialRead { .. }
                | Rule::AntiDependency { .. }
                | Rule::MissedChange { .. } => EdgeKind::Rw,
            },
            Reason::FirstVersion { .. } => EdgeKind::Ww,
            Reason::Assumed { first, .. } if self.before == *first => EdgeKind::Ww,
            Reason::Assumed { .. } => EdgeKind::Rw,
            Reason::Supposed { .. } | Reason::AsTold | Reason::Untold { .. } => EdgeKind::Assumed,
        }
    }

    /// The read that it rests on, if there is one.
    pub const fn read(&self) -> Option<OpId> {
        match &self.reason {
            Reason::Rule(rule) => rule.read(),
            Reason::FirstVersion { read, .. } => Some(*read),
            _ => None,
        }
    }

    /// The key that it is about, if there is one.
    pub const fn key(&self) -> Option<KeyId> {
        match &self.reason {
            Reason::Rule(rule) => rule.key(),
            Reason::FirstVersion { key, .. } | Reason::Assumed { key, .. } => Some(*key),
            _ => None,
        }
    }

    /// The orders that it follows from.
    pub fn premises(&self) -> &[Edge] {
        self.reason.rule().and_then(Rule::path).map_or(&[], Vec::as_slice)
    }

    /// The same, to be changed.
    pub fn premises_mut(&mut self) -> &mut [Edge] {
        match &mut self.reason {
            Reason::Rule(rule) => rule.path_mut().map_or(&mut [], Vec::as_mut_slice),
            _ => &mut [],
        }
    }

    /// Whether it is a [version](Edge::version) order.
    pub const fn is_version(&self) -> bool {
        matches!(self.reason, Reason::Rule(Rule::ListOrder { .. } | Rule::GivenOrder { .. }))
    }

    /// Whether `before` was overwritten, as a reader that had to see it read another version.
    pub const fn is_overwriting(&self) -> bool {
        matches!(self.reason, Reason::Rule(Rule::Visible { .. }))
    }

    /// The path that an order of two writers follows from, as writers of a key do not overlap.
    pub fn pair(&self) -> Option<(KeyId, &[Edge])> {
        match &self.reason {
            Reason::Rule(Rule::Pair { key, path }) => Some((*key, path)),
            _ => None,
        }
    }
}

impl EdgeKind {
    /// All of them.
    pub const ALL: [EdgeKind; 7] = [
        EdgeKind::Wr,
        EdgeKind::Ww,
        EdgeKind::Rw,
        EdgeKind::Session,
        EdgeKind::RealTime,
        EdgeKind::Initial,
        EdgeKind::Assumed,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            EdgeKind::Wr => "wr",
            EdgeKind::Ww => "ww",
            EdgeKind::Rw => "rw",
            EdgeKind::Session => "session",
            EdgeKind::RealTime => "real-time",
            EdgeKind::Initial => "initial",
            EdgeKind::Assumed => "assumed",
        }
    }
}

impl Cycle {
    /// The transactions on the cycle, without the initial one.
    pub fn txns(&self) -> Vec<TxnId> {
        self.edges.iter().map(|edge| edge.before).filter(|&txn| txn != INITIAL).collect()
    }
}

/// These edges, and all that they follow from.
pub(crate) fn with_premises<'a>(edges: impl IntoIterator<Item = &'a Edge>) -> Vec<&'a Edge> {
    let mut all: Vec<&Edge> = edges.into_iter().collect();
    let mut next = 0;
    while let Some(&edge) = all.get(next) {
        all.extend(edge.premises());
        next += 1;
    }
    all
}
