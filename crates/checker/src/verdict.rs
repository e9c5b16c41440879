//! What a check answers.

use crate::anomaly::Anomaly;
use crate::level::Level;
use isolde_certificate::{Derivation, Node};
use isolde_history::TxnId;
use std::fmt;
use std::sync::Arc;

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
