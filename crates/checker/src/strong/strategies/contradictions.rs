//! Two reads of versions that no order explains together.
//!
//! **Definition.** Two writers that both replaced the version they had read: at a level that keeps
//! writers of a key apart, each must have missed the other, a lost update. A result of a read by
//! predicate that no versions give.
//!
//! **Method.** Both were found with the versions; nothing is searched. All that follows takes it
//! for granted that there are none.

use super::super::conditions::Mismatch;
use super::super::cycle::Premises;
use super::super::decision::{Decision, violated};
use super::super::proof::ProofBuilder;
use super::super::versions::Divergence;
use super::Strategy;
use crate::anomaly::{Anomaly, AnomalyKind, of_operations};
use crate::naming;
use crate::strategy::StrategyName;
use crate::verdict::{Attempt, Violated};
use isolde_history::History;

pub(super) const CONTRADICTIONS: Strategy = Strategy {
    name: StrategyName::Contradictions,
    applies: |decision| {
        let versions = decision.versions;
        !versions.divergences.is_empty() || !versions.conditions.mismatches.is_empty()
    },
    attempt: |decision| Ok(refute(decision)),
};

fn refute(decision: &Decision<'_>) -> Attempt {
    let versions = decision.versions;
    if let Some(&divergence) = versions.divergences.first() {
        return Attempt::Refuted(diverged(decision, divergence));
    }
    let mismatch = versions.conditions.mismatches.first();
    mismatch.map_or(Attempt::Passed, |mismatch| {
        Attempt::Refuted(violated(mismatched(decision.history(), *mismatch), None))
    })
}

fn diverged(decision: &Decision<'_>, divergence: Divergence) -> Violated {
    let graph = &decision.explained_graph();
    let (model, versions) = (decision.model, decision.versions);
    let Divergence { first, second } = divergence;
    let cycle = divergence.cycle(versions);
    let premises = Premises { graph, clocks: None };
    let proof = ProofBuilder::new(model, versions, premises).of_divergence(first, second);
    violated(naming::of_event_cycle(versions.history, model.level, cycle), Some(proof))
}

/// The anomaly of a result that no version set gives.
fn mismatched(history: &History, mismatch: Mismatch) -> Anomaly {
    let ops = [mismatch.op].into_iter().chain(mismatch.write).collect();
    of_operations(history, AnomalyKind::ResultSetMismatch, mismatch.key, ops)
}
