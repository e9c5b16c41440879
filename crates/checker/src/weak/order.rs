//! One commit order from known and forced orders, or a short cycle among them.
//!
//! Predecessors are all this needs, and those of session order and reads-from are
//! read off the history, so that only forced orders are stored. Where sessions are
//! part of the order, each is walked as far as the others allow. Otherwise, and to
//! find what is stuck, transactions are taken from the end: one that nothing must
//! follow comes last.

use super::core::Core;
use super::walk::Walk;
use super::{Facts, Forced, Rule, overwritten};
use crate::evidence::{Cycle, Edge};
use isolde_history::{Origin, TxnId, VersionStep};

/// An order of all counted transactions, or a cycle.
pub(super) fn commit_order(
    rule: &Rule,
    facts: &Facts<'_>,
    mut forced: Vec<Forced>,
) -> Result<Vec<TxnId>, Cycle> {
    forced.sort_unstable_by_key(|forced| (forced.after, forced.before, forced.read));
    forced.dedup_by_key(|forced| (forced.after, forced.before));
    let predecessors = Predecessors::new(rule, facts, forced);
    if rule.session_order
        && let Some(order) = Walk::new(facts, &predecessors).finish()
    {
        return Ok(order);
    }
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
    let steps = Core::new(&predecessors, &stuck).short_cycle();
    let edge = |(before, after, known)| explain(rule, facts, before, after, known);
    Err(Cycle { edges: steps.into_iter().map(edge).collect() })
}

/// The orders a rule knows, by their later end.
pub(super) struct Predecessors<'a> {
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
    pub(super) fn of(&self, txn: TxnId, mut visit: impl FnMut(TxnId)) {
        self.with_reasons(txn, |before, _| visit(before));
    }

    #[inline]
    pub(super) fn with_reasons(&self, txn: TxnId, mut visit: impl FnMut(TxnId, Known)) {
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
pub(super) enum Known {
    Session,
    ReadsFrom,
    Version(VersionStep),
    Forced(Forced),
}

fn explain(rule: &Rule, facts: &Facts<'_>, before: TxnId, after: TxnId, known: Known) -> Edge {
    match known {
        Known::Session => Edge::session(before, after),
        Known::ReadsFrom => facts.reads_from(after, before).expect("this read gave the order"),
        Known::Version(step) => Edge::version(&step),
        Known::Forced(forced) => overwritten(rule, facts, forced),
    }
}
