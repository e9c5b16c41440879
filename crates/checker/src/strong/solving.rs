//! The solver's part of a decision: one search for all, or one for each group of parts.

use super::Engine;
use super::components::Components;
use super::decision::Decision;
use super::graph::Graph;
use super::model::Node;
use super::saturate::positions;
use super::search::{Asked, Search, Within, known_edges};
use super::witness::suspects;
use crate::limits::{Limits, Stage, Work};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

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
        self.search_within((graph, order), (self.limits, conflicts_max), None)
    }

    /// Searches all that is open, or what is `within` one group of parts.
    fn search_within(
        &self,
        (graph, order): (&Graph, &[Node]),
        (limits, conflicts_max): (&Limits<'_>, Option<u64>),
        within: Option<Within<'_>>,
    ) -> Searched {
        (limits.observe)(Stage::Solve);
        let mut solver = acyclic::Solver::new(order, known_edges(graph))
            .expect("an order that every edge agrees with");
        let mut search = Search::new(self.model, self.versions, self.repeated, within);
        search.begin(&mut solver);
        let used = graph.memory() + self.versions.memory();
        let engine = (limits, self.options.engine);
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

    /// Searches groups of parts that have nothing to do with each other, at the same time.
    /// What is found is that of the first group that refutes the level, however many
    /// threads there are.
    pub(super) fn search_parts(
        &self,
        graph: &Graph,
        order: &[Node],
        components: &Components,
    ) -> Searched {
        (self.limits.observe)(Stage::Components(components.apart()));
        let used = graph.memory() + self.versions.memory();
        let first_refuted = AtomicUsize::new(usize::MAX);
        let (choices, conflicts) = (AtomicU64::new(0), AtomicU64::new(0));
        // One solver to whoever looks on.
        let observe = |stage| match stage {
            Stage::Solved { choices: of_group, conflicts: met } => {
                choices.fetch_add(of_group, Relaxed);
                conflicts.fetch_add(met, Relaxed);
            }
            other => (self.limits.observe)(other),
        };
        let found: Vec<(Searched, u64)> = (0..components.groups)
            .into_par_iter()
            .map(|group| {
                let work = Work::part(self.limits, 1);
                let stop = || (self.limits.stop)() || first_refuted.load(Relaxed) < group;
                let working_bytes_max = self.limits.working_bytes_max.map(|most| {
                    // The graph is there once, solvers are as many as groups.
                    used + most.saturating_sub(used) / components.groups
                });
                let limits = Limits {
                    stop: &stop,
                    working_bytes_max,
                    work: Some(&work),
                    observe: &observe,
                    ..*self.limits
                };
                let found = self.search_within(
                    (graph, order),
                    (&limits, self.conflicts_max),
                    Some(Within { components, group }),
                );
                if matches!(found, Searched::Violated(_) | Searched::ViolatedUnproven) {
                    first_refuted.fetch_min(group, Relaxed);
                }
                (found, work.done())
            })
            .collect();
        let (choices, conflicts) = (choices.into_inner(), conflicts.into_inner());
        (self.limits.observe)(Stage::Solved { choices, conflicts });
        let mut orders = Vec::with_capacity(found.len());
        let mut stopped = None;
        for (found, work) in found {
            // What threads took behind a group that settles it is their own affair.
            self.limits.spend(work);
            match found {
                Searched::Satisfied(order) => orders.push(positions(&order)),
                Searched::Violated(refuted) => return Searched::Violated(refuted),
                Searched::ViolatedUnproven => return Searched::ViolatedUnproven,
                Searched::Stopped(stop) => stopped = stopped.or(Some(stop)),
            }
        }
        if let Some(stop) = stopped {
            return Searched::Stopped(stop);
        }
        let joined = components.joined(&orders);
        if self.explains(&joined) {
            return Searched::Satisfied(joined);
        }
        // Parts that do concern each other would be a mistake of ours, not of the database.
        debug_assert!(false, "orders of parts that do not fit together");
        self.search(graph, order, None)
    }

    /// Whether an order of events that every known edge agrees with explains all reads.
    fn explains(&self, order: &[Node]) -> bool {
        suspects(self.model, self.versions, order, &positions(order)).is_empty()
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
