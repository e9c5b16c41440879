//! The known edges alone.
//!
//! **Definition.** The sources of order give edges that hold in every order. A cycle of them
//! refutes the level; if they settle the versions of every key, each order that agrees with them
//! shows it.
//!
//! **Method.** The graph is made and sorted; linear. If keys are open, the order is a proposal
//! (`orders/witness.rs`) that the next strategies put right.

use super::super::decision::Decision;
use super::{GivenUp, Strategy};
use crate::strategy::StrategyName;
use crate::verdict::Attempt;

pub(super) const KNOWN_ORDER: Strategy =
    Strategy { name: StrategyName::KnownOrder, applies: |_| true, attempt: sort };

fn sort(decision: &mut Decision<'_>) -> Result<Attempt, GivenUp> {
    let (graph, order) = decision.propose();
    let order = match order {
        Ok(order) => order,
        Err(stuck) => return decision.cyclic(graph, &stuck, None),
    };
    if !decision.is_open() {
        return Ok(decision.satisfied(&order));
    }
    if let Some(limit) = decision.halt(graph.memory()) {
        return Ok(Attempt::OutOfBudget(limit));
    }
    decision.proposal = Some((graph, order));
    Ok(Attempt::Passed)
}
