//! The solver, asked about what an order gets wrong.
//!
//! **Definition.** Some order of the versions of each open key leaves the graph without a cycle.
//!
//! **Method.** The proposal is replayed; each pair of versions that it gets wrong becomes a choice
//! of the solver (`acyclic`), which puts the order right and is asked again, until an order
//! explains every read or the clauses contradict each other. Exponential in the worst case: after
//! many conflicts the question is left to saturation.

use super::super::decision::{Decision, many_conflicts};
use super::super::solving::Searched;
use super::{GivenUp, Strategy};
use crate::strategy::StrategyName;
use crate::unknown::{Limit, Obstacle, Unknown};
use crate::verdict::Attempt;

pub(super) const SEARCH: Strategy = Strategy {
    name: StrategyName::Search,
    applies: |decision| decision.may_be_proposed(),
    attempt: search,
};

fn search(decision: &mut Decision<'_>) -> Result<Attempt, GivenUp> {
    let Some((graph, order)) = decision.proposed() else {
        return Ok(Attempt::Open(Unknown::Unsupported(Obstacle::SwitchedOff)));
    };
    let is_last = decision.is_off(StrategyName::Saturation);
    let conflicts_max = (!is_last).then(|| many_conflicts(&graph));
    match decision.search(&graph, &order, conflicts_max) {
        Searched::Stopped(acyclic::Stop::Conflicts) => {
            decision.proposal = Some((graph, order));
            decision.is_hard = true;
            Ok(Attempt::OutOfBudget(Limit::Conflicts))
        }
        searched => decision.attempted(graph, searched),
    }
}
