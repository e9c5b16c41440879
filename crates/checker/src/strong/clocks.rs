//! Reachability by clocks: per event and chain, how far along the chain everything
//! precedes the event.
//!
//! A row has one bound per chain: transactions of the chain whose rank is below it have
//! a commit that reaches the event. Where begin and commit are told apart, a second half
//! of the row says the same of begins. Every event is in its own row. Rows only grow, and
//! only those behind a new edge are computed again.

use super::cover::{Cover, NO_CHAIN};
use super::graph::Graph;
use super::model::{Events, Node};

/// See the module's documentation.
pub(super) struct Clocks {
    chains: usize,
    stride: usize,
    rows: Vec<u32>,
    /// Nodes whose row changed in the last update.
    changed: Vec<bool>,
    /// Per node, chains whose bound changed since they were last asked for; chains
    /// share bits.
    moved: Vec<u64>,
}

impl Clocks {
    /// Bytes that clocks of this size take.
    pub(super) fn bytes(nodes: usize, chains: usize, events: Events) -> usize {
        nodes * (4 * chains * halves(events) + 9)
    }

    /// Rows in which every event has been reached by itself only.
    pub(super) fn new(graph: &Graph, cover: &Cover) -> Clocks {
        let (nodes, chains) = (graph.node_count(), cover.chains);
        let stride = chains * halves(graph.model.events);
        let mut clocks = Clocks {
            chains,
            stride,
            rows: vec![0; nodes * stride],
            changed: vec![true; nodes],
            moved: vec![u64::MAX; nodes],
        };
        let model = graph.model;
        for node in 0..model.events_of(cover.chain.len()) {
            let txn = model.txn(node as Node);
            let chain = cover.chain[txn.index()];
            if chain == NO_CHAIN {
                continue;
            }
            let bound = cover.rank[txn.index()] + 1;
            let row = node * stride;
            if model.commit(txn) == node as Node {
                clocks.rows[row + chain as usize] = bound;
            }
            if model.events == Events::Two {
                clocks.rows[row + chains + chain as usize] = bound;
            }
        }
        clocks
    }

    /// Brings all rows up to date, in an order that every edge agrees with. `fresh`
    /// nodes have new edges to them since the last time. Returns whether it came to its
    /// end, and was not stopped.
    pub(super) fn update(
        &mut self,
        graph: &Graph,
        order: &[Node],
        fresh: &[bool],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> bool {
        const WORK_BETWEEN: usize = 1 << 20;
        let stride = self.stride;
        let mut sum: Vec<u32> = vec![0; stride];
        let mut work = 0;
        for &node in order {
            if work > WORK_BETWEEN {
                if stop() {
                    return false;
                }
                work = 0;
            }
            let place = node as usize;
            let is_fresh = fresh[place];
            if !is_fresh && !graph.before(node).any(|from| self.changed[from as usize]) {
                self.changed[place] = false;
                continue;
            }
            let row = place * stride;
            sum.copy_from_slice(&self.rows[row..row + stride]);
            for from in graph.before(node) {
                if is_fresh || self.changed[from as usize] {
                    work += stride;
                    let other = from as usize * stride;
                    let other = &self.rows[other..other + stride];
                    for (sum, &bound) in sum.iter_mut().zip(other) {
                        *sum = (*sum).max(bound);
                    }
                }
            }
            let mut moved = 0u64;
            for (chain, (old, &new)) in
                self.rows[row..row + stride].iter_mut().zip(&sum).enumerate()
            {
                moved |= u64::from(*old != new) << (chain % self.chains % 64);
                *old = new;
            }
            self.changed[place] = moved != 0;
            self.moved[place] |= moved;
        }
        true
    }

    /// Transactions of `chain` with a lower rank have a commit that reaches `node`.
    #[inline]
    pub(super) fn commits(&self, node: Node, chain: u32) -> u32 {
        self.rows[node as usize * self.stride + chain as usize]
    }

    /// Transactions of `chain` with a lower rank have a begin that reaches `node`.
    #[inline]
    pub(super) fn begins(&self, node: Node, chain: u32) -> u32 {
        // With one event the second half is the first.
        self.rows[(node as usize + 1) * self.stride - self.chains + chain as usize]
    }

    /// Chains whose bound moved since [`Clocks::forget_moves`]; chain numbers modulo 64.
    #[inline]
    pub(super) fn moved(&self, node: Node) -> u64 {
        self.moved[node as usize]
    }

    /// What moved so far has been looked at.
    pub(super) fn forget_moves(&mut self) {
        self.moved.fill(0);
    }
}

fn halves(events: Events) -> usize {
    match events {
        Events::One => 1,
        Events::Two => 2,
    }
}
