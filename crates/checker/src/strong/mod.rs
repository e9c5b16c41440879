//! The strong levels: one order of begins and commits that explains every read.
//!
//! One pipeline for all of them. `versions` joins reads to versions and finds the
//! orders of versions that are known; `sources` turn what is known into edges of one
//! `graph` of events; a topological order of it is the guess. A history whose version
//! orders are all known ends here. What the guess gets wrong is decided by the solver
//! (`search`), which looks only at pairs of versions that an order gets wrong. If that
//! is hard, `saturate` derives what follows from the known edges and the solver starts
//! again. `cycle`, `explain` and `proof` say why a level does not hold.
//!
//! A level without session order is tried with it first: sessions are the best guess,
//! and the graph is much harder without them. Only the edges of session order that a
//! refutation rests on are given up.

mod clocks;
mod commits;
mod constraints;
mod cover;
mod cycle;
mod explain;
mod graph;
mod likely;
mod model;
mod options;
mod parallel;
mod proof;
mod questions;
mod repeated;
mod runs;
mod saturate;
mod search;
mod sources;
mod update_atomic;
mod versions;
mod witness;

pub use constraints::{Constraints, Pruned, constraints};
pub use options::{Engine, Options, Saturate};
pub use sources::Sources;

use crate::anomaly::{self, Anomaly};
use crate::check::{Limits, Stage};
use crate::level::Level;
use crate::verdict::{Cycle, Edge, Reason, Satisfied, Unknown, Verdict, Violated};
use clocks::Clocks;
use cover::Cover;
use cycle::{Premises, core, short_cycle};
use explain::Explainer;
use graph::{Edges, Graph, Why};
use hashbrown::HashSet;
use isolde_certificate::{ChosenOrigin, Derivation};
use isolde_history::{History, Index, TxnId};
use model::{Events, Model, Node};
use parallel::Parallel;
use proof::{ProofBuilder, certificate_node};
use repeated::{Repeated, repeated_reads};
use runs::Runs;
use saturate::{Saturated, Saturation};
use search::{Search, known_edges};
use sources::{Initial, ReadsFrom, RealTimeOrder, SessionOrder, VersionOrder};
use std::sync::Arc;
use update_atomic::UpdateAtomic;
use versions::Versions;
use witness::guess;

/// Levels that are decided here.
pub(crate) fn levels() -> impl Iterator<Item = Level> {
    model::MODELS.iter().map(|model| model.level).chain(COMMIT_LEVELS)
}

/// Levels decided here whose witness is an order of commits.
pub(crate) const COMMIT_LEVELS: [Level; 2] =
    [Level::UpdateAtomic, Level::ParallelSnapshotIsolation];

/// Whether a level can only be decided with times.
pub(crate) fn needs_times(level: Level) -> bool {
    Model::of(level).is_some_and(|model| !model.real_time.is_empty())
}

/// Decides one of [`COMMIT_LEVELS`], with what reads of repeated values are taken to
/// have seen if it holds.
pub(crate) fn decide_with_origins(
    level: Level,
    facts: (&History, &Index),
    options: Options,
    limits: &Limits<'_>,
) -> (Verdict, Vec<ChosenOrigin>) {
    match level {
        Level::UpdateAtomic => commits::decide::<UpdateAtomic>(facts, options, limits),
        _ => commits::decide::<Parallel>(facts, options, limits),
    }
}

/// Decides a level, given that no read is wrong by itself at it.
pub(crate) fn decide(
    level: Level,
    (history, index): (&History, &Index),
    options: Options,
    limits: &Limits<'_>,
) -> Verdict {
    if COMMIT_LEVELS.contains(&level) {
        return decide_with_origins(level, (history, index), options, limits).0;
    }
    let model = Model::of(level).expect("a level of this family");
    if !model.real_time.is_empty() && !history.has_times() {
        return Verdict::Unknown(Unknown::Unsupported("the history has no times".into()));
    }
    (limits.observe)(Stage::Infer);
    let versions = Versions::new(history, index, model, options.sources);
    let (pairs, open_keys) = open_pairs(&versions);
    (limits.observe)(Stage::Versions { pairs, open_keys });
    let repeated = match repeated_reads(model, &versions) {
        Ok(repeated) => repeated,
        Err(reason) => return Verdict::Unknown(Unknown::Unsupported(reason)),
    };
    let mut decision = Decision {
        model,
        versions: &versions,
        repeated: &repeated,
        options,
        limits,
        given_up: HashSet::new(),
        attempts: 0,
    };
    decision.run()
}

/// Refutations that cost only the edges of session order they rest on; then all edges
/// on or between cycles go at once.
const GIVING_UP_ONE_BY_ONE: usize = 4;
/// Refutations before session order is given up altogether.
const GIVING_UP_MAX: usize = 24;
/// Conflicts of the solver before saturation is tried: so many, and one in so many nodes.
const CONFLICTS_FIRST: u64 = 2_000;
const NODES_PER_CONFLICT: u64 = 20;
/// Histories with fewer transactions are searched before they are saturated.
const SMALL: usize = 1_000;
/// Clocks may take this much memory where no limit was set.
const CLOCK_BYTES_MAX: usize = 4 << 30;
/// Clocks may take this much only to make an explanation shorter.
const EXPLAINING_BYTES_MAX: usize = 512 << 20;

struct Decision<'a> {
    model: &'static Model,
    versions: &'a Versions<'a>,
    repeated: &'a [Repeated],
    options: Options,
    limits: &'a Limits<'a>,
    /// Edges of session order, by their later end, that the guess does without.
    given_up: HashSet<Node>,
    attempts: usize,
}

/// What one attempt came to.
enum Attempt {
    Verdict(Verdict),
    /// It rests on session order, which the level does not have.
    GaveUp,
}

impl Decision<'_> {
    fn run(&mut self) -> Verdict {
        if let Some(&divergence) = self.versions.divergences.first() {
            let empty = self.graph();
            return self.diverged(divergence, &empty);
        }
        loop {
            self.attempts += 1;
            if self.attempts > GIVING_UP_MAX {
                self.give_up_all();
            }
            if (self.limits.stop)() {
                return limit(acyclic::Stop::Asked);
            }
            if let Attempt::Verdict(verdict) = self.attempt() {
                return verdict;
            }
        }
    }

    fn history(&self) -> &History {
        self.versions.history
    }

    /// The graph of all known edges.
    fn graph(&self) -> Graph {
        let (model, versions) = (self.model, self.versions);
        let (history, index) = (versions.history, versions.index);
        let txns = history.txn_count();
        let mut nodes = model.events_of(txns);
        let initial = Initial::new(model, versions, nodes as Node);
        nodes += initial.node_count();
        let mut times: Vec<RealTimeOrder> = Vec::new();
        for rule in model.real_time {
            let drift = self.options.clock_drift;
            let order = RealTimeOrder::new(model, rule, (history, index), drift, nodes as Node);
            nodes += order.node_count();
            times.push(order);
        }
        let reads = ReadsFrom { model, history, index };
        let session = SessionOrder { model, history, index, given_up: &self.given_up };
        let version_order = VersionOrder { model, versions };
        let mut sources: Vec<&dyn Edges> = vec![&session, &reads, &version_order, &initial];
        sources.extend(times.iter().map(|order| order as &dyn Edges));
        Graph::new(model, txns, nodes, &sources)
    }

    fn attempt(&mut self) -> Attempt {
        let graph = self.graph();
        (self.limits.observe)(Stage::Witness);
        let open = self.versions.open_keys().next().is_some() || !self.repeated.is_empty();
        let sorted = if open { guess(&graph, self.history()) } else { graph.sorted() };
        let order = match sorted {
            Ok(order) => order,
            Err(stuck) => return self.cyclic(&graph, &stuck, None),
        };
        if !open {
            return Attempt::Verdict(self.satisfied(&order));
        }
        if let Some(halt) = self.halt(graph.memory()) {
            return Attempt::Verdict(halt);
        }
        self.solve(graph, &order)
    }

    fn solve(&mut self, mut graph: Graph, order: &[Node]) -> Attempt {
        let many = CONFLICTS_FIRST + graph.node_count() as u64 / NODES_PER_CONFLICT;
        // Where sessions say little, the guess is poor and the search long.
        let sessions_help = self.given_up.len() * 8 < self.history().txn_count();
        let easy = sessions_help || self.history().txn_count() < SMALL;
        let saturate = self.options.saturate;
        if saturate == Saturate::Never || saturate == Saturate::WhenHard && easy {
            let conflicts_max = (saturate == Saturate::WhenHard).then_some(many);
            let searched = self.search(&graph, order, conflicts_max);
            if !matches!(searched, Searched::Stopped(acyclic::Stop::Conflicts)) {
                return self.attempted(graph, searched);
            }
        }
        (self.limits.observe)(Stage::Saturate);
        let order = match self.saturate(&mut graph, order) {
            (Saturated::Fixpoint(order), ..) => order,
            (Saturated::Cyclic(stuck), clocks) => {
                return self.cyclic(&graph, &stuck, Some(&clocks));
            }
            (Saturated::Stopped, _) => {
                return Attempt::Verdict(limit(acyclic::Stop::Asked));
            }
        };
        let searched = self.search(&graph, &order, None);
        self.attempted(graph, searched)
    }

    fn attempted(&mut self, graph: Graph, searched: Searched) -> Attempt {
        match searched {
            Searched::Satisfied(order) => Attempt::Verdict(self.satisfied(&order)),
            Searched::Violated(refuted) => self.refuted(graph, &refuted),
            Searched::ViolatedUnproven => self.refuted_unproven(graph),
            Searched::Stopped(stop) => Attempt::Verdict(limit(stop)),
        }
    }

    fn search(&self, graph: &Graph, order: &[Node], conflicts_max: Option<u64>) -> Searched {
        (self.limits.observe)(Stage::Solve);
        let mut solver = acyclic::Solver::new(order, known_edges(graph))
            .expect("an order that every edge agrees with");
        let mut search = Search::new(self.model, self.versions, self.repeated);
        search.begin(&mut solver);
        let used = graph.memory() + self.versions.memory();
        let within = (self.limits, self.options.engine);
        match solved(&mut solver, &mut search, within, (used, conflicts_max)) {
            Solved::Satisfied => Searched::Satisfied(in_order(solver.positions())),
            Solved::Violated(Some(refutation)) => {
                Searched::Violated(Refuted { refutation, asked: search.asked })
            }
            Solved::Violated(None) => Searched::ViolatedUnproven,
            Solved::Stopped(stop) => Searched::Stopped(stop),
        }
    }

    /// Derives what follows; with the clocks of the last round.
    fn saturate(&self, graph: &mut Graph, order: &[Node]) -> (Saturated, (Clocks, Cover)) {
        let cover = self.cover(graph, order, CLOCK_BYTES_MAX);
        let runs = Runs::new(self.versions, &cover);
        let clocks = Clocks::new(graph, &cover);
        let mut saturation =
            Saturation { versions: self.versions, cover: &cover, runs: &runs, clocks, rounds: 0 };
        let saturated = saturation.run(graph, order.to_vec(), None, self.limits);
        let (rounds, derived) = (saturation.rounds as u64, graph.derived.len() as u64);
        let open = open_pairs(self.versions).0.saturating_sub(saturation.decided_pairs(graph));
        (self.limits.observe)(Stage::Saturated { rounds, derived, open });
        let clocks = saturation.clocks;
        (saturated, (clocks, cover))
    }

    fn cover(&self, graph: &Graph, order: &[Node], bytes_max: usize) -> Cover {
        let (history, index) = (self.versions.history, self.versions.index);
        let bytes_max = self.limits.working_bytes_max.map_or(bytes_max, |most| most / 2);
        let per_chain = Clocks::bytes(graph.node_count(), 1, self.model.events).max(1);
        let chains_max = (bytes_max / per_chain).clamp(1, 1 << 14);
        if self.given_up.is_empty() && history.session_count() <= chains_max {
            return Cover::sessions(history);
        }
        Cover::greedy((history, index), graph, order, chains_max)
    }

    /// A cycle of edges among nodes that no order fits.
    fn cyclic(
        &mut self,
        graph: &Graph,
        stuck: &[Node],
        clocks: Option<&(Clocks, Cover)>,
    ) -> Attempt {
        let core = core(graph, stuck);
        if !self.model.session && self.attempts > GIVING_UP_ONE_BY_ONE {
            let begins = core.iter().filter(|&&node| {
                graph
                    .before_why(node)
                    .any(|(from, why)| why == Why::Session && core.contains(&from))
            });
            let before = self.given_up.len();
            self.given_up.extend(begins);
            if self.given_up.len() > before {
                return Attempt::GaveUp;
            }
        }
        let steps = short_cycle(graph, &core);
        let premises = || Premises { graph, clocks: clocks.map(|(clocks, cover)| (clocks, cover)) };
        let proof = ProofBuilder::new(self.model, self.versions, premises()).of_cycle(&steps);
        if !self.model.session && self.give_up(&proof) {
            return Attempt::GaveUp;
        }
        (self.limits.observe)(Stage::Explain);
        let explainer =
            Explainer { model: self.model, versions: self.versions, premises: premises() };
        let anomaly = anomaly::of_event_cycle(self.history(), explainer.cycle(&steps));
        Attempt::Verdict(violated(anomaly, Some(proof)))
    }

    /// No order of versions fits: as a cycle if saturation of what the refutation is
    /// about finds one, else by cases.
    fn refuted(&mut self, mut graph: Graph, refuted: &Refuted) -> Attempt {
        (self.limits.observe)(Stage::Explain);
        let Refuted { refutation, asked } = refuted;
        let proof = {
            let premises = Premises { graph: &graph, clocks: None };
            ProofBuilder::new(self.model, self.versions, premises).of_search(refutation, asked)
        };
        if !self.model.session && self.give_up(&proof) {
            return Attempt::GaveUp;
        }
        let order = graph.sorted().expect("the solver began with an order");
        if let Some(attempt) = self.focused(&mut graph, &order, refutation) {
            return attempt;
        }
        let premises = Premises { graph: &graph, clocks: None };
        let explainer = Explainer { model: self.model, versions: self.versions, premises };
        let anomaly = anomaly::of_cases(explainer.cases(refutation, asked));
        Attempt::Verdict(violated(anomaly, Some(proof)))
    }

    /// No order of versions fits, and it is not known why: as a cycle if saturation finds
    /// one. A level without session order gives all of it up first.
    fn refuted_unproven(&mut self, mut graph: Graph) -> Attempt {
        if !self.model.session && self.given_up.len() < self.history().txn_count() {
            self.give_up_all();
            return Attempt::GaveUp;
        }
        let order = graph.sorted().expect("the solver began with an order");
        let (saturated, clocks) = self.saturate(&mut graph, &order);
        if let Saturated::Cyclic(stuck) = saturated {
            return self.cyclic(&graph, &stuck, Some(&clocks));
        }
        Attempt::Verdict(Verdict::Violated(Violated::by(Vec::new())))
    }

    /// Saturates with the transactions of a refutation alone.
    fn focused(
        &mut self,
        graph: &mut Graph,
        order: &[Node],
        refutation: &acyclic::Refutation,
    ) -> Option<Attempt> {
        let events = self.model.events_of(self.history().txn_count()) as Node;
        let nodes = refutation.steps.iter().flat_map(|step| match step {
            acyclic::Step::Cycle { path } => path.as_slice(),
            _ => &[],
        });
        let mut focus: Vec<TxnId> = nodes
            .flat_map(|edge| [edge.from, edge.to])
            .filter(|&node| node < events)
            .map(|node| self.model.txn(node))
            .collect();
        focus.sort_unstable();
        focus.dedup();
        let cover = self.cover(graph, order, EXPLAINING_BYTES_MAX);
        let runs = Runs::new(self.versions, &cover);
        let clocks = Clocks::new(graph, &cover);
        let mut saturation =
            Saturation { versions: self.versions, cover: &cover, runs: &runs, clocks, rounds: 0 };
        let saturated = saturation.run(graph, order.to_vec(), Some(&focus), self.limits);
        let clocks = saturation.clocks;
        let Saturated::Cyclic(stuck) = saturated else { return None };
        Some(self.cyclic(graph, &stuck, Some(&(clocks, cover))))
    }

    /// Gives up the edges of session order that a proof uses; whether there are any.
    fn give_up(&mut self, proof: &Derivation) -> bool {
        let mut found = false;
        for step in &proof.steps {
            if step.rule == isolde_certificate::Rule::Session {
                self.given_up.insert(self.model.begin(step.to.txn()));
                found = true;
            }
        }
        found
    }

    fn give_up_all(&mut self) {
        let all = self.versions.history.txns().map(|txn| self.model.begin(txn));
        self.given_up.extend(all);
    }

    fn diverged(&self, divergence: versions::Divergence, graph: &Graph) -> Verdict {
        let versions = self.versions;
        let versions::Divergence { first, second } = divergence;
        let (one, other) = (versions.reader(first), versions.reader(second));
        let edge = |before, after, read| {
            let it = versions.index.read(read);
            let reason = Reason::AntiDependency { read: it.op, key: it.key, because: Vec::new() };
            Edge { before, after, reason }
        };
        let cycle = Cycle { edges: vec![edge(one, other, first), edge(other, one, second)] };
        let premises = Premises { graph, clocks: None };
        let proof = ProofBuilder::new(self.model, versions, premises).of_divergence(first, second);
        violated(anomaly::of_event_cycle(versions.history, cycle), Some(proof))
    }

    fn satisfied(&self, order: &[Node]) -> Verdict {
        let events = self.model.events_of(self.history().txn_count()) as Node;
        let counted =
            |node: &Node| *node < events && self.versions.index.is_counted(self.model.txn(*node));
        let events = order.iter().copied().filter(counted);
        Verdict::Satisfied(match self.model.events {
            Events::One => Satisfied::Order(events.map(|node| self.model.txn(node)).collect()),
            Events::Two => {
                Satisfied::Events(events.map(|node| certificate_node(self.model, node)).collect())
            }
        })
    }

    /// A verdict if a limit is reached.
    fn halt(&self, bytes: usize) -> Option<Verdict> {
        if (self.limits.stop)() {
            return Some(limit(acyclic::Stop::Asked));
        }
        let most = self.limits.working_bytes_max?;
        (bytes + self.versions.memory() > most).then(|| limit(acyclic::Stop::Memory))
    }
}

/// What came of a search.
enum Searched {
    Satisfied(Vec<Node>),
    Violated(Refuted),
    /// By an engine that does not say why.
    ViolatedUnproven,
    Stopped(acyclic::Stop),
}

struct Refuted {
    refutation: acyclic::Refutation,
    asked: search::Asked,
}

/// A violation and its proof, if there is one.
fn violated(anomaly: Anomaly, proof: Option<Derivation>) -> Verdict {
    Verdict::Violated(Violated {
        anomalies: vec![anomaly],
        settled_by: None,
        proof: proof.map(Arc::new),
    })
}

/// What a solver answered.
enum Solved {
    Satisfied,
    /// With a proof, if the engine has one.
    Violated(Option<acyclic::Refutation>),
    Stopped(acyclic::Stop),
}

/// Runs the solver within the limits, of which `used` bytes are gone, and tells what it
/// took.
fn solved<R: acyclic::Refine>(
    solver: &mut acyclic::Solver,
    refine: &mut R,
    (limits, engine): (&Limits<'_>, Engine),
    (used, conflicts_max): (usize, Option<u64>),
) -> Solved {
    let within = acyclic::Limits {
        stop: limits.stop,
        memory_bytes_max: limits.working_bytes_max.map(|most| most.saturating_sub(used)),
        conflicts_max,
    };
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
    let acyclic::Statistics { choices, conflicts, .. } = solver.statistics();
    (limits.observe)(Stage::Solved { choices, conflicts });
    answer
}

fn limit(stop: acyclic::Stop) -> Verdict {
    Verdict::Unknown(Unknown::Limit(match stop {
        acyclic::Stop::Asked => "the time limit was reached".into(),
        acyclic::Stop::Memory => "the memory limit was reached".into(),
        acyclic::Stop::Conflicts => "the search met too many contradictions and was given up; \
                                     with a time limit it goes on until then"
            .into(),
    }))
}

/// Pairs of versions of keys whose order is open, and how many such keys there are.
fn open_pairs(versions: &Versions<'_>) -> (u64, u64) {
    let mut pairs = 0;
    let mut keys = 0;
    for key in versions.open_keys() {
        let writers = versions.slots_of(key).len() as u64;
        pairs += writers * (writers - 1) / 2;
        keys += 1;
    }
    (pairs, keys)
}

/// Nodes by their positions.
fn in_order(positions: &[u32]) -> Vec<Node> {
    let mut order = vec![0; positions.len()];
    for (node, &position) in positions.iter().enumerate() {
        order[position as usize] = node as Node;
    }
    order
}
