//! All that follows from the known edges, then the solver.
//!
//! **Definition.** If one order of two versions makes a cycle with what is known, the other order
//! holds.
//!
//! **Method.** `saturate.rs` derives such edges to a fixpoint, with clocks that tell who reaches
//! whom. A cycle refutes the level. Else the solver is asked again about what is left. Costs
//! events times sessions for each round, so it comes only where the search was hard.

use super::super::decision::Decision;
use super::super::saturate::Saturated;
use super::{GivenUp, Strategy};
use crate::limits::Stage;
use crate::strategy::StrategyName;
use crate::unknown::{Obstacle, Unknown};
use crate::verdict::Attempt;

pub(super) const SATURATION: Strategy = Strategy {
    name: StrategyName::Saturation,
    applies: |decision| {
        decision.is_hard || (decision.is_off(StrategyName::Search) && decision.may_be_proposed())
    },
    attempt: saturate,
};

fn saturate(decision: &mut Decision<'_>) -> Result<Attempt, GivenUp> {
    let Some((mut graph, order)) = decision.proposed() else {
        return Ok(Attempt::Open(Unknown::Unsupported(Obstacle::SwitchedOff)));
    };
    (decision.limits.observe)(Stage::Saturate);
    decision.note_evidence(&mut graph);
    let order = match decision.saturate(&mut graph, &order) {
        (Saturated::Fixpoint(order), _) => order,
        (Saturated::Cyclic(stuck), clocks) => {
            return decision.cyclic(graph, &stuck, Some(&clocks));
        }
        (Saturated::Stopped, _) => return Ok(Attempt::OutOfBudget(decision.limits.reached())),
    };
    let searched = decision.search(&graph, &order, decision.conflicts_max);
    decision.attempted(graph, searched)
}
