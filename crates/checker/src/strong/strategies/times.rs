//! An order of begins and commits along the times of the clients.
//!
//! **Definition.** An order that agrees with the known edges and with real time, and in which
//! every reader begins before the version it saw is replaced, shows the level.
//!
//! **Method.** `orders/times.rs`: events are taken by their times, and what a read contradicts is put
//! right a few times over. It takes neither a solver nor a graph of points in time: linear but
//! for a sort, where clocks are right. Nothing is refuted here.

use super::super::decision::Decision;
use super::super::model::Node;
use super::super::orders::times::OrderOfTimes;
use super::Strategy;
use crate::limits::Stage;
use crate::strategy::StrategyName;
use crate::verdict::Attempt;

pub(super) const TIMES: Strategy = Strategy {
    name: StrategyName::Times,
    applies: |decision| {
        let history = decision.history();
        decision.is_first_round()
            && decision.repeated.is_empty()
            && decision.options.sources.real_time
            && history.has_times()
            && history.orders().total.is_none()
    },
    attempt: |decision| {
        let Some(order) = order(decision) else { return Ok(Attempt::Passed) };
        let attempt = decision.satisfied(&order);
        // Another order may fit what was read by predicate.
        let is_open = matches!(attempt, Attempt::Open(_)) && decision.has_choices();
        Ok(if is_open { Attempt::Passed } else { attempt })
    },
};

fn order(decision: &Decision<'_>) -> Option<Vec<Node>> {
    let mut known = decision.known_without_times();
    if decision.versions.open_keys().next().is_some() {
        // What is open makes every order be looked at anyway.
        known = known.without_initial_reads();
    }
    let graph = decision.graph(&known);
    (decision.limits.observe)(Stage::Witness);
    if decision.halt(graph.memory()).is_some() {
        return None;
    }
    OrderOfTimes::new(&graph, decision.versions, decision.options.clock_drift).order()
}
