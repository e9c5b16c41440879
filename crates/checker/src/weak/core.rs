//! The part of an order that has cycles, and a short cycle in it.
//!
//! Several steps along one session count as one: people read them as one. Any cycle
//! is found by walking on until a transaction comes again; a breadth-first search
//! from the transactions of the best cycle so far, and then from all others, makes
//! it shorter until its budget is spent. On small cores the result is the shortest.

use super::order::{Known, Predecessors};
use hashbrown::HashMap;
use isolde_history::TxnId;
use std::collections::VecDeque;

/// Steps the search may take. A violation hidden in a large history must not cost
/// more to show than to find.
const STEPS_MAX: usize = 3_000_000;

/// One step of a cycle.
pub(super) type Step = (TxnId, TxnId, Known);

pub(super) struct Core {
    txns: Vec<TxnId>,
    /// Per transaction, by its number in `txns`, where its steps start.
    starts: Vec<u32>,
    steps: Vec<(u32, Known)>,
}

/// A transaction and whether it is only passed by along its session, as one number.
type State = u32;

const fn state(txn: u32, passing: bool) -> State {
    2 * txn + passing as u32
}

/// A step by number: from, to, why.
type CoreStep = (u32, u32, Known);

impl Core {
    /// The steps among `stuck`, each of which another one of them must follow.
    pub(super) fn new(predecessors: &Predecessors<'_>, stuck: &[TxnId]) -> Core {
        let numbers: HashMap<TxnId, u32> =
            stuck.iter().enumerate().map(|(number, &txn)| (txn, number as u32)).collect();
        let mut edges: Vec<CoreStep> = Vec::new();
        for (number, &txn) in stuck.iter().enumerate() {
            predecessors.with_reasons(txn, |before, known| {
                if let Some(&before) = numbers.get(&before) {
                    edges.push((before, number as u32, known));
                }
            });
        }
        edges.sort_by_key(|edge| edge.0);
        let mut starts = vec![0u32; stuck.len() + 1];
        for edge in &edges {
            starts[edge.0 as usize + 1] += 1;
        }
        for txn in 0..stuck.len() {
            starts[txn + 1] += starts[txn];
        }
        let steps = edges.into_iter().map(|(_, after, known)| (after, known)).collect();
        Core { txns: stuck.to_vec(), starts, steps }
    }

    fn after(&self, txn: u32) -> &[(u32, Known)] {
        let range = self.starts[txn as usize] as usize..self.starts[txn as usize + 1] as usize;
        &self.steps[range]
    }

    /// A cycle with few steps.
    pub(super) fn short_cycle(&self) -> Vec<Step> {
        let mut best = self.any_cycle();
        let mut search = Search::new(self);
        loop {
            let starts: Vec<u32> = best.iter().map(|step| step.0).collect();
            match search.shorter(&starts, best.len()) {
                Some(found) => best = found,
                None => break,
            }
        }
        let all: Vec<u32> = (0..self.txns.len() as u32).collect();
        while let Some(found) = search.shorter(&all, best.len()) {
            best = found;
        }
        let name = |number: u32| self.txns[number as usize];
        best.into_iter().map(|(before, after, known)| (name(before), name(after), known)).collect()
    }

    /// Some cycle: every transaction has a step on, so walking on must come back.
    fn any_cycle(&self) -> Vec<CoreStep> {
        let mut place: HashMap<u32, usize> = HashMap::new();
        let mut walked: Vec<CoreStep> = Vec::new();
        let mut at = 0;
        while !place.contains_key(&at) {
            place.insert(at, walked.len());
            let &(after, known) = self.after(at).first().expect("something follows it");
            walked.push((at, after, known));
            at = after;
        }
        merged(&walked[place[&at]..])
    }
}

/// Breadth-first searches that share their memory and a budget.
struct Search<'a> {
    core: &'a Core,
    budget: usize,
    /// Which search reached a state last; the other columns count only then.
    reached: Vec<u32>,
    distance: Vec<u32>,
    came_by: Vec<(State, Known)>,
    number: u32,
    queue: VecDeque<State>,
}

impl<'a> Search<'a> {
    fn new(core: &'a Core) -> Self {
        let states = 2 * core.txns.len();
        Search {
            core,
            budget: STEPS_MAX,
            reached: vec![0; states],
            distance: vec![0; states],
            came_by: vec![(0, Known::Session); states],
            number: 0,
            queue: VecDeque::new(),
        }
    }

    /// A cycle of fewer than `length` steps through one of `starts`.
    fn shorter(&mut self, starts: &[u32], length: usize) -> Option<Vec<CoreStep>> {
        // No transaction precedes itself in one step, so two are the least.
        if length <= 2 {
            return None;
        }
        starts.iter().find_map(|&start| self.through(start, length as u32))
    }

    /// The shortest cycle through `start`, if it has fewer than `length` steps.
    fn through(&mut self, start: u32, length: u32) -> Option<Vec<CoreStep>> {
        let core = self.core;
        self.number += 1;
        self.queue.clear();
        self.arrive(state(start, false), (0, Known::Session), 0, false);
        while let Some(here) = self.queue.pop_front() {
            let (txn, passing) = (here / 2, here % 2 == 1);
            let steps = self.distance[here as usize];
            if steps + 1 >= length || self.budget == 0 {
                return None;
            }
            for &(later, known) in core.after(txn) {
                self.budget = self.budget.saturating_sub(1);
                let along = matches!(known, Known::Session);
                if passing && !along {
                    continue;
                }
                let free = passing && along;
                let there = steps + u32::from(!free);
                if later == start {
                    return Some(self.path(here, (later, known)));
                }
                if along {
                    self.arrive(state(later, true), (here, known), there, free);
                }
                self.arrive(state(later, false), (here, known), there, free);
            }
        }
        None
    }

    fn arrive(&mut self, target: State, came_by: (State, Known), steps: u32, free: bool) {
        let index = target as usize;
        if self.reached[index] == self.number && self.distance[index] <= steps {
            return;
        }
        self.reached[index] = self.number;
        self.distance[index] = steps;
        self.came_by[index] = came_by;
        if free {
            self.queue.push_front(target);
        } else {
            self.queue.push_back(target);
        }
    }

    /// The steps that led to `last`, and the one that closes the cycle.
    fn path(&self, last: State, (start, closing): (u32, Known)) -> Vec<CoreStep> {
        let mut steps = vec![(last / 2, start, closing)];
        let mut here = last;
        while here != state(start, false) {
            let (earlier, known) = self.came_by[here as usize];
            steps.push((earlier / 2, here / 2, known));
            here = earlier;
        }
        steps.reverse();
        merged(&steps)
    }
}

/// Steps along one session as one, also across the ends of the cycle.
fn merged(steps: &[CoreStep]) -> Vec<CoreStep> {
    let along = |step: &CoreStep| matches!(step.2, Known::Session);
    let turn = steps.iter().position(|step| !along(step)).unwrap_or(0);
    let mut merged: Vec<CoreStep> = Vec::with_capacity(steps.len());
    for step in steps[turn..].iter().chain(&steps[..turn]) {
        match merged.last_mut() {
            Some(last) if along(last) && along(step) => last.1 = step.1,
            _ => merged.push(*step),
        }
    }
    merged
}
