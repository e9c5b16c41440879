//! One level of one history: what its strategies have in common.
//!
//! `strategies` is the table of what is tried. Here stand the graph of what is known, the order
//! that is proposed, the edges of session order that were given up, and how what was found
//! becomes an answer with its explanation and its proof.

use super::Options;
use super::clocks::Clocks;
use super::conditions::{all_fit, choosable};
use super::cover::Cover;
use super::cycle::{Core, Premises, short_cycle};
use super::graph::{Graph, Why};
use super::model::{Events, Model, Node};
use super::orders::witness::guess;
use super::proof::{ProofBuilder, certificate_node};
use super::repeated::Repeated;
use super::runs::Runs;
use super::saturate::{Saturated, Saturation, positions};
use super::solving::{Effort, Refuted, Searched};
use super::sources::Known;
use super::strategies::{self, GivenUp};
use super::versions::Versions;
use crate::anomaly::Anomaly;
use crate::limits::{Limits, Stage};
use crate::naming;
use crate::strategy::StrategyName;
use crate::unknown::{Limit, Obstacle, Unknown, VersionsKnown};
use crate::verdict::{Attempt, Satisfied, Verdict, Violated};
use hashbrown::HashSet;
use isolde_certificate::{Derivation, Rule};
use isolde_history::{History, TxnId};
use std::sync::Arc;

/// Refutations that cost only the edges of session order they rest on; then all edges
/// on or between cycles go at once.
const GIVING_UP_ONE_BY_ONE: usize = 4;
/// Refutations before session order is given up altogether.
const GIVING_UP_MAX: usize = 24;
/// Conflicts of the solver before saturation is tried: so many, and one in so many nodes.
const CONFLICTS_FIRST: u64 = 2_000;
const NODES_PER_CONFLICT: u64 = 20;
/// Clocks may take this much memory where no limit was set.
pub(super) const CLOCK_BYTES_MAX: usize = 4 << 30;
/// So few transactions of an explanation each have a clock of their own.
const FOCUS_MAX: usize = 64;
/// Clocks may take this much only to make an explanation shorter.
const EXPLAINING_BYTES_MAX: usize = 512 << 20;

/// One level of one history being decided.
pub(super) struct Decision<'a> {
    pub(super) model: &'static Model,
    pub(super) versions: &'a Versions<'a>,
    pub(super) repeated: &'a [Repeated],
    pub(super) options: Options,
    pub(super) limits: &'a Limits<'a>,
    /// Edges of session order, by their later end, that the guess does without.
    given_up: HashSet<Node>,
    attempts: usize,
    /// The order that attempts begin with: that of the first one, with all of session order,
    /// as far as those before have put it right.
    first: Vec<Node>,
    /// Conflicts after which the search is given up.
    pub(super) conflicts_max: Option<u64>,
    /// The graph of what is known and an order that agrees with it, for strategies to come.
    pub(super) proposal: Option<(Graph, Vec<Node>)>,
    /// Whether the search met many conflicts.
    pub(super) is_hard: bool,
}

impl<'a> Decision<'a> {
    pub(super) fn new(
        model: &'static Model,
        versions: &'a Versions<'a>,
        repeated: &'a [Repeated],
        options: Options,
        limits: &'a Limits<'a>,
    ) -> Self {
        let mut decision = Decision {
            model,
            versions,
            repeated,
            options,
            limits,
            given_up: HashSet::new(),
            attempts: 0,
            first: Vec::new(),
            conflicts_max: None,
            proposal: None,
            is_hard: false,
        };
        if !options.sources.session {
            decision.give_up_all();
        }
        decision
    }

    /// Whether session order is no guess.
    fn keeps_sessions(&self) -> bool {
        self.model.session && self.options.sources.session
    }

    /// The same, but not for long: what takes a long search stays unknown.
    pub(super) fn briefly(mut self) -> Self {
        self.conflicts_max = Some(CONFLICTS_FIRST);
        self
    }

    /// What a search of a graph may take if it is not to take long. Without sessions a few
    /// conflicts can take minutes, and what takes that long gets no better by saturation.
    pub(super) fn effort(&self, graph: &Graph, conflicts_max: Option<u64>) -> Effort {
        if self.conflicts_max.is_none() || self.options.sources.session {
            return Effort { conflicts_max, work_max: None };
        }
        Effort { conflicts_max, ..Effort::of(Some(many_conflicts(graph))) }
    }

    pub(super) fn run(&mut self) -> Verdict {
        strategies::decide(self).0
    }

    /// Begins a round; the limit that does not let it.
    pub(super) fn begin(&mut self) -> Option<Limit> {
        self.attempts += 1;
        self.is_hard = false;
        self.proposal = None;
        if self.attempts > GIVING_UP_MAX {
            self.give_up_all();
        }
        self.limits.is_over().then(|| self.limits.reached())
    }

    /// Whether nothing was given up yet that the level does not have.
    pub(super) fn is_first_round(&self) -> bool {
        self.attempts == 1
    }

    pub(super) fn is_off(&self, name: StrategyName) -> bool {
        self.options.without.contains(name)
    }

    /// Whether keys have versions whose order is not known, or reads may have seen several.
    pub(super) fn is_open(&self) -> bool {
        self.versions.open_keys().next().is_some() || self.has_choices()
    }

    /// Whether there is a proposal, or nobody looked for one.
    pub(super) fn may_be_proposed(&self) -> bool {
        self.proposal.is_some() || self.is_off(StrategyName::KnownOrder)
    }

    pub(super) fn history(&self) -> &'a History {
        self.versions.history
    }

    /// All that is known.
    fn known(&self) -> Known<'_> {
        let known = self.known_without_times();
        if self.options.sources.real_time {
            known.with_times(self.options.clock_drift)
        } else {
            known
        }
    }

    pub(super) fn known_without_times(&self) -> Known<'_> {
        Known::without_times(self.model, self.versions, &self.given_up)
    }

    /// The graph of these edges.
    pub(super) fn graph(&self, known: &Known<'_>) -> Graph {
        Graph::new(self.model, self.history().txn_count(), known.node_count(), known)
    }

    /// The graph of all known edges with their evidence.
    pub(super) fn explained_graph(&self) -> Graph {
        let known = self.known();
        let mut graph = self.graph(&known);
        graph.note_evidence(&known);
        graph
    }

    /// Adds to the graph of all known edges why each is there.
    pub(super) fn note_evidence(&self, graph: &mut Graph) {
        graph.note_evidence(&self.known());
    }

    /// The graph of what is known with an order that agrees with it, or with the nodes that have
    /// none.
    pub(super) fn propose(&mut self) -> (Graph, Result<Vec<Node>, Vec<Node>>) {
        let graph = self.graph(&self.known());
        self.limits.spend((graph.node_count() + graph.edge_count()) as u64 / 8);
        (self.limits.observe)(Stage::Witness);
        let order = self.first_order(&graph);
        (graph, order)
    }

    /// The same as it was left by a strategy before, if there is such an order.
    pub(super) fn proposed(&mut self) -> Option<(Graph, Vec<Node>)> {
        self.proposal.take().or_else(|| {
            let (graph, order) = self.propose();
            order.ok().map(|order| (graph, order))
        })
    }

    /// An order to begin with, or the nodes that have none. It follows session order also
    /// where the graph no longer does: the search is then about what is wrong with it, and
    /// without it about everything.
    fn first_order(&mut self, graph: &Graph) -> Result<Vec<Node>, Vec<Node>> {
        if !self.is_open() {
            return graph.sorted();
        }
        if self.first.is_empty() {
            self.first = guess(graph, self.versions, self.options.sources)?;
        }
        Ok(self.first.clone())
    }

    /// Whether it is open what some reads saw.
    pub(super) fn has_choices(&self) -> bool {
        !self.repeated.is_empty() || !choosable(self.versions).is_empty()
    }

    pub(super) fn attempted(
        &mut self,
        graph: Graph,
        searched: Searched,
    ) -> Result<Attempt, GivenUp> {
        match searched {
            Searched::Satisfied(order) => Ok(self.satisfied(&order)),
            Searched::Violated(refuted) => self.refuted(graph, &refuted),
            Searched::ViolatedUnproven => self.refuted_unproven(graph),
            Searched::Stopped(stop) => Ok(Attempt::OutOfBudget(limit(stop, self.limits))),
        }
    }

    /// Derives what follows; with the clocks of the last round.
    pub(super) fn saturate(
        &self,
        graph: &mut Graph,
        order: &[Node],
    ) -> (Saturated, (Clocks, Cover)) {
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

    pub(super) fn cover(&self, graph: &Graph, order: &[Node], bytes_max: usize) -> Cover {
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
    pub(super) fn cyclic(
        &mut self,
        mut graph: Graph,
        stuck: &[Node],
        clocks: Option<&(Clocks, Cover)>,
    ) -> Result<Attempt, GivenUp> {
        graph.note_evidence(&self.known());
        let graph = &graph;
        let core = Core::new(graph, stuck);
        if !self.keeps_sessions() && self.attempts > GIVING_UP_ONE_BY_ONE {
            let in_session = |node: Node| {
                let mut before = graph.before_why(node);
                before.any(|(from, why)| why == Why::Session && core.joins(from, node))
            };
            let before = self.given_up.len();
            self.given_up.extend(core.nodes().filter(|&node| in_session(node)));
            if self.given_up.len() > before {
                return Err(GivenUp);
            }
        }
        let steps = short_cycle(graph, &core);
        let premises = Premises { graph, clocks: clocks.map(|(clocks, cover)| (clocks, cover)) };
        let proof = ProofBuilder::new(self.model, self.versions, premises).of_cycle(&steps);
        if !self.keeps_sessions() && self.give_up(&proof) {
            return Err(GivenUp);
        }
        (self.limits.observe)(Stage::Explain);
        let anomaly = naming::of_derivation(self.history(), self.model.level, &proof);
        Ok(Attempt::Refuted(violated(anomaly, Some(proof))))
    }

    /// No order of versions fits: as a cycle if saturation of what the refutation is
    /// about finds one, else by cases.
    fn refuted(&mut self, mut graph: Graph, refuted: &Refuted) -> Result<Attempt, GivenUp> {
        (self.limits.observe)(Stage::Explain);
        graph.note_evidence(&self.known());
        let Refuted { refutation, asked, order } = refuted;
        let proof = {
            let premises = Premises { graph: &graph, clocks: None };
            ProofBuilder::new(self.model, self.versions, premises).of_search(refutation, asked)
        };
        if !self.keeps_sessions() && self.give_up(&proof) {
            self.first.clone_from(order);
            return Err(GivenUp);
        }
        if let Some((stuck, clocks)) = self.focused(&mut graph, order, refutation) {
            return self.cyclic(graph, &stuck, Some(&clocks));
        }
        let anomaly = naming::of_derivation(self.history(), self.model.level, &proof);
        Ok(Attempt::Refuted(violated(anomaly, Some(proof))))
    }

    /// No order of versions fits, and it is not known why: as a cycle if saturation finds
    /// one. A level without session order gives all of it up first.
    fn refuted_unproven(&mut self, mut graph: Graph) -> Result<Attempt, GivenUp> {
        if !self.keeps_sessions() && self.given_up.len() < self.history().txn_count() {
            self.give_up_all();
            return Err(GivenUp);
        }
        graph.note_evidence(&self.known());
        let order = graph.sorted().expect("the solver began with an order");
        let (saturated, clocks) = self.saturate(&mut graph, &order);
        if let Saturated::Cyclic(stuck) = saturated {
            return self.cyclic(graph, &stuck, Some(&clocks));
        }
        Ok(Attempt::Refuted(Violated::by(Vec::new())))
    }

    /// Saturates with the transactions of a refutation alone: the nodes on or between
    /// cycles, if any come of it.
    fn focused(
        &self,
        graph: &mut Graph,
        order: &[Node],
        refutation: &acyclic::Refutation,
    ) -> Option<(Vec<Node>, (Clocks, Cover))> {
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
        let cover = if focus.len() <= FOCUS_MAX {
            Cover::alone(self.history(), &focus)
        } else {
            self.cover(graph, order, EXPLAINING_BYTES_MAX)
        };
        let runs = Runs::new(self.versions, &cover);
        let clocks = Clocks::new(graph, &cover);
        let mut saturation =
            Saturation { versions: self.versions, cover: &cover, runs: &runs, clocks, rounds: 0 };
        let saturated = saturation.run(graph, order.to_vec(), Some(&focus), self.limits);
        let clocks = saturation.clocks;
        let Saturated::Cyclic(stuck) = saturated else { return None };
        Some((stuck, (clocks, cover)))
    }

    /// Gives up the edges of session order that a proof uses; whether there are any.
    fn give_up(&mut self, proof: &Derivation) -> bool {
        let mut found = false;
        for step in &proof.steps {
            if step.rule == Rule::Session {
                self.given_up.insert(self.model.begin(step.to.txn()));
                found = true;
            }
        }
        found
    }

    pub(super) fn give_up_all(&mut self) {
        let all = self.versions.history.txns().map(|txn| self.model.begin(txn));
        self.given_up.extend(all);
    }

    /// What an order that explains every read of an item shows: the level, if it fits what was
    /// read by predicate too.
    pub(super) fn satisfied(&self, order: &[Node]) -> Attempt {
        if !self.versions.conditions.open.is_empty() {
            match all_fit(self.model, self.versions, positions(order), self.limits.stop) {
                Some(true) => {}
                Some(false) => {
                    let obstacle = Obstacle::OpenPredicate(known_of_versions(self.history()));
                    return Attempt::Open(Unknown::Unsupported(obstacle));
                }
                None => return Attempt::OutOfBudget(self.limits.reached()),
            }
        }
        let events = self.model.events_of(self.history().txn_count()) as Node;
        let counted =
            |node: &Node| *node < events && self.versions.index.is_counted(self.model.txn(*node));
        let events = order.iter().copied().filter(counted);
        Attempt::Proved(match self.model.events {
            Events::One => Satisfied::Order(events.map(|node| self.model.txn(node)).collect()),
            Events::Two => {
                Satisfied::Events(events.map(|node| certificate_node(self.model, node)).collect())
            }
        })
    }

    /// The limit that is reached, if one is.
    pub(super) fn halt(&self, bytes: usize) -> Option<Limit> {
        if self.limits.is_over() {
            return Some(self.limits.reached());
        }
        let most = self.limits.working_bytes_max?;
        (bytes + self.versions.memory() > most).then_some(Limit::Memory)
    }
}

/// Conflicts that show that a search is hard.
pub(super) fn many_conflicts(graph: &Graph) -> u64 {
    CONFLICTS_FIRST + graph.node_count() as u64 / NODES_PER_CONFLICT
}

/// What is known where only some orders of versions fit what was read by predicate. Who can tell
/// more was asked already, or not.
fn known_of_versions(history: &History) -> VersionsKnown {
    if history.has_snapshots() {
        VersionsKnown::OrderAndSnapshots
    } else if history.has_evidence() {
        VersionsKnown::Order
    } else {
        VersionsKnown::Nothing
    }
}

/// A violation and its proof, if there is one.
pub(super) fn violated(anomaly: Anomaly, proof: Option<Derivation>) -> Violated {
    Violated { anomalies: vec![anomaly], settled_by: None, proof: proof.map(Arc::new) }
}

/// The limit at which a search stopped.
pub(super) fn limit(stop: acyclic::Stop, limits: &Limits<'_>) -> Limit {
    match stop {
        acyclic::Stop::Asked => limits.reached(),
        acyclic::Stop::Memory => Limit::Memory,
        acyclic::Stop::Conflicts => Limit::Conflicts,
        acyclic::Stop::Work => Limit::Work,
    }
}

/// Pairs of versions of keys whose order is open, and how many such keys there are.
pub(super) fn open_pairs(versions: &Versions<'_>) -> (u64, u64) {
    let mut pairs = 0;
    let mut keys = 0;
    for key in versions.open_keys() {
        let writers = versions.slots_of(key).len() as u64;
        pairs += writers * (writers - 1) / 2;
        keys += 1;
    }
    (pairs, keys)
}
