//! What a check answers.

use crate::anomaly::Anomaly;
use crate::level::Level;
use crate::unknown::{Limit, Unknown};
use isolde_certificate::{Derivation, Node};
use isolde_history::TxnId;
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
    /// It is open which transactions or appends there are, and in one of the ways to take that
    /// the level holds.
    Interpretation,
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

/// What a strategy answers.
pub(crate) enum Attempt {
    /// The level holds.
    Proved(Satisfied),
    /// It does not.
    Refuted(Violated),
    /// It is not a question for this strategy after all; the next one is asked.
    Passed,
    /// The same, and more time, memory or work might have given an answer.
    OutOfBudget(Limit),
    /// The same, and this is what is missing or in the way.
    Open(Unknown),
}

impl From<Verdict> for Attempt {
    fn from(verdict: Verdict) -> Attempt {
        match verdict {
            Verdict::Satisfied(satisfied) => Attempt::Proved(satisfied),
            Verdict::Violated(violated) => Attempt::Refuted(violated),
            Verdict::Unknown(Unknown::Limit(limit)) => Attempt::OutOfBudget(limit),
            Verdict::Unknown(reason) => Attempt::Open(reason),
        }
    }
}

impl From<Option<Verdict>> for Attempt {
    fn from(verdict: Option<Verdict>) -> Attempt {
        verdict.map_or(Attempt::Passed, Attempt::from)
    }
}
