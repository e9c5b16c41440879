//! Dependencies between committed transactions, in an order that is kept up to date.
//!
//! **Method.** Every transaction has a place in a topological order. A dependency that
//! agrees with it costs nothing; one against it moves the transactions in between, or
//! finds that they form a cycle [Pearce and Kelly, JEA 2006]. Transactions come in the
//! order of their commits, with which nearly all dependencies agree.
//!
//! A transaction that nothing precedes, and that everything to come follows, is part of
//! no future cycle and is given back [Li et al., ICDE 2024, Definition 4, Theorem 5].

use super::finding::DependencyKind;
use super::slab::Slab;
use super::tables::{NONE, Txn};

/// A transaction's place in the graph.
#[derive(Clone, Copy)]
pub(super) struct Node {
    /// Its place in the order; 0 if it is not in the graph.
    order: u64,
    /// The last search that came by.
    seen_by: u64,
    in_degree: u32,
    outgoing: u32,
    incoming: u32,
    /// The edge by which the last search came.
    reached_by: u32,
}

impl Node {
    /// Not in the graph.
    pub(super) const NONE: Node = Node {
        order: 0,
        seen_by: 0,
        in_degree: 0,
        outgoing: NONE,
        incoming: NONE,
        reached_by: NONE,
    };

    /// Whether it is in the graph.
    pub(super) const fn is_in_graph(&self) -> bool {
        self.order != 0
    }

    /// Whether nothing in the graph precedes it.
    pub(super) const fn is_first(&self) -> bool {
        self.in_degree == 0
    }
}

/// A dependency.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) kind: DependencyKind,
    pub(super) item: u32,
    next_outgoing: u32,
    next_incoming: u32,
}

/// See the module's documentation.
pub(super) struct Graph {
    edges: Slab<Edge>,
    last_order: u64,
    searches: u64,
    /// Room for searches.
    stack: Vec<u32>,
    forward: Vec<u32>,
    backward: Vec<u32>,
    orders: Vec<u64>,
}

/// What became of a dependency.
pub(super) enum Added {
    /// It was known.
    Known,
    /// It is in the graph.
    New,
    /// It would close this cycle, of which it is the last, and is left out.
    Cycle(Vec<Edge>),
}

/// The newest edges of a transaction are compared with a new one.
const COMPARED_MAX: usize = 4;

impl Graph {
    pub(super) const fn new() -> Graph {
        Graph {
            edges: Slab::new(),
            last_order: 0,
            searches: 0,
            stack: Vec::new(),
            forward: Vec::new(),
            backward: Vec::new(),
            orders: Vec::new(),
        }
    }

    /// Dependencies that are kept.
    pub(super) fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// Adds a transaction at the end of the order.
    pub(super) fn add(&mut self, txns: &mut Slab<Txn>, txn: u32) {
        self.last_order += 1;
        txns[txn].node = Node { order: self.last_order, ..Node::NONE };
    }

    /// Adds a dependency between two transactions of the graph.
    pub(super) fn depend(
        &mut self,
        txns: &mut Slab<Txn>,
        (from, to): (u32, u32),
        kind: DependencyKind,
        item: u32,
    ) -> Added {
        if self.is_known(txns, (from, to), kind) {
            return Added::Known;
        }
        let new = Edge { from, to, kind, item, next_outgoing: NONE, next_incoming: NONE };
        if txns[from].node.order > txns[to].node.order {
            if self.reaches(txns, to, from) {
                return Added::Cycle(self.path(txns, to, new));
            }
            self.collect_backward(txns, from, txns[to].node.order);
            self.reorder(txns);
        }
        let (next_outgoing, next_incoming) = (txns[from].node.outgoing, txns[to].node.incoming);
        let edge = self.edges.insert(Edge { next_outgoing, next_incoming, ..new });
        txns[from].node.outgoing = edge;
        txns[to].node.incoming = edge;
        txns[to].node.in_degree += 1;
        Added::New
    }

    /// Dependencies of others on a transaction.
    pub(super) fn outgoing(&self, txn: &Txn) -> impl Iterator<Item = Edge> {
        let mut place = txn.node.outgoing;
        std::iter::from_fn(move || {
            let edge = (place != NONE).then(|| self.edges[place])?;
            place = edge.next_outgoing;
            Some(edge)
        })
    }

    /// Dependencies of a transaction on others.
    pub(super) fn incoming(&self, txn: &Txn) -> impl Iterator<Item = Edge> {
        let mut place = txn.node.incoming;
        std::iter::from_fn(move || {
            let edge = (place != NONE).then(|| self.edges[place])?;
            place = edge.next_incoming;
            Some(edge)
        })
    }

    /// Takes a first transaction out. Those that only it preceded are now first and
    /// are added to `freed`.
    pub(super) fn remove_first(&mut self, txns: &mut Slab<Txn>, txn: u32, freed: &mut Vec<u32>) {
        let mut place = txns[txn].node.outgoing;
        while place != NONE {
            let edge = self.edges[place];
            self.unlink_incoming(txns, edge.to, place);
            let node = &mut txns[edge.to].node;
            node.in_degree -= 1;
            if node.in_degree == 0 {
                freed.push(edge.to);
            }
            self.edges.give_back(place);
            place = edge.next_outgoing;
        }
        txns[txn].node = Node::NONE;
    }

    fn unlink_incoming(&mut self, txns: &mut Slab<Txn>, to: u32, edge: u32) {
        let next = self.edges[edge].next_incoming;
        let mut place = txns[to].node.incoming;
        if place == edge {
            txns[to].node.incoming = next;
            return;
        }
        while self.edges[place].next_incoming != edge {
            place = self.edges[place].next_incoming;
        }
        self.edges[place].next_incoming = next;
    }

    fn is_known(&self, txns: &Slab<Txn>, (from, to): (u32, u32), kind: DependencyKind) -> bool {
        let mut newest = self.outgoing(&txns[from]).take(COMPARED_MAX);
        newest.any(|edge| edge.to == to && edge.kind == kind)
    }

    /// Whether `goal` follows `start`; collects what does, up to the goal's place.
    fn reaches(&mut self, txns: &mut Slab<Txn>, start: u32, goal: u32) -> bool {
        self.searches += 1;
        let limit = txns[goal].node.order;
        txns[start].node.seen_by = self.searches;
        self.stack.clear();
        self.stack.push(start);
        self.forward.clear();
        self.forward.push(start);
        while let Some(txn) = self.stack.pop() {
            let mut place = txns[txn].node.outgoing;
            while place != NONE {
                let edge = self.edges[place];
                let node = &mut txns[edge.to].node;
                if node.order <= limit && node.seen_by != self.searches {
                    node.seen_by = self.searches;
                    node.reached_by = place;
                    if edge.to == goal {
                        return true;
                    }
                    self.stack.push(edge.to);
                    self.forward.push(edge.to);
                }
                place = edge.next_outgoing;
            }
        }
        false
    }

    /// The cycle that `last` closes, as found by the search before.
    fn path(&self, txns: &Slab<Txn>, start: u32, last: Edge) -> Vec<Edge> {
        let mut cycle = vec![last];
        let mut txn = last.from;
        while txn != start {
            let edge = self.edges[txns[txn].node.reached_by];
            cycle.push(edge);
            txn = edge.from;
        }
        cycle.reverse();
        cycle
    }

    /// Collects what precedes `start`, down to this place.
    fn collect_backward(&mut self, txns: &mut Slab<Txn>, start: u32, limit: u64) {
        self.searches += 1;
        txns[start].node.seen_by = self.searches;
        self.stack.clear();
        self.stack.push(start);
        self.backward.clear();
        self.backward.push(start);
        while let Some(txn) = self.stack.pop() {
            let mut place = txns[txn].node.incoming;
            while place != NONE {
                let edge = self.edges[place];
                let node = &mut txns[edge.from].node;
                if node.order >= limit && node.seen_by != self.searches {
                    node.seen_by = self.searches;
                    self.stack.push(edge.from);
                    self.backward.push(edge.from);
                }
                place = edge.next_incoming;
            }
        }
    }

    /// Puts what was collected backward before what was collected forward, in the
    /// places that both have.
    fn reorder(&mut self, txns: &mut Slab<Txn>) {
        self.backward.sort_unstable_by_key(|&txn| txns[txn].node.order);
        self.forward.sort_unstable_by_key(|&txn| txns[txn].node.order);
        self.orders.clear();
        let moved = || self.backward.iter().chain(&self.forward);
        self.orders.extend(moved().map(|&txn| txns[txn].node.order));
        self.orders.sort_unstable();
        for (&txn, &order) in moved().zip(&self.orders) {
            txns[txn].node.order = order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::online::trace::{ClientId, Interval};

    const PAIRS: usize = 5;

    fn reachable(edges: &[(u32, u32)], from: u32, to: u32) -> bool {
        let mut seen = vec![from];
        let mut place = 0;
        while place < seen.len() {
            let next = edges.iter().filter(|edge| edge.0 == seen[place]).map(|edge| edge.1);
            let new: Vec<u32> = next.filter(|txn| !seen.contains(txn)).collect();
            seen.extend(new);
            place += 1;
        }
        seen.contains(&to)
    }

    /// All sequences of five dependencies between four transactions, sampled evenly.
    #[test]
    fn a_cycle_is_found_exactly_when_there_is_one() {
        let pairs: Vec<(u32, u32)> = (0..4)
            .flat_map(|from| (0..4).filter(move |&to| to != from).map(move |to| (from, to)))
            .collect();
        for number in (0..pairs.len().pow(PAIRS as u32)).step_by(7) {
            let mut graph = Graph::new();
            let mut txns = Slab::new();
            for client in 0..4 {
                let txn = txns.insert(Txn::new(ClientId(client), 0, Interval::UNKNOWN));
                graph.add(&mut txns, txn);
            }
            let mut known = Vec::new();
            let mut rest = number;
            for _ in 0..PAIRS {
                let (from, to) = pairs[rest % pairs.len()];
                rest /= pairs.len();
                let closes = reachable(&known, to, from);
                match graph.depend(&mut txns, (from, to), DependencyKind::WriteRead, 0) {
                    Added::Cycle(cycle) => {
                        assert!(closes);
                        let joined = cycle.iter().zip(cycle.iter().cycle().skip(1));
                        assert!(joined.clone().all(|(one, next)| one.to == next.from));
                    }
                    Added::New | Added::Known => {
                        assert!(!closes, "{known:?} {from} {to}");
                        known.push((from, to));
                    }
                }
                for &(from, to) in &known {
                    assert!(txns[from].node.order < txns[to].node.order);
                }
            }
        }
    }
}
