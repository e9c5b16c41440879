//! A violation as data: which transactions, which dependencies between them, and why each holds.
//!
//! A scenario is what an anomaly looks like to a program that wants to show it: the text in a
//! terminal, the graph on a page and the statements of a replay are made from it alone. It has
//! names and places instead of ids, so that it can be kept without its history.
//!
//! The proof has one of three forms. Operations that contradict each other by themselves are
//! marked as `involved`, and there are no `edges`. One cycle is a list of `edges`, each of which
//! starts where the one before ends. A proof by cases has `cases` instead: whatever is true, one
//! of the assumptions is, and each comes with a cycle of its own.
//!
//! An edge may follow from others, and these from others again. What is needed twice is told once
//! and has a number; what lies deep is told in `facts`.

mod build;
pub(crate) mod facts;
pub(crate) mod sentence;
mod summary;

pub(crate) use build::scenario;
pub use isolde::EdgeKind;

use serde::{Deserialize, Serialize};

/// One violation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scenario {
    /// What it is called.
    pub names: Names,
    /// What happened, in one sentence of everyday words.
    pub summary: String,
    /// All transactions that the edges name, those of the proof itself first.
    pub transactions: Vec<ScenarioTxn>,
    /// The cycle; empty if operations or cases show the violation.
    pub edges: Vec<ScenarioEdge>,
    /// Assumptions of which one must be true, each with its cycle.
    pub cases: Vec<ScenarioCase>,
    /// Orders that edges refer to and that are told nowhere else, by their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<ScenarioEdge>,
    /// Cases that are not listed.
    pub cases_left_out: usize,
    /// The contradiction, in one sentence.
    pub conclusion: String,
    /// What this means for an application.
    pub meaning: String,
    /// Where it was a known database: what its documentation says about this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documented: Option<String>,
    /// Levels that this scenario alone rules out, from weak to strong.
    pub also: Vec<String>,
}

/// What people call an anomaly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// Ours, in kebab case.
    pub name: String,
    /// The everyday name.
    pub everyday: String,
    /// Adya's, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adya: Option<String>,
    /// Elle's, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elle: Option<String>,
}

/// What a transaction has to do with a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It is on the cycle of the proof or of a case, or its operations are the proof.
    #[default]
    Cycle,
    /// It shows that an edge holds.
    Evidence,
    /// The state before all transactions.
    Initial,
}

/// One transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioTxn {
    /// Its name.
    pub name: String,
    /// What it has to do with it.
    pub role: Role,
    /// Its session; empty for the initial state.
    pub session: String,
    /// Its place in its session, from 1.
    pub place_in_session: usize,
    /// `committed`, `aborted` or `unknown`.
    pub outcome: String,
    /// Where its first operation stands in the source, as `file:line`.
    pub place: String,
    /// The server that its session talked to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// When it began, in nanoseconds: invoked and completed, as far as recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<Span>,
    /// When it committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Span>,
    /// Its operations in program order. Of long transactions those that are not involved
    /// may be left out.
    pub operations: Vec<ScenarioOp>,
    /// Operations that are not listed.
    pub operations_left_out: usize,
}

/// When something may have taken effect, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// When the client sent it, if recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invoked: Option<i64>,
    /// When the client had the answer, if recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<i64>,
}

/// One operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioOp {
    /// `read`, `write`, `append`, `read-list`, `insert`, `delete`, `read-other`,
    /// `predicate-read`, `predicate-update` or `call`.
    pub kind: String,
    /// Its key; reads by condition have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What was read or written, or the condition; long ones are cut.
    pub value: String,
    /// What a call did, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The rows that a read by condition returned or looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<ScenarioRow>,
    /// When it ran, if recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// What asked for it, without its literals, if recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
    /// Where it stands in the source, as `file:line`.
    pub place: String,
    /// Whether the proof rests on it.
    pub involved: bool,
}

/// A row that a read by condition was evaluated on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioRow {
    /// Its key.
    pub key: String,
    /// Its version.
    pub value: String,
    /// Whether it was returned.
    pub matched: bool,
}

/// An operation of a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OpRef {
    /// The place of its transaction among [`Scenario::transactions`].
    pub transaction: usize,
    /// Its place among [`ScenarioTxn::operations`].
    pub operation: usize,
}

/// One transaction must precede another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioEdge {
    /// The place of the earlier transaction among [`Scenario::transactions`].
    pub from: usize,
    /// The place of the later one.
    pub to: usize,
    /// What kind of dependency it is.
    #[serde(with = "edge_kind")]
    pub kind: EdgeKind,
    /// The key it is about, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether it comes from a read by condition.
    pub by_condition: bool,
    /// Whether it holds only under the assumption of its case.
    pub assumed: bool,
    /// Why it holds, in one sentence, given what `because` says.
    pub explanation: String,
    /// The operations it rests on.
    pub operations: Vec<OpRef>,
    /// The orders that it follows from, as a path; empty if operations alone show it, or if
    /// it refers to a fact, or if they are left out.
    pub because: Vec<ScenarioEdge>,
    /// The number of this order, if several edges need it or it is told apart. Of those with
    /// one number, one says in `because` what all follow from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<usize>,
    /// It follows from so many further steps, which only the certificate has; 0 if nobody
    /// counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
}

/// One case of a proof by cases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioCase {
    /// What is assumed, in one sentence.
    pub assumption: String,
    /// The cycle that follows.
    pub edges: Vec<ScenarioEdge>,
    /// The contradiction, in one sentence.
    pub conclusion: String,
}

impl Scenario {
    /// What asked for the operations that the proof rests on, each with its place.
    pub fn statements(&self) -> Vec<(&str, &str)> {
        let ops = self.transactions.iter().flat_map(|txn| &txn.operations);
        let mut found: Vec<(&str, &str)> = Vec::new();
        for op in ops.filter(|op| op.involved) {
            let statement = op.statement.as_deref().map(|it| (op.place.as_str(), it));
            found.extend(statement.filter(|it| !found.contains(it)));
        }
        found
    }

    /// All edges: those of the cycle, of all cases, all facts, and everything they follow from.
    pub fn all_edges(&self) -> Vec<&ScenarioEdge> {
        let cases = self.cases.iter().flat_map(|case| &case.edges);
        let mut all: Vec<&ScenarioEdge> =
            self.edges.iter().chain(cases).chain(&self.facts).collect();
        let mut next = 0;
        while next < all.len() {
            all.extend(&all[next].because);
            next += 1;
        }
        all
    }
}

/// Kinds of edges by their names.
mod edge_kind {
    use isolde::EdgeKind;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;
    use std::borrow::Cow;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it like this")]
    pub(super) fn serialize<S: Serializer>(kind: &EdgeKind, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(kind.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<EdgeKind, D::Error> {
        let name = Cow::<'de, str>::deserialize(from)?;
        let known = EdgeKind::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| D::Error::custom(format!("there is no kind of edge `{name}`")))
    }
}
