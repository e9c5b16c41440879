//! One commit order from known and forced orders, or a short cycle among them.
//!
//! Transactions are taken from the end: one that nothing must follow comes last.
//! Predecessors are all this needs, and those of session order and reads-from are
//! read off the history, so that only forced orders are stored.

use super::{Facts, Forced, Rule, overwritten};
use crate::verdict::{Cycle, Edge, Reason};
use hashbrown::HashMap;
use isolde_history::{Origin, TxnId, VersionStep};
use std::collections::VecDeque;

/// An order of all counted transactions, or a cycle.
pub(super) fn commit_order(
    rule: &Rule,
    facts: &Facts<'_>,
    mut forced: Vec<Forced>,
) -> Result<Vec<TxnId>, Cycle> {
    forced.sort_unstable_by_key(|forced| (forced.after, forced.before, forced.read));
    forced.dedup_by_key(|forced| (forced.after, forced.before));
    let predecessors = Predecessors::new(rule, facts, forced);
    let mut followers = vec![0u32; facts.history.txn_count()];
    for txn in facts.history.txns() {
        predecessors.of(txn, |before| followers[before.index()] += 1);
    }
    let free = |txn: &TxnId| followers[txn.index()] == 0 && facts.index.is_counted(*txn);
    let mut order: Vec<TxnId> = facts.history.txns().filter(free).collect();
    order.reserve_exact(facts.history.txn_count() - order.len());
    let mut next = 0;
    while next < order.len() {
        let txn = order[next];
        next += 1;
        predecessors.of(txn, |before| {
            followers[before.index()] -= 1;
            if followers[before.index()] == 0 {
                order.push(before);
            }
        });
    }
    if order.len() == facts.index.counted_txns() {
        order.reverse();
        return Ok(order);
    }
    let stuck: Vec<TxnId> = facts.history.txns().filter(|txn| followers[txn.index()] > 0).collect();
    Err(shortest_cycle(rule, facts, &predecessors, &stuck))
}

/// The orders a rule knows, by their later end.
struct Predecessors<'a> {
    rule: &'a Rule,
    facts: &'a Facts<'a>,
    /// Sorted by their later end; `forced_starts` says where each begins.
    forced: Vec<Forced>,
    forced_starts: Vec<u32>,
    steps: Vec<VersionStep>,
    step_starts: Vec<u32>,
    /// Each transaction's predecessor in its session, itself if it has none.
    session: Vec<TxnId>,
}

impl<'a> Predecessors<'a> {
    fn new(rule: &'a Rule, facts: &'a Facts<'a>, forced: Vec<Forced>) -> Self {
        let txns = facts.history.txn_count();
        let mut steps = facts.index.steps().to_vec();
        steps.sort_unstable_by_key(|step| step.after);
        let forced_starts = starts(txns, forced.iter().map(|forced| forced.after));
        let step_starts = starts(txns, steps.iter().map(|step| step.after));
        let mut session = Vec::new();
        if rule.session_order {
            session.reserve_exact(txns);
            for id in facts.history.sessions() {
                let mut last = None;
                for txn in facts.history.txns_of(id) {
                    session.push(last.unwrap_or(txn));
                    if facts.index.is_counted(txn) {
                        last = Some(txn);
                    }
                }
            }
        }
        Predecessors { rule, facts, forced, forced_starts, steps, step_starts, session }
    }

    /// Calls `visit` with every predecessor of a counted transaction; one may come
    /// more than once.
    #[inline]
    fn of(&self, txn: TxnId, mut visit: impl FnMut(TxnId)) {
        self.with_reasons(txn, |before, _| visit(before));
    }

    #[inline]
    fn with_reasons(&self, txn: TxnId, mut visit: impl FnMut(TxnId, Known)) {
        if !self.facts.index.is_counted(txn) {
            return;
        }
        if self.rule.session_order && self.session[txn.index()] != txn {
            visit(self.session[txn.index()], Known::Session);
        }
        if self.rule.reads_from {
            for read in self.facts.index.reads_of(txn) {
                if let Origin::Txn(writer) = read.origin {
                    visit(writer, Known::ReadsFrom);
                }
            }
        }
        for step in slice(&self.steps, &self.step_starts, txn) {
            visit(step.before, Known::Version(*step));
        }
        for forced in slice(&self.forced, &self.forced_starts, txn) {
            visit(forced.before, Known::Forced(*forced));
        }
    }
}

/// Where the items of each transaction start, given all of them in order.
fn starts(txns: usize, later_ends: impl Iterator<Item = TxnId>) -> Vec<u32> {
    let mut starts = vec![0u32; txns + 1];
    for txn in later_ends {
        starts[txn.index() + 1] += 1;
    }
    for txn in 0..txns {
        starts[txn + 1] += starts[txn];
    }
    starts
}

#[inline]
fn slice<'a, T>(items: &'a [T], starts: &[u32], txn: TxnId) -> &'a [T] {
    &items[starts[txn.index()] as usize..starts[txn.index() + 1] as usize]
}

/// A known order in short; [`explain`] makes an [`Edge`] of it.
#[derive(Clone, Copy)]
enum Known {
    Session,
    ReadsFrom,
    Version(VersionStep),
    Forced(Forced),
}

fn explain(rule: &Rule, facts: &Facts<'_>, before: TxnId, after: TxnId, known: Known) -> Edge {
    match known {
        Known::Session => Edge { before, after, reason: Reason::Session },
        Known::ReadsFrom => facts.reads_from(after, before).expect("this read gave the order"),
        Known::Version(step) => Edge { before, after, reason: Reason::Version(step) },
        Known::Forced(forced) => overwritten(rule, facts, forced),
    }
}

/// The part of the order that has cycles, small enough to search.
struct Core {
    txns: Vec<TxnId>,
    /// Per transaction of the core: `(later, why)`.
    after: Vec<Vec<(u32, Known)>>,
}

/// A cycle with few steps; several steps along a session count as one. The search
/// tries every start until its budget is spent, so on large cores the cycle is
/// short but perhaps not the shortest.
fn shortest_cycle(
    rule: &Rule,
    facts: &Facts<'_>,
    predecessors: &Predecessors<'_>,
    stuck: &[TxnId],
) -> Cycle {
    const STEPS_MAX: usize = 20_000_000;
    let core = Core::new(predecessors, stuck);
    let mut best: Option<Vec<(u32, u32, Known)>> = None;
    let mut budget = STEPS_MAX;
    for start in 0..core.txns.len() as u32 {
        let longest = best.as_ref().map_or(u32::MAX, |best| best.len() as u32);
        if longest <= 2 || budget == 0 && best.is_some() {
            break;
        }
        if let Some(found) = core.cycle_through(start, longest, &mut budget) {
            best = Some(found);
        }
    }
    let steps = best.expect("every transaction of the core lies on a cycle or between two");
    let edges = steps
        .into_iter()
        .map(|(before, after, known)| {
            let (before, after) = (core.txns[before as usize], core.txns[after as usize]);
            explain(rule, facts, before, after, known)
        })
        .collect();
    Cycle { edges }
}

/// A transaction of the core, and whether it is only passed by along its session.
type State = (u32, bool);
/// From where each state was reached first.
type CameBy = HashMap<State, (State, Known)>;

impl Core {
    /// The transactions that also something must precede, over and over: what is
    /// left lies on cycles or between them.
    fn new(predecessors: &Predecessors<'_>, stuck: &[TxnId]) -> Core {
        let numbers: HashMap<TxnId, u32> =
            stuck.iter().enumerate().map(|(number, &txn)| (txn, number as u32)).collect();
        let mut after: Vec<Vec<(u32, Known)>> = vec![Vec::new(); stuck.len()];
        let mut waiting = vec![0u32; stuck.len()];
        for (number, &txn) in stuck.iter().enumerate() {
            predecessors.with_reasons(txn, |before, known| {
                if let Some(&before) = numbers.get(&before) {
                    after[before as usize].push((number as u32, known));
                    waiting[number] += 1;
                }
            });
        }
        let mut ready: Vec<u32> =
            (0..stuck.len() as u32).filter(|&txn| waiting[txn as usize] == 0).collect();
        while let Some(txn) = ready.pop() {
            for (later, _) in std::mem::take(&mut after[txn as usize]) {
                waiting[later as usize] -= 1;
                if waiting[later as usize] == 0 {
                    ready.push(later);
                }
            }
        }
        Core { txns: stuck.to_vec(), after }
    }

    /// The shortest cycle through `start` with fewer than `longest` steps, breadth
    /// first. Going on along a session is free after its first step: each
    /// transaction has a second state, "passing by on the session".
    fn cycle_through(
        &self,
        start: u32,
        longest: u32,
        budget: &mut usize,
    ) -> Option<Vec<(u32, u32, Known)>> {
        let mut cameby: CameBy = HashMap::new();
        let mut distance: HashMap<State, u32> = HashMap::from([((start, false), 0)]);
        let mut queue: VecDeque<State> = VecDeque::from([(start, false)]);
        while let Some(state) = queue.pop_front() {
            let (txn, passing) = state;
            let here = distance[&state];
            if here + 1 >= longest || *budget == 0 {
                break;
            }
            for &(later, known) in &self.after[txn as usize] {
                *budget = budget.saturating_sub(1);
                let on_session = matches!(known, Known::Session);
                let steps = here + u32::from(!(passing && on_session));
                let mut arrive = |target: State| {
                    if distance.get(&target).is_none_or(|&known| steps < known) {
                        distance.insert(target, steps);
                        cameby.insert(target, (state, known));
                        if steps == here {
                            queue.push_front(target);
                        } else {
                            queue.push_back(target);
                        }
                    }
                };
                if on_session {
                    arrive((later, true));
                }
                if !passing || on_session {
                    if later == start {
                        return Some(path(&cameby, state, (later, known)));
                    }
                    arrive((later, false));
                }
            }
        }
        None
    }
}

/// The steps that led to `last`, then the one that closes the cycle; steps along a
/// session become one.
fn path(cameby: &CameBy, last: State, (start, closing): (u32, Known)) -> Vec<(u32, u32, Known)> {
    let mut steps = vec![(last.0, start, closing)];
    let mut state = last;
    while let Some(&(earlier, known)) = cameby.get(&state) {
        steps.push((earlier.0, state.0, known));
        state = earlier;
    }
    steps.reverse();
    let mut merged: Vec<(u32, u32, Known)> = Vec::with_capacity(steps.len());
    for step in steps {
        match merged.last_mut() {
            Some(previous) if matches!((previous.2, step.2), (Known::Session, Known::Session)) => {
                previous.1 = step.1;
            }
            _ => merged.push(step),
        }
    }
    merged
}
