//! The solver's part of a decision.

use super::Engine;
use super::decision::Decision;
use super::graph::Graph;
use super::model::Node;
use super::search::{Asked, Search, known_edges};
use crate::limits::{Limits, Stage};

/// What came of a search.
pub(super) enum Searched {
    Satisfied(Vec<Node>),
    Violated(Refuted),
    /// By an engine that does not say why.
    ViolatedUnproven,
    Stopped(acyclic::Stop),
}

/// Why no order fits, and what the solver was asked.
pub(super) struct Refuted {
    pub(super) refutation: acyclic::Refutation,
    pub(super) asked: Asked,
    /// How far the order was put right by then.
    pub(super) order: Vec<Node>,
}

impl Decision<'_> {
    pub(super) fn search(
        &self,
        graph: &Graph,
        order: &[Node],
        conflicts_max: Option<u64>,
    ) -> Searched {
        (self.limits.observe)(Stage::Solve);
        let mut solver = acyclic::Solver::new(order, known_edges(graph))
            .expect("an order that every edge agrees with");
        let mut search = Search::new(self.model, self.versions, self.repeated);
        search.begin(&mut solver);
        let used = graph.memory() + self.versions.memory();
        let engine = (self.limits, self.options.engine);
        let effort = self.effort(graph, conflicts_max);
        match solved(&mut solver, &mut search, engine, (used, effort)) {
            Solved::Satisfied => Searched::Satisfied(in_order(solver.positions())),
            Solved::Violated(Some(refutation)) => {
                let order = in_order(solver.positions());
                Searched::Violated(Refuted { refutation, asked: search.asked, order })
            }
            Solved::Violated(None) => Searched::ViolatedUnproven,
            Solved::Stopped(stop) => Searched::Stopped(stop),
        }
    }
}

/// What a solver answered.
pub(super) enum Solved {
    Satisfied,
    /// With a proof, if the engine has one.
    Violated(Option<acyclic::Refutation>),
    Stopped(acyclic::Stop),
}

/// How much a search may take before it is given up.
pub(super) struct Effort {
    pub(super) conflicts_max: Option<u64>,
    pub(super) work_max: Option<u64>,
}

impl Effort {
    /// So many conflicts, and the work that they usually take: in a large history of which
    /// little is known, a few of them can take minutes.
    pub(super) fn of(conflicts_max: Option<u64>) -> Effort {
        const WORK_PER_CONFLICT: u64 = 1 << 10;
        let work_max = conflicts_max.map(|most| most.saturating_mul(WORK_PER_CONFLICT));
        Effort { conflicts_max, work_max }
    }
}

/// Runs the solver within the limits, of which `used` bytes are gone, and tells what it
/// took.
pub(super) fn solved<R: acyclic::Refine>(
    solver: &mut acyclic::Solver,
    refine: &mut R,
    (limits, engine): (&Limits<'_>, Engine),
    (used, effort): (usize, Effort),
) -> Solved {
    let work_max = effort.work_max.into_iter().chain(limits.work_left()).min();
    let within = acyclic::Limits {
        stop: limits.stop,
        memory_bytes_max: limits.working_bytes_max.map(|most| most.saturating_sub(used)),
        conflicts_max: effort.conflicts_max,
        work_max,
    };
    let before = solver.work();
    let answer = match engine {
        Engine::Own => match solver.solve(refine, &within) {
            acyclic::Answer::Satisfied => Solved::Satisfied,
            acyclic::Answer::Violated(refutation) => Solved::Violated(Some(refutation)),
            acyclic::Answer::Stopped(stop) => Solved::Stopped(stop),
        },
        #[cfg(feature = "cadical")]
        Engine::Cadical => match solver.solve_by_cadical(refine, &within) {
            acyclic::Unproven::Satisfied => Solved::Satisfied,
            acyclic::Unproven::Violated => Solved::Violated(None),
            acyclic::Unproven::Stopped(stop) => Solved::Stopped(stop),
        },
    };
    limits.spend(solver.work() - before);
    let acyclic::Statistics { choices, conflicts, .. } = solver.statistics();
    (limits.observe)(Stage::Solved { choices, conflicts });
    answer
}

/// Nodes by their positions.
pub(super) fn in_order(positions: &[u32]) -> Vec<Node> {
    let mut order = vec![0; positions.len()];
    for (node, &position) in positions.iter().enumerate() {
        order[position as usize] = node as Node;
    }
    order
}
