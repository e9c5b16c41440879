//! Cycles of events as cycles of transactions, each edge with its evidence.

use super::conditions::Change;
use super::cycle::{Premises, Step};
use super::graph::{self, Why};
use super::model::{Events, Model, Node};
use super::proof::premise_ends;
use super::search::{Asked, Because, CycleEdge, Input, Missed, Variable, Visible};
use super::versions::{INITIAL_SLOT, Slot, Versions};
use crate::anomaly::{Cases, Seen};
use crate::evidence::{Cycle, Edge, INITIAL, Reason};
use isolde_certificate::{ChosenOrigin, Clause, Rule};
use isolde_history::{KeyId, OpId, ReadId, TxnId};

/// Derivations inside derivations are told down to this depth: that decides the name of an
/// anomaly. Whoever shows it gets all of them from the proof.
const DEPTH_MAX: usize = 3;
/// So many cycles of a proof by cases are told.
const CASES_MAX: usize = 8;

/// What an explanation needs to know.
pub(super) struct Explainer<'a> {
    pub(super) model: &'static Model,
    pub(super) versions: &'a Versions<'a>,
    pub(super) premises: Premises<'a>,
}

/// A case while it is told.
struct Case<'a> {
    asked: &'a Asked,
    later: &'a [Later],
    seen: Vec<Seen>,
}

/// If the read saw the version of `writer`, and that of `other` is later, then the reader
/// precedes `other`.
#[derive(Clone, Copy)]
struct Later {
    read: OpId,
    key: KeyId,
    writer: TxnId,
    other: TxnId,
}

impl Explainer<'_> {
    /// The transactions of a closed path of events.
    pub(super) fn cycle(&self, steps: &[Step]) -> Cycle {
        // Begin at an event, so that edges through points are whole.
        let events = self.model.events_of(self.versions.history.txn_count()) as Node;
        let first = steps.iter().position(|step| step.from < events).unwrap_or(0);
        let turned: Vec<Step> = steps[first..].iter().chain(&steps[..first]).copied().collect();
        Cycle { edges: self.edges(&turned, 0) }
    }

    /// A path of events as edges between transactions.
    pub(super) fn edges(&self, steps: &[Step], depth: usize) -> Vec<Edge> {
        let events = self.model.events_of(self.versions.history.txn_count()) as Node;
        let mut edges = Vec::new();
        let mut at = 0;
        while at < steps.len() {
            let start = at;
            while steps[at].to >= events && at + 1 < steps.len() {
                at += 1;
            }
            let (before, after) = (self.model.txn(steps[start].from), self.model.txn(steps[at].to));
            if steps[start].why != Why::Begins && (before != after || steps.len() == 1) {
                let reason = self.reason(steps[start], after, depth);
                edges.push(Edge::new(before, after, reason));
            }
            at += 1;
        }
        edges
    }

    fn reason(&self, step: Step, after: TxnId, depth: usize) -> Reason {
        let key = |read: ReadId| self.versions.index.read(read).key;
        let op = |read: ReadId| self.versions.index.read(read).op;
        match step.why {
            Why::Begins | Why::Session | Why::FirstVersion(_) => Reason::Rule(Rule::Session),
            Why::RealTime => Reason::Rule(Rule::RealTime),
            Why::ReadsFrom(read) => {
                Reason::Rule(Rule::ReadsFrom { read: op(read), key: key(read) })
            }
            Why::Replaced(read) => Reason::Rule(Rule::AntiDependency {
                read: op(read),
                key: key(read),
                path: self.link_edges(self.versions.seen[read.0 as usize], after),
            }),
            Why::InitialRead(read) => {
                let (read_op, key) = (op(read), key(read));
                let is_first = self.model.events == Events::Two
                    && step.from == self.model.commit(self.versions.reader(read));
                if is_first {
                    Reason::FirstVersion { read: read_op, key }
                } else {
                    Reason::Rule(Rule::InitialRead { read: read_op, key })
                }
            }
            Why::Step(place) => Edge::version(&self.versions.index.steps()[place as usize]).reason,
            Why::Derived(place) => self.derived(place, depth),
            Why::Condition(place) => {
                let it = self.versions.conditions.edges[place as usize];
                Reason::Rule(match it.kind {
                    Change::Saw => Rule::SawChange { read: it.op, key: it.key },
                    Change::Missed => Rule::MissedChange { read: it.op, key: it.key },
                })
            }
        }
    }

    /// The link that says that a version was replaced by `replacer`, unless the
    /// replacer read it.
    fn link_edges(&self, seen: Slot, replacer: TxnId) -> Vec<Edge> {
        if seen >= INITIAL_SLOT {
            return Vec::new();
        }
        let versions = self.versions;
        let step = versions.links(seen).find_map(|link| match link.shown_by {
            super::versions::ShownBy::Step(step) if versions.writer(link.after) == replacer => {
                Some(versions.index.steps()[step as usize])
            }
            _ => None,
        });
        step.as_ref().map(Edge::version).into_iter().collect()
    }

    fn derived(&self, place: u32, depth: usize) -> Reason {
        let versions = self.versions;
        let rule = self.premises.graph.derived[place as usize].rule;
        let (start, end) = premise_ends(self.model, versions, rule);
        let because = if depth < DEPTH_MAX {
            self.edges(&self.premises.path(start, end, place), depth + 1)
        } else {
            let (before, after) = (self.model.txn(start), self.model.txn(end));
            vec![Edge::new(before, after, Reason::Untold { steps: None })]
        };
        Reason::Rule(match rule {
            graph::Rule::Visible { read, .. } => {
                let it = versions.index.read(read);
                Rule::Visible { read: it.op, key: it.key, path: because }
            }
            graph::Rule::Pair { before, .. } => {
                Rule::Pair { key: versions.key_of(before), path: because }
            }
            graph::Rule::Anti { read, .. } => {
                let it = versions.index.read(read);
                Rule::AntiDependency { read: it.op, key: it.key, path: because }
            }
        })
    }

    /// The cycles of a refutation by the solver, each under its assumptions.
    pub(super) fn cases(&self, refutation: &acyclic::Refutation, asked: &Asked) -> Cases {
        let (ways, seen) = (Vec::new(), Vec::new());
        let mut cases = Cases { cycles: Vec::new(), count: 0, ways, seen };
        let later = self.later(refutation, asked);
        for step in &refutation.steps {
            let mut case = Case { asked, later: &later, seen: Vec::new() };
            let told = cases.count < CASES_MAX;
            let cycle = match step {
                acyclic::Step::Cycle { path } => told.then(|| self.case(path, &mut case)),
                acyclic::Step::Input { tag, .. } => match &asked.inputs[*tag as usize] {
                    Input::Clause(_) => continue,
                    Input::Cycle(edges) => told.then(|| self.cycle_case(edges, &mut case)),
                    Input::Missed(missed) => told.then(|| self.missed(missed)),
                },
                acyclic::Step::Lemma { .. } => continue,
            };
            let place = cases.cycles.len();
            let seen = case.seen.into_iter().map(|seen| Seen { case: place, ..seen });
            // Of two ways to the same contradiction under the same assumptions one is enough.
            let is_same = |known: usize, cycle: &Cycle| {
                cases.cycles[known] == *cycle
                    && seen.clone().all(|it| cases.seen.contains(&Seen { case: known, ..it }))
            };
            if cycle.as_ref().is_some_and(|cycle| (0..place).any(|known| is_same(known, cycle))) {
                continue;
            }
            cases.seen.extend(seen);
            cases.count += 1;
            cases.cycles.extend(cycle);
        }
        cases
    }

    /// Orders of events that the refutation takes for what follows if a read saw one version
    /// and another is later. What follows from several such things is left out.
    fn later(&self, refutation: &acyclic::Refutation, asked: &Asked) -> Vec<Later> {
        let mut later: Vec<Later> = Vec::new();
        for step in &refutation.steps {
            let acyclic::Step::Input { tag, .. } = step else { continue };
            let Input::Clause(Clause::SeenOrAfter { read, key, writer, other }) =
                asked.inputs[*tag as usize]
            else {
                continue;
            };
            later.push(Later { read, key, writer, other });
        }
        let reader = |it: &Later| self.versions.history.txn_of(it.read);
        let ends: Vec<(TxnId, TxnId)> = later.iter().map(|it| (reader(it), it.other)).collect();
        let is_alone = |it: &Later| {
            let end = (reader(it), it.other);
            ends.iter().filter(|&&other| other == end).count() == 1
        };
        later.retain(is_alone);
        later
    }

    /// A cycle that was found outside of the solver.
    fn cycle_case(&self, edges: &[CycleEdge], case: &mut Case<'_>) -> Cycle {
        let edge = |edge: &CycleEdge| {
            let (before, after) = (self.model.txn(edge.from), self.model.txn(edge.to));
            let reason = match edge.because {
                Because::Known(why) => {
                    self.reason(Step { from: edge.from, to: edge.to, why }, after, 0)
                }
                Because::Literal(literal) | Because::Overwritten { order: literal, .. } => {
                    self.assumed(case, literal, after)
                }
            };
            Edge::new(before, after, reason)
        };
        Cycle { edges: edges.iter().map(edge).collect() }
    }

    /// Were the version that a read missed later than the one that it saw, it would have
    /// been overwritten and would not.
    fn missed(&self, missed: &Missed) -> Cycle {
        let (other, reader) = (missed.other, self.versions.reader(missed.read));
        let supposed = |first, second| Edge::new(first, second, Reason::Supposed { first, second });
        let first = Edge::by(Rule::InitialFirst, INITIAL, other);
        let later = missed.writer.map_or(first, |writer| supposed(writer, other));
        let writer = later.before;
        let visible = match missed.visible {
            Visible::Before => supposed(other, reader),
            Visible::Read(read) => {
                let it = self.versions.index.read(read);
                Edge::reads_from(other, reader, it.op, it.key)
            }
        };
        let it = self.versions.index.read(missed.read);
        let rule = Rule::Visible { read: it.op, key: it.key, path: vec![visible] };
        Cycle { edges: vec![later, Edge::by(rule, other, writer)] }
    }

    fn case(&self, path: &[acyclic::PathEdge], case: &mut Case<'_>) -> Cycle {
        let events = self.model.events_of(self.versions.history.txn_count()) as Node;
        let first = path.iter().position(|edge| edge.from < events).unwrap_or(0);
        let mut edges = Vec::new();
        let mut known: Vec<Step> = Vec::new();
        for edge in path[first..].iter().chain(&path[..first]) {
            if let Some(literal) = edge.literal {
                edges.extend(self.edges(&known, 0));
                known.clear();
                let (before, after) = (self.model.txn(edge.from), self.model.txn(edge.to));
                let reason = self.assumed(case, literal, after);
                edges.push(Edge::new(before, after, reason));
            } else {
                known.push(self.premises.step(edge.from, edge.to));
            }
        }
        edges.extend(self.edges(&known, 0));
        Cycle { edges }
    }

    fn assumed(&self, case: &mut Case<'_>, literal: acyclic::Literal, after: TxnId) -> Reason {
        match case.asked.variables[literal.choice().index()] {
            Variable::Pair(pair) => {
                let (first, second) = match literal.phase() {
                    acyclic::Phase::Yes => (pair.first, pair.second),
                    acyclic::Phase::No => (pair.second, pair.first),
                };
                let writer = |slot: Slot| self.versions.writer(slot);
                let key = self.versions.key_of(first);
                Reason::Assumed { key, first: writer(first), second: writer(second) }
            }
            Variable::Origin(ChosenOrigin { read, key, writer }) => {
                self.see(case, read, key, writer.unwrap_or(INITIAL));
                Reason::Rule(match writer {
                    Some(_) => Rule::ReadsFrom { read, key },
                    None => Rule::InitialRead { read, key },
                })
            }
            Variable::Before { from, to } => {
                let (from, to) = (self.model.txn(from), self.model.txn(to));
                let before = if after == to { from } else { to };
                let reader = |it: &&Later| self.versions.history.txn_of(it.read);
                let mut later = case.later.iter();
                match later.find(|it| (reader(it), it.other) == (before, after)) {
                    Some(&Later { read, key, writer, other }) => {
                        self.see(case, read, key, writer);
                        let reason = Reason::Assumed { key, first: writer, second: other };
                        let path = vec![Edge::new(writer, other, reason)];
                        Reason::Rule(Rule::AntiDependency { read, key, path })
                    }
                    None => Reason::Supposed { first: before, second: after },
                }
            }
        }
    }

    /// Notes what an operation by condition is taken to have seen. Of reads of repeated values
    /// the edge says it.
    fn see(&self, case: &mut Case<'_>, read: OpId, key: KeyId, writer: TxnId) {
        let seen = Seen { case: 0, read, key, writer };
        if !self.versions.history.op(read).kind.has_key() && !case.seen.contains(&seen) {
            case.seen.push(seen);
        }
    }
}
