//! Why transactions have no order: edges, each with its reason, and cycles of them.

use isolde_history::{KeyId, OpId, TxnId, VersionStep};

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
}

/// Why one transaction precedes another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The initial transaction precedes all others.
    InitialFirst,
    /// The same session ran one before the other.
    Session,
    /// `after` read a value of `before`.
    ReadsFrom {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
    },
    /// One completed before the other was invoked.
    RealTime,
    /// Versions of a key are known to have been installed in this order.
    Version(VersionStep),
    /// `before` read a version of `key` that `after` replaced.
    AntiDependency {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
        /// Why the version of `after` is later than the one read: steps from the
        /// writer of the one to the other. Empty if `after` read it too, or if the
        /// initial version was read.
        because: Vec<Edge>,
        /// A key that both write, where only such transactions must see each other and no other
        /// step shows that they do.
        conflict: Option<KeyId>,
    },
    /// `before` read the initial version of `key` and writes it: so it installs the first.
    FirstVersion {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
    },
    /// Both write `key`, and `before` began before `after` committed: as writers of a
    /// key do not overlap, `before` committed before `after` began.
    WritersApart {
        /// The key both write.
        key: KeyId,
        /// Why one began before the other committed: steps from one to the other.
        because: Vec<Edge>,
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
    /// A reader read `key` from `after` although `before`, which also writes the
    /// key, was visible to it: so `before` was overwritten.
    Overwritten {
        /// The reading transaction.
        reader: TxnId,
        /// The read of `key` from `after`.
        read: OpId,
        /// The key both write.
        key: KeyId,
        /// Why `before` was visible to the reader: steps from one to the other.
        visible: Vec<Edge>,
        /// A key that `before` and the reader both write, as of an anti-dependency.
        conflict: Option<KeyId>,
    },
    /// In place of what an edge follows from: the same was told of the same edge before.
    AsTold,
    /// In place of what an edge follows from: that is not told here.
    Untold {
        /// Steps of the proof that this leaves out, if they were counted.
        steps: Option<usize>,
    },
}

/// Transactions each of which precedes the next, and the last the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Each edge starts where the one before ends; the last ends where the first starts.
    pub edges: Vec<Edge>,
}

impl Cycle {
    /// The transactions on the cycle, without the initial one.
    pub fn txns(&self) -> Vec<TxnId> {
        self.edges.iter().map(|edge| edge.before).filter(|&txn| txn != INITIAL).collect()
    }
}
