//! Saturation: everything that follows from known edges by four rules.
//!
//! V and W write a key, R reads it from W [Cobra; `PolySI`; as tried for Isolde]:
//!
//! | rule | if | then |
//! |---|---|---|
//! | initial | R reads the initial version | R before V (a known edge) |
//! | pair | V begins before W commits | V before W, where writers may not overlap |
//! | visible | V commits before R begins | V before W, or R would have seen it |
//! | anti | W comes before V | R before V, or R would have seen it |
//!
//! Along a chain only the last such V or the first such R says anything new, so each
//! rule is one search per read or write and chain. Only reads and writes whose clock
//! moved are looked at again. A cycle means that the level is violated; a fixpoint
//! without one leaves few orders open.

use super::clocks::Clocks;
use super::cover::Cover;
use super::graph::{Derived, Graph};
use super::model::{Events, Model, Node, Writers};
use super::runs::{Runs, Writer, last_below};
use super::versions::{NO_SLOT, Slot, Versions};
use crate::limits::Limits;
use isolde_certificate::Rule;
use isolde_history::{ExternalRead, KeyId, ReadId, TxnId};
use rayon::prelude::*;

/// What came of saturating.
pub(super) enum Saturated {
    /// Nothing more follows; an order that every edge agrees with.
    Fixpoint(Vec<Node>),
    /// These nodes lie on or between cycles.
    Cyclic(Vec<Node>),
    /// The caller wanted an end.
    Stopped,
}

/// What the rules look at.
pub(super) struct Saturation<'a> {
    pub(super) versions: &'a Versions<'a>,
    pub(super) cover: &'a Cover,
    pub(super) runs: &'a Runs,
    pub(super) clocks: Clocks,
    pub(super) rounds: usize,
}

impl Saturation<'_> {
    /// Applies the rules until nothing changes; if there is a `focus`, only to what these
    /// transactions read and wrote.
    pub(super) fn run(
        &mut self,
        graph: &mut Graph,
        mut order: Vec<Node>,
        focus: Option<&[TxnId]>,
        limits: &Limits<'_>,
    ) -> Saturated {
        let mut fresh = vec![true; graph.node_count()];
        let mut position = positions(&order);
        loop {
            if limits.is_over() {
                return Saturated::Stopped;
            }
            self.rounds += 1;
            limits.spend((graph.node_count() + graph.edge_count()) as u64 / 8);
            let within = match focus {
                Some(focus) => between(graph.model, focus, &order, &position),
                None => &order,
            };
            if !self.clocks.update(graph, within, &fresh, limits.stop) {
                return Saturated::Stopped;
            }
            let found = self.derive(graph, focus, limits);
            self.clocks.forget_moves();
            if limits.is_over() {
                return Saturated::Stopped;
            }
            if found.is_empty() {
                return Saturated::Fixpoint(order);
            }
            // What was not looked at may come between these transactions later.
            fresh.fill(focus.is_some());
            for &node in within {
                fresh[node as usize] = false;
            }
            // Where the order disagrees with what was found.
            let mut wrong: Option<(u32, u32)> = None;
            for &derived in &found {
                graph.derive(derived);
                fresh[derived.to as usize] = true;
                let [from, to] = [derived.from, derived.to].map(|node| position[node as usize]);
                if to <= from {
                    let (first, last) = wrong.unwrap_or((to, from));
                    wrong = Some((first.min(to), last.max(from)));
                }
            }
            let Some((first, last)) = wrong else { continue };
            if focus.is_some() {
                let part = &mut order[first as usize..=last as usize];
                if let Err(stuck) = graph.sort_part(part, first as usize, &mut position) {
                    return Saturated::Cyclic(stuck);
                }
            } else {
                // What is open is searched from this order, so it is made as a whole.
                match graph.sorted() {
                    Ok(sorted) => order = sorted,
                    Err(stuck) => return Saturated::Cyclic(stuck),
                }
                position = positions(&order);
            }
        }
    }

    /// How many pairs of versions of open keys have a known order by now.
    pub(super) fn decided_pairs(&self, graph: &Graph) -> u64 {
        let mut decided = 0;
        self.for_each_run_before(graph, |_, before| decided += before.len() as u64);
        decided
    }

    /// Visits the pairs of versions of open keys whose order is known by now.
    pub(super) fn for_each_decided(&self, graph: &Graph, mut visit: impl FnMut(Slot, Slot)) {
        self.for_each_run_before(graph, |slot, before| {
            for writer in before {
                visit(writer.slot, slot);
            }
        });
    }

    /// Visits each version of an open key with those of each chain that precede it.
    fn for_each_run_before(&self, graph: &Graph, mut visit: impl FnMut(Slot, &[Writer])) {
        let model = graph.model;
        for key in self.versions.open_keys() {
            for slot in self.versions.slots_of(key) {
                let txn = self.versions.writer(slot);
                let commit = model.commit(txn);
                for (chain, run) in self.runs.of(key) {
                    let bound = match model.writers {
                        Writers::Apart => self.clocks.begins(commit, chain),
                        Writers::Overlap => self.clocks.commits(commit, chain),
                    };
                    let bound = self.without_self(bound, chain, txn);
                    visit(slot, &run[..run.partition_point(|writer| writer.rank < bound)]);
                }
            }
        }
    }

    /// One round, with each edge once.
    fn derive(&self, graph: &Graph, focus: Option<&[TxnId]>, limits: &Limits<'_>) -> Vec<Derived> {
        let mut found = Vec::new();
        match focus {
            None => found = self.derive_all(graph, limits),
            Some(focus) => focus.iter().for_each(|&txn| self.derive_for(graph, txn, &mut found)),
        }
        found.sort_unstable_by_key(Derived::rank);
        found.dedup_by_key(|derived| (derived.from, derived.to));
        found
    }

    /// The same for all transactions: each for itself, so that they can be shared out.
    fn derive_all(&self, graph: &Graph, limits: &Limits<'_>) -> Vec<Derived> {
        const TXNS_PER_TASK: usize = 1 << 10;
        let txns = self.versions.history.txn_count();
        let task = |task: usize| {
            let mut found = Vec::new();
            if limits.is_over() {
                return found;
            }
            for txn in task * TXNS_PER_TASK..((task + 1) * TXNS_PER_TASK).min(txns) {
                self.derive_for(graph, TxnId(txn as u32), &mut found);
            }
            found
        };
        let tasks = txns.div_ceil(TXNS_PER_TASK);
        let parts: Vec<Vec<Derived>> = (0..tasks).into_par_iter().map(task).collect();
        parts.concat()
    }

    fn derive_for(&self, graph: &Graph, txn: TxnId, found: &mut Vec<Derived>) {
        let (model, index) = (graph.model, self.versions.index);
        let (begin, commit) = (model.begin(txn), model.commit(txn));
        let moved = self.clocks.moved(begin);
        if moved != 0 {
            for read in index.read_range(txn) {
                let seen = self.versions.seen[read as usize];
                if seen < NO_SLOT {
                    self.visible(graph, ReadId(read), txn, moved, found);
                }
            }
        }
        let moved = self.clocks.moved(commit);
        if moved != 0 && index.is_counted(txn) {
            for &key in index.written_by(txn) {
                if self.runs.is_open(key) {
                    self.pair_and_anti(graph, (txn, key), moved, found);
                }
            }
        }
    }

    /// Writers of the key that commit before the reader begins.
    fn visible(
        &self,
        graph: &Graph,
        read: ReadId,
        reader: TxnId,
        moved: u64,
        found: &mut Vec<Derived>,
    ) {
        let model = graph.model;
        let seen = self.versions.seen[read.0 as usize];
        if seen >= super::versions::INITIAL_SLOT {
            return;
        }
        let ExternalRead { op, key, .. } = self.versions.index.read(read);
        if !self.runs.is_open(key) {
            return;
        }
        let begin = model.begin(reader);
        let to = model.next_writer(self.versions.writer(seen));
        for (chain, run) in self.runs.of(key) {
            if moved & (1 << (chain % 64)) == 0 {
                continue;
            }
            let bound = self.without_self(self.clocks.commits(begin, chain), chain, reader);
            let Some((_, other)) = last_below(run, bound) else { continue };
            if other.slot != seen && self.clocks.commits(to, chain) <= other.rank {
                let from = model.commit(self.versions.writer(other.slot));
                let rule = Rule::Visible { read: op, key, path: (from, begin) };
                found.push(Derived { from, to, rule });
            }
        }
    }

    /// Writers of the key that must come before this one, and who read from them.
    fn pair_and_anti(
        &self,
        graph: &Graph,
        (txn, key): (TxnId, KeyId),
        moved: u64,
        found: &mut Vec<Derived>,
    ) {
        let model = graph.model;
        let commit = model.commit(txn);
        let apart = model.writers == Writers::Apart && model.events == Events::Two;
        for (chain, run) in self.runs.of(key) {
            if moved & (1 << (chain % 64)) == 0 {
                continue;
            }
            let bound = match model.writers {
                Writers::Apart => self.clocks.begins(commit, chain),
                Writers::Overlap => self.clocks.commits(commit, chain),
            };
            let bound = self.without_self(bound, chain, txn);
            let Some((_, before)) = last_below(run, bound) else { continue };
            let begin = model.begin(txn);
            if apart && self.clocks.commits(begin, chain) <= before.rank {
                let other = self.versions.writer(before.slot);
                let from = model.commit(other);
                let rule = Rule::Pair { key, path: (model.begin(other), commit) };
                found.push(Derived { from, to: begin, rule });
            }
            self.anti(graph, before.slot, (txn, key), found);
        }
    }

    fn anti(
        &self,
        graph: &Graph,
        before: Slot,
        (txn, key): (TxnId, KeyId),
        found: &mut Vec<Derived>,
    ) {
        let model = graph.model;
        let commit = model.commit(txn);
        let writer = self.versions.writer(before);
        let start = match model.writers {
            Writers::Apart => model.begin(writer),
            Writers::Overlap => model.commit(writer),
        };
        let reads = self.versions.reads_of(before);
        for (place, &read) in reads.iter().enumerate() {
            let reader = self.versions.reader(read);
            let chain = self.cover.chain[reader.index()];
            // Of one chain's readers the last one speaks for all.
            let is_last = reads.get(place + 1).is_none_or(|next| {
                let next = self.versions.reader(*next);
                let rank = |txn: TxnId| self.cover.rank[txn.index()];
                self.cover.chain[next.index()] != chain || next == txn || rank(next) <= rank(reader)
            });
            let covered = self.cover.covers(reader);
            if reader == txn || !is_last && covered {
                continue;
            }
            let known = if covered {
                self.clocks.begins(commit, chain) > self.cover.rank[reader.index()]
            } else {
                graph.before(commit).any(|from| from == model.begin(reader))
            };
            if !known {
                let read = self.versions.index.read(read).op;
                let rule = Rule::AntiDependency { read, key, path: (start, commit) };
                found.push(Derived { from: model.begin(reader), to: commit, rule });
            }
        }
    }

    /// A bound of a transaction's own chain without the transaction itself.
    #[inline]
    fn without_self(&self, bound: u32, chain: u32, txn: TxnId) -> u32 {
        if self.cover.chain[txn.index()] == chain {
            bound.min(self.cover.rank[txn.index()])
        } else {
            bound
        }
    }
}

/// The part of an order from the first to the last event of some transactions: no path
/// between them leaves it.
fn between<'a>(model: &Model, txns: &[TxnId], order: &'a [Node], position: &[u32]) -> &'a [Node] {
    let places = txns.iter().flat_map(|&txn| [model.begin(txn), model.commit(txn)]);
    let places = places.map(|node| position[node as usize] as usize);
    let first = places.clone().min().unwrap_or(0);
    let last = places.max().map_or(0, |last| last + 1);
    &order[first..last]
}

/// Where each node stands in an order.
pub(super) fn positions(order: &[Node]) -> Vec<u32> {
    let mut positions = vec![0; order.len()];
    for (place, &node) in order.iter().enumerate() {
        positions[node as usize] = place as u32;
    }
    positions
}
