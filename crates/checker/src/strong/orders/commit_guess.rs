//! A guess at a commit order: what must hold holds in it, and most of what is likely.
//!
//! Nodes are taken from the end, as in [`Graph::sorted`]. Where likely edges form a
//! cycle, the node that breaks the fewest of them is taken.

use crate::strong::graph::Graph;
use crate::strong::model::Node;
use crate::strong::sources::Sources;
use isolde_history::{History, TxnId};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Edges that every order contains, and edges that orders contain if they can. The
/// latter may have more nodes.
pub(in crate::strong) struct Guess<'a> {
    pub(in crate::strong) certain: &'a Graph,
    pub(in crate::strong) likely: &'a Graph,
    pub(in crate::strong) history: &'a History,
    pub(in crate::strong) sources: Sources,
}

impl Guess<'_> {
    /// The nodes that both graphs have in such an order, or those that lie on or
    /// between cycles of what is certain.
    pub(in crate::strong) fn sorted(&self) -> Result<Vec<Node>, Vec<Node>> {
        let nodes = self.certain.node_count();
        let mut frontier = Frontier {
            certain: self.certain.followers(),
            likely: self.likely.followers(),
            taken: vec![false; self.likely.node_count()],
            ready: BinaryHeap::new(),
            waiting: BTreeSet::new(),
            timed: self.is_timed(),
            came: 0,
        };
        frontier.certain.resize(self.likely.node_count(), 0);
        for node in 0..self.likely.node_count() as Node {
            frontier.wait(node, self.rank(node));
        }
        let mut order = Vec::with_capacity(nodes);
        while let Some(node) = frontier.next() {
            if (node as usize) < nodes {
                order.push(node);
                for from in self.certain.before(node) {
                    frontier.certain[from as usize] -= 1;
                    frontier.wait(from, self.rank(from));
                }
            }
            for from in self.likely.before(node) {
                // Who was taken already has left this edge broken.
                if frontier.taken[from as usize] {
                    continue;
                }
                frontier.waiting.remove(&frontier.place(from, self.rank(from)));
                frontier.likely[from as usize] -= 1;
                frontier.wait(from, self.rank(from));
            }
        }
        if order.len() < nodes {
            let stuck = (0..nodes as Node).filter(|&node| frontier.certain[node as usize] > 0);
            return Err(stuck.collect());
        }
        order.reverse();
        Ok(order)
    }

    /// Nodes of a higher rank come later: by time, else by their place in the session.
    fn rank(&self, node: Node) -> i64 {
        if node as usize >= self.certain.node_count() {
            return i64::MAX;
        }
        let txn = TxnId(node);
        if self.is_timed() {
            return self.history.txn_times(txn).commit.completed;
        }
        if !self.sources.session {
            return 0;
        }
        let session = self.history.session_range(self.history.session_of(txn));
        i64::from(node - session.start)
    }

    fn is_timed(&self) -> bool {
        self.sources.real_time && self.history.has_times()
    }
}

struct Frontier {
    /// Per node, edges to nodes that were not taken yet.
    certain: Vec<u32>,
    likely: Vec<u32>,
    taken: Vec<bool>,
    /// Nodes that nothing follows.
    ready: BinaryHeap<(i64, Node)>,
    /// Nodes that something likely follows, and nothing certain: how much, the rank, and
    /// the node.
    waiting: BTreeSet<(u32, Reverse<i64>, Node)>,
    timed: bool,
    /// How many became ready.
    came: i64,
}

impl Frontier {
    fn place(&self, node: Node, rank: i64) -> (u32, Reverse<i64>, Node) {
        (self.likely[node as usize], Reverse(rank), node)
    }

    fn wait(&mut self, node: Node, rank: i64) {
        if self.certain[node as usize] > 0 {
            return;
        }
        if self.likely[node as usize] > 0 {
            self.waiting.insert(self.place(node, rank));
            return;
        }
        self.came += 1;
        // Without times, first come first served: sessions advance evenly.
        self.ready.push((if self.timed { rank } else { -self.came }, node));
    }

    fn next(&mut self) -> Option<Node> {
        let waiting =
            |frontier: &mut Frontier| frontier.waiting.pop_first().map(|(_, _, node)| node);
        let node = self.ready.pop().map(|(_, node)| node).or_else(|| waiting(self))?;
        self.taken[node as usize] = true;
        Some(node)
    }
}
