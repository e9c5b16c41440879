//! What a check answers, and the evidence it gives.

use crate::anomaly::Anomaly;
use crate::level::Level;
use isolde_certificate::{Derivation, Node};
use isolde_history::{KeyId, OpId, TxnId, VersionStep};
use std::fmt;
use std::sync::Arc;

/// Stands for the initial transaction, which precedes all others, in an [`Edge`].
pub const INITIAL: TxnId = TxnId(u32::MAX);

/// The answer for one level.
///
/// A violation is a *result*, not an error: errors are for histories that could
/// not be read. `Unknown` is neither, and no caller may treat it as either.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The level holds.
    Satisfied(Satisfied),
    /// The level does not hold.
    Violated(Violated),
    /// Not decided, for this reason.
    Unknown(Unknown),
}

/// Why a level holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Satisfied {
    /// This commit order shows it.
    Order(Vec<TxnId>),
    /// This order of begins and commits shows it; of commits alone where the level
    /// does not tell them apart.
    Events(Vec<Node>),
    /// This stronger level holds.
    Implied(Level),
    /// All orders were tried, and one of them shows it.
    Definition,
}

/// Why a level does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violated {
    /// Anomalies that the level forbids; empty only if all orders were tried and none
    /// explains the history.
    pub anomalies: Vec<Anomaly>,
    /// The weaker level whose violation settled this one, if one did.
    pub settled_by: Option<Level>,
    /// The proof, where the search for an order made one.
    pub proof: Option<Arc<Derivation>>,
}

impl Violated {
    /// A violation that its anomalies show.
    pub fn by(anomalies: Vec<Anomaly>) -> Violated {
        Violated { anomalies, settled_by: None, proof: None }
    }
}

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
    /// A limit of time or memory was reached.
    Limit(String),
    /// This level is not decided for histories like this one.
    Unsupported(String),
}

/// Why lists are not decided if it is not known which append a reader saw.
pub(crate) const REPEATED_ELEMENT: &str = "an element of a list was appended more than once";

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
            Unknown::Limit(what) | Unknown::Unsupported(what) => out.write_str(what),
        }
    }
}

impl Verdict {
    /// `satisfied`, `violated` or `unknown`.
    pub const fn name(&self) -> &'static str {
        match self {
            Verdict::Satisfied(_) => "satisfied",
            Verdict::Violated(_) => "violated",
            Verdict::Unknown(_) => "unknown",
        }
    }
}

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
