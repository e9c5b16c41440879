//! The solver: what the caller adds, and the search.

mod conflict;
mod propagate;

use crate::choice::{Choice, Edge, Literal, Node, Phase};
use crate::clauses::Clauses;
use crate::graph::{ChoiceEdge, Graph, KnownEdges, NONE, OrderError};
use crate::limits::{Limits, Statistics, Stop};
use crate::pace::Pace;
use crate::proof::{Log, Refutation};
use crate::queue::Queue;
use crate::trail::{Reason, Trail};
use conflict::Analysis;
use propagate::Propagation;
use std::cell::Cell;

/// Units of work between two looks at the limits.
const WORK_BETWEEN: u64 = 2_000;

/// What came out of a search.
#[derive(Debug)]
#[must_use]
pub enum Answer {
    /// [`Solver::positions`] is an order that agrees with a side of every choice.
    Satisfied,
    /// There is no such order.
    Violated(Refutation),
    /// A limit was reached; the search can be continued.
    Stopped(Stop),
}

/// Looks whether an order that violates no choice is a real answer.
pub trait Refine {
    /// Called when every choice has a side that agrees with [`Solver::positions`] and
    /// every clause is true. Adds choices, edges or clauses if something is missing.
    ///
    /// `moved` are the nodes that have another position than when this was last called. It is
    /// empty in the first call, when everything is new.
    fn refine(&mut self, solver: &mut Solver, moved: &[Node]) -> Refined;
}

/// What became of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refined {
    /// It is an answer.
    Complete,
    /// Something was added, which the order may violate.
    Added,
}

/// For callers that added everything before.
pub struct NothingHidden;

impl Refine for NothingHidden {
    fn refine(&mut self, _: &mut Solver, _: &[Node]) -> Refined {
        Refined::Complete
    }
}

/// Takes sides of choices so that no cycle arises.
pub struct Solver {
    pub(crate) graph: Graph,
    pub(crate) trail: Trail,
    pub(crate) clauses: Clauses,
    /// Invariant: it has every undecided choice that needs a decision.
    pub(crate) queue: Queue,
    pub(crate) analysis: Analysis,
    pub(crate) log: Log,
    pub(crate) pace: Pace,
    /// By choice: the side that was taken last, or the caller's phase.
    phases: Vec<Phase>,
    /// By choice: it is in a clause of the caller. The order says nothing about
    /// clauses, so these are decided even if the order agrees with a side.
    in_clause: Vec<bool>,
    /// Clauses the search has not seen yet.
    pub(crate) late_clauses: Vec<u32>,
    /// Choices that left the queue although they were violated when nodes were last looked at.
    set_aside: Vec<Choice>,
    /// Edges that came to a side after it was taken.
    pub(crate) late_edges: Vec<u32>,
    /// By choice that holds for good: the step that says so.
    pub(crate) root_steps: Vec<u32>,
    /// The empty lemma.
    pub(crate) refuted: Option<u32>,
    pub(crate) statistics: Statistics,
    pub(crate) work: u64,
    additions: u64,
    was_refined: bool,
}

impl Solver {
    /// A solver for the nodes of an order and known edges that agree with it.
    pub fn new(order: &[Node], known: KnownEdges) -> Result<Solver, OrderError> {
        Ok(Solver {
            graph: Graph::new(order, known)?,
            trail: Trail::default(),
            clauses: Clauses::default(),
            queue: Queue::new(),
            analysis: Analysis::default(),
            log: Log::default(),
            pace: Pace::new(),
            phases: Vec::new(),
            in_clause: Vec::new(),
            late_clauses: Vec::new(),
            set_aside: Vec::new(),
            late_edges: Vec::new(),
            root_steps: Vec::new(),
            refuted: None,
            statistics: Statistics::default(),
            work: 0,
            additions: 0,
            was_refined: false,
        })
    }

    /// Adds a choice. All edges of a side hold if it is taken; a side may have none.
    /// An edge from a node to itself makes its side impossible.
    /// `phase` is the side to try first where the order is as near to one as to the other.
    ///
    /// # Panics
    /// If an edge has a node that is not in the order.
    pub fn choice(&mut self, yes: &[Edge], no: &[Edge], phase: Phase) -> Choice {
        let choice = Choice::at(self.phases.len());
        self.additions += 1;
        self.statistics.choices += 1;
        self.phases.push(phase);
        self.in_clause.push(false);
        self.root_steps.push(NONE);
        self.trail.grow();
        self.clauses.grow();
        self.queue.grow();
        self.analysis.grow();
        self.graph.lists.extend([(NONE, NONE); 2]);
        self.graph.backward.extend([0, 0]);
        self.extend(choice.yes(), yes);
        self.extend(choice.no(), no);
        choice
    }

    /// Adds edges to a side.
    ///
    /// # Panics
    /// If an edge has a node that is not in the order.
    pub fn extend(&mut self, literal: Literal, edges: &[Edge]) {
        for &edge in edges {
            self.additions += 1;
            let id = self.graph.add(literal, edge);
            if edge.from == edge.to {
                let step = self.log.cycle(&[id]);
                self.late_clauses.push(self.clauses.store(&[!literal], None, step));
            } else if self.trail.value(literal) > 0 {
                self.late_edges.push(id);
            }
        }
        self.requeue(literal.choice());
    }

    /// Adds a clause: at least one of the literals is true. Proofs name it by its tag.
    pub fn clause(&mut self, literals: &[Literal], tag: u32) {
        self.additions += 1;
        let step = self.log.input(tag, literals);
        let mut literals = literals.to_vec();
        literals.sort_unstable();
        literals.dedup();
        for literal in &literals {
            self.in_clause[literal.choice().index()] = true;
            self.requeue(literal.choice());
        }
        // Both sides of one choice stand side by side, and one of them is true.
        if literals.windows(2).any(|pair| pair[0] == !pair[1]) {
            return;
        }
        if literals.is_empty() {
            self.refuted.get_or_insert(self.log.lemma(&[], &[step]));
        } else {
            self.late_clauses.push(self.clauses.store(&literals, None, step));
        }
    }

    /// Searches for an order that agrees with a side of every choice, with all
    /// clauses true, and that `refine` accepts. Can be called again, after a limit
    /// as well as after an answer to which more was added.
    pub fn solve<R: Refine>(&mut self, refine: &mut R, limits: &Limits<'_>) -> Answer {
        let conflicts_max =
            limits.conflicts_max.map(|more| self.statistics.conflicts.saturating_add(more));
        let work_max = limits.work_max.map(|more| self.work.saturating_add(more));
        let looked_at = Cell::new(None);
        let interrupted = |solver: &Solver| {
            let due = looked_at.get().is_none_or(|work| solver.work - work >= WORK_BETWEEN);
            due && {
                looked_at.set(Some(solver.work));
                solver.reached(limits).is_some()
            }
        };
        loop {
            if self.refuted.is_some() {
                return Answer::Violated(self.refutation());
            }
            match self.propagate(&interrupted) {
                Propagation::Conflict(conflict) => {
                    self.learn(conflict);
                    continue;
                }
                Propagation::Interrupted => return self.stopped(limits),
                Propagation::Done => {}
            }
            if conflicts_max.is_some_and(|most| self.statistics.conflicts >= most) {
                return Answer::Stopped(Stop::Conflicts);
            }
            if work_max.is_some_and(|most| self.work >= most) {
                return Answer::Stopped(Stop::Work);
            }
            if interrupted(self) {
                return self.stopped(limits);
            }
            if self.pace.restart_due() {
                self.pace.restarted();
                self.statistics.restarts += 1;
                self.give_up(0);
            }
            if self.pace.reduction_due(self.clauses.removable()) {
                self.reduce();
            }
            if let Some(literal) = self.decision() {
                self.statistics.decisions += 1;
                self.trail.begin_level(self.graph.asserted_len());
                let level = self.trail.level();
                self.trail.take(literal, Reason::Decision, level);
            } else if self.refine(refine) == Refined::Complete {
                return Answer::Satisfied;
            } else if let Some(stop) = self.reached(limits) {
                return Answer::Stopped(stop);
            }
        }
    }

    /// The work that was done so far, as [`Limits::work_max`] counts it.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Counts as work of the search what a [`Refine`] did by itself: so many nodes looked at.
    pub fn worked(&mut self, nodes: u64) {
        self.work += nodes / 8;
    }

    /// The position of every node in the current order.
    pub fn positions(&self) -> &[u32] {
        &self.graph.positions
    }

    /// Whether a side is taken, if that is decided. Choices that need no decision
    /// have none; see [`Solver::side`].
    pub fn value(&self, literal: Literal) -> Option<bool> {
        match self.trail.value(literal) {
            0 => None,
            value => Some(value > 0),
        }
    }

    /// The side of a choice that is taken or, if none is, that agrees with the
    /// current order; where both do, the one to try first.
    pub fn side(&self, choice: Choice) -> Literal {
        let preferred = choice.side(self.phases[choice.index()]);
        match self.trail.value(preferred) {
            0 => self.nearest(choice),
            1 => preferred,
            _ => !preferred,
        }
    }

    /// The side of a choice that agrees with the current order; where both do or none
    /// does, the one to try first.
    pub(crate) fn nearest(&self, choice: Choice) -> Literal {
        let preferred = choice.side(self.phases[choice.index()]);
        let other = !self.agrees(preferred) && self.agrees(!preferred);
        if other { !preferred } else { preferred }
    }

    /// How many choices there are.
    #[cfg(feature = "cadical")]
    pub(crate) fn choice_count(&self) -> usize {
        self.phases.len()
    }

    /// Whether all edges of a side lead forward in the current order.
    pub fn agrees(&self, literal: Literal) -> bool {
        let mut edge = self.graph.lists[literal.index()].0;
        while edge != NONE {
            if !self.graph.is_forward(edge) {
                return false;
            }
            edge = self.graph.edges[edge as usize].next_of_literal;
        }
        true
    }

    /// What was done so far.
    pub fn statistics(&self) -> Statistics {
        let (visits, reorderings) = (self.graph.visits, self.graph.reorderings);
        Statistics { reorderings, visits, ..self.statistics }
    }

    /// Bytes the solver holds, within a few percent.
    pub fn memory_bytes(&self) -> usize {
        self.graph.bytes()
            + self.trail.bytes()
            + self.clauses.bytes()
            + self.queue.bytes()
            + self.analysis.bytes()
            + self.log.bytes()
            + 6 * self.phases.capacity()
    }

    pub(crate) fn reached(&self, limits: &Limits<'_>) -> Option<Stop> {
        if (limits.stop)() {
            return Some(Stop::Asked);
        }
        let most = limits.memory_bytes_max?;
        (self.memory_bytes() > most).then_some(Stop::Memory)
    }

    fn stopped(&self, limits: &Limits<'_>) -> Answer {
        Answer::Stopped(self.reached(limits).unwrap_or(Stop::Asked))
    }

    fn refutation(&mut self) -> Refutation {
        let end = self.refuted.expect("asked when there is one");
        self.log.refutation(end, &mut self.graph)
    }

    /// Takes a side for a reason, the last part of which came with a level.
    pub(crate) fn take(&mut self, literal: Literal, reason: Reason, level: u32) {
        self.statistics.propagations += 1;
        self.trail.take(literal, reason, level);
        if level == 0 {
            self.settle(literal);
        }
    }

    /// Gives up all levels above one. The order stays as it is.
    pub(crate) fn give_up(&mut self, level: u32) {
        if self.trail.level() <= level {
            return;
        }
        let (phases, in_clause) = (&mut self.phases, &self.in_clause);
        let (queue, backward) = (&mut self.queue, &self.graph.backward);
        let asserted = self.trail.give_up(level, |literal| {
            let choice = literal.choice().index();
            phases[choice] = literal.phase();
            let violated = backward[literal.index()] > 0 && backward[(!literal).index()] > 0;
            if violated || in_clause[choice] {
                queue.insert(choice);
            }
        });
        self.graph.retract_to(asserted, &self.trail.values);
    }

    /// Whether a choice must be decided.
    fn needs_decision(&self, choice: Choice) -> bool {
        self.trail.value(choice.yes()) == 0
            && (self.in_clause[choice.index()]
                || !(self.agrees(choice.yes()) || self.agrees(choice.no())))
    }

    /// Whether the order violated a choice when nodes were last looked at.
    fn was_violated(&self, choice: Choice) -> bool {
        let backward = |literal: Literal| self.graph.backward[literal.index()] > 0;
        backward(choice.yes()) && backward(choice.no())
    }

    /// How far apart the ends of a side's edges are that lead backward, at most: 0 if the side
    /// agrees with the order.
    ///
    /// The nearer side is the one that changes the order least, and a small change
    /// seldom breaks what was agreed on: it saves four of five conflicts over taking the
    /// side that was taken last.
    fn distance(&self, literal: Literal) -> u32 {
        let mut most = 0;
        let mut edge = self.graph.lists[literal.index()].0;
        while edge != NONE {
            let ChoiceEdge { from, to, next_of_literal, .. } = self.graph.edges[edge as usize];
            let (from, to) =
                (self.graph.positions[from as usize], self.graph.positions[to as usize]);
            // A loop at one node is never agreed with.
            most = most.max((from + 1).saturating_sub(to));
            edge = next_of_literal;
        }
        most
    }

    fn requeue(&mut self, choice: Choice) {
        if self.was_violated(choice) || self.needs_decision(choice) {
            self.queue.insert(choice.index());
        }
    }

    /// The next side to take, none if the order violates no choice.
    ///
    /// Where nodes moved, sides are looked at only when nothing else is left to decide: a
    /// node that moves once often moves again.
    fn decision(&mut self) -> Option<Literal> {
        loop {
            while let Some(choice) = self.queue.pop() {
                let choice = Choice::at(choice);
                if self.needs_decision(choice) {
                    let preferred = choice.side(self.phases[choice.index()]);
                    let other = self.distance(preferred) > self.distance(!preferred);
                    return Some(if other { !preferred } else { preferred });
                }
                if self.was_violated(choice) {
                    self.set_aside.push(choice);
                }
            }
            if self.graph.stale.is_empty() && self.set_aside.is_empty() {
                return None;
            }
            self.look_at_moved();
        }
    }

    /// Counts anew which edges of sides lead backward, where nodes moved.
    fn look_at_moved(&mut self) {
        let queue = &mut self.queue;
        self.graph.look_at_moved(|literal| queue.insert(literal.choice().index()));
        while let Some(choice) = self.set_aside.pop() {
            if self.was_violated(choice) {
                self.queue.insert(choice.index());
            }
        }
    }

    pub(crate) fn refine<R: Refine>(&mut self, refine: &mut R) -> Refined {
        let mut moved = self.graph.take_moved();
        if !self.was_refined {
            moved.clear();
        }
        self.was_refined = true;
        self.statistics.refinements += 1;
        // Who is shown an order looks at all of it.
        self.work += self.graph.positions.len() as u64 / 8;
        let before = self.additions;
        let refined = refine.refine(self, &moved);
        // Asking again about the same order would never end.
        assert!(
            refined == Refined::Complete || self.additions > before,
            "`Added` was said, but nothing was added"
        );
        refined
    }

    fn reduce(&mut self) {
        let before = self.clauses.removable();
        let trail = &self.trail;
        let moves = self.clauses.reduce(|clause, literal| {
            trail.value(literal) > 0 && trail.reason_of(literal.choice()) == Reason::Clause(clause)
        });
        for literal in &self.trail.literals {
            let reason = &mut self.trail.reasons[literal.choice().index()];
            if let Reason::Clause(clause) = reason {
                *clause = moves.of(*clause).expect("reasons are not removed");
            }
        }
        for clause in &mut self.late_clauses {
            *clause = moves.of(*clause).expect("late clauses are not learned");
        }
        self.statistics.forgotten += (before - self.clauses.removable()) as u64;
        self.pace.reduced();
    }
}
