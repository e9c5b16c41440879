//! The graph of events: known edges in columns, derived ones beside them.
//!
//! Edges are kept by their later end, which is all that sorting, clocks and
//! explanations need. Known edges come from the sources of order and never change;
//! edges that saturation derives are added in the order they were found, so that the
//! premises of each are among the edges before it.

use super::model::{Events, Model, Node};
use super::versions::Slot;
use isolde_certificate::Rule;
use isolde_history::{ReadId, TxnId, prefetch};

/// Where an edge comes from, in 32 bits: a kind and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Evidence(u32);

/// An [`Evidence`], unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Why {
    /// A transaction begins before it commits.
    Begins,
    /// The same session ran one after the other.
    Session,
    /// The later transaction read from the earlier one.
    ReadsFrom(ReadId),
    /// The read saw a version that the later transaction is known to replace.
    Replaced(ReadId),
    /// A step of a version order, as its place in `Index::steps`.
    Step(u32),
    /// The read saw the initial version of a key; from its transaction to the point
    /// where the key's first version is installed, or to the transaction that does it.
    InitialRead(ReadId),
    /// From the point where a key's first version is installed to this version.
    FirstVersion(Slot),
    /// The earlier event completed before the later one was invoked, perhaps through a
    /// point in time.
    RealTime,
    /// Derived: the place in [`Graph::derived`].
    Derived(u32),
    /// A dependency of a read by condition, as its place in `Conditions::edges`.
    Condition(u32),
}

const NUMBER_BITS: u32 = 28;

impl Evidence {
    pub(super) fn new(why: Why) -> Evidence {
        let (kind, number) = match why {
            Why::Begins => (0, 0),
            Why::Session => (1, 0),
            Why::ReadsFrom(read) => (2, read.0),
            Why::Replaced(read) => (3, read.0),
            Why::Step(step) => (4, step),
            Why::InitialRead(read) => (5, read.0),
            Why::FirstVersion(slot) => (6, slot),
            Why::RealTime => (7, 0),
            Why::Derived(place) => (8, place),
            Why::Condition(place) => (9, place),
        };
        assert!(number < 1 << NUMBER_BITS, "at most 2^28 reads and versions");
        Evidence(kind << NUMBER_BITS | number)
    }

    pub(super) fn why(self) -> Why {
        let number = self.0 & ((1 << NUMBER_BITS) - 1);
        match self.0 >> NUMBER_BITS {
            0 => Why::Begins,
            1 => Why::Session,
            2 => Why::ReadsFrom(ReadId(number)),
            3 => Why::Replaced(ReadId(number)),
            4 => Why::Step(number),
            5 => Why::InitialRead(ReadId(number)),
            6 => Why::FirstVersion(number),
            7 => Why::RealTime,
            8 => Why::Derived(number),
            _ => Why::Condition(number),
        }
    }
}

/// An edge that follows from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Derived {
    pub(super) from: Node,
    pub(super) to: Node,
    /// The rule, and the ends of the path of earlier edges that it follows from.
    pub(super) rule: Rule<(Node, Node)>,
}

impl Derived {
    /// What order derived edges have; of those between the same events the first is taken.
    pub(super) fn rank(&self) -> impl Ord + use<> {
        let by_preference = match self.rule {
            Rule::Visible { .. } => 0,
            Rule::Pair { .. } => 1,
            _ => 2,
        };
        (self.from, self.to, by_preference, self.rule.read(), self.rule.key())
    }
}

/// See the module's documentation.
pub(super) struct Graph {
    pub(super) model: &'static Model,
    txns: usize,
    nodes: usize,
    /// Invariant: `nodes + 1` ascending offsets into `froms` and `evidence`.
    starts: Vec<u32>,
    froms: Vec<Node>,
    /// Per node, how many edges start there.
    followers: Vec<u32>,
    /// Empty until something has to be explained.
    evidence: Vec<Evidence>,
    pub(super) derived: Vec<Derived>,
    /// Per node, its newest derived edge plus one; `older` leads on.
    newest: Vec<u32>,
    older: Vec<u32>,
}

/// Something that knows edges.
pub(super) trait Edges {
    /// Calls `emit` with every edge; every call does so in the same order.
    fn each(&self, emit: &mut impl FnMut(Node, Node, Why));
}

impl<T: Edges> Edges for [T] {
    fn each(&self, emit: &mut impl FnMut(Node, Node, Why)) {
        for source in self {
            source.each(emit);
        }
    }
}

impl<A: Edges, B: Edges> Edges for (&A, &B) {
    fn each(&self, emit: &mut impl FnMut(Node, Node, Why)) {
        self.0.each(emit);
        self.1.each(emit);
    }
}

/// A transaction begins before it commits, where these are two events.
struct Begins {
    model: &'static Model,
    txns: u32,
}

impl Edges for Begins {
    fn each(&self, emit: &mut impl FnMut(Node, Node, Why)) {
        if self.model.events == Events::Two {
            for txn in (0..self.txns).map(TxnId) {
                emit(self.model.begin(txn), self.model.commit(txn), Why::Begins);
            }
        }
    }
}

impl Graph {
    /// A graph of these known edges, without their evidence.
    pub(super) fn new(
        model: &'static Model,
        txns: usize,
        nodes: usize,
        sources: &impl Edges,
    ) -> Graph {
        let begins = Begins { model, txns: txns as u32 };
        let sources = (sources, &begins);
        let mut starts = vec![0u32; nodes + 1];
        let mut followers = vec![0u32; nodes];
        sources.each(&mut |from, to, _| {
            starts[to as usize + 1] += 1;
            followers[from as usize] += 1;
        });
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let edges = starts[nodes] as usize;
        let mut froms = vec![0; edges];
        // Filled from the end of each node's range backwards.
        sources.each(&mut |from, to, _| {
            let place = &mut starts[to as usize + 1];
            *place -= 1;
            froms[*place as usize] = from;
        });
        // Each end has become its range's start.
        starts.remove(0);
        starts.push(edges as u32);
        Graph {
            model,
            txns,
            nodes,
            starts,
            froms,
            followers,
            evidence: Vec::new(),
            derived: Vec::new(),
            newest: Vec::new(),
            older: Vec::new(),
        }
    }

    /// Adds where the edges come from, given the same sources: only what is explained
    /// needs it.
    pub(super) fn note_evidence(&mut self, sources: &impl Edges) {
        if self.evidence.len() == self.froms.len() {
            return;
        }
        let begins = Begins { model: self.model, txns: self.txns as u32 };
        let mut evidence = vec![Evidence(0); self.froms.len()];
        let mut ends = self.starts[1..].to_vec();
        (sources, &begins).each(&mut |_, to, why| {
            let place = &mut ends[to as usize];
            *place -= 1;
            evidence[*place as usize] = Evidence::new(why);
        });
        self.evidence = evidence;
    }

    pub(super) fn node_count(&self) -> usize {
        self.nodes
    }

    pub(super) fn edge_count(&self) -> usize {
        self.froms.len() + self.derived.len()
    }

    /// The earlier ends of the edges to a node.
    #[inline]
    pub(super) fn before(&self, node: Node) -> impl Iterator<Item = Node> {
        let range = self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize;
        self.froms[range]
            .iter()
            .copied()
            .chain(self.derived_to(node).map(|place| self.derived[place].from))
    }

    /// Asks memory for what [`Graph::before`] nodes is looked at soon: of one that comes next
    /// its earlier ends in `followers`, of one after that the edges, of a third where these
    /// start.
    #[inline]
    pub(super) fn expect(&self, [next, second, third]: [Node; 3], followers: &[u32]) {
        prefetch(&self.starts, third as usize);
        prefetch(&self.froms, self.starts[second as usize] as usize);
        let range = self.starts[next as usize] as usize..self.starts[next as usize + 1] as usize;
        for &from in &self.froms[range] {
            prefetch(followers, from as usize);
        }
    }

    /// The same with where each comes from, which must have been noted.
    pub(super) fn before_why(&self, node: Node) -> impl Iterator<Item = (Node, Why)> {
        let range = self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize;
        let known = range.map(|edge| (self.froms[edge], self.evidence[edge].why()));
        known.chain(
            self.derived_to(node)
                .map(|place| (self.derived[place].from, Why::Derived(place as u32))),
        )
    }

    /// Derived edges to a node, newest first.
    #[inline]
    pub(super) fn derived_to(&self, node: Node) -> impl Iterator<Item = usize> {
        let mut next = self.newest.get(node as usize).copied().unwrap_or(0);
        std::iter::from_fn(move || {
            let place = next.checked_sub(1)? as usize;
            next = self.older[place];
            Some(place)
        })
    }

    /// Adds an edge that follows from those there are.
    pub(super) fn derive(&mut self, derived: Derived) {
        if self.newest.is_empty() {
            self.newest = vec![0; self.nodes];
        }
        let newest = &mut self.newest[derived.to as usize];
        self.followers[derived.from as usize] += 1;
        self.older.push(*newest);
        *newest = self.derived.len() as u32 + 1;
        self.derived.push(derived);
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        4 * (self.starts.len()
            + self.froms.len()
            + self.followers.len()
            + self.evidence.len()
            + self.newest.len()
            + self.older.len())
            + self.derived.len() * size_of::<Derived>()
    }

    /// All nodes in an order that every edge agrees with, or the nodes that lie on or
    /// between cycles.
    ///
    /// Nodes are taken from the end, first come first served: this needs only the
    /// earlier ends of edges, and sessions advance evenly.
    pub(super) fn sorted(&self) -> Result<Vec<Node>, Vec<Node>> {
        let mut followers = self.followers();
        let mut order: Vec<Node> = Vec::with_capacity(self.nodes);
        order.extend((0..self.nodes as Node).filter(|&node| followers[node as usize] == 0));
        let mut next = 0;
        while next < order.len() {
            let node = order[next];
            let later = |steps: usize| order.get(next + steps).copied().unwrap_or(node);
            self.expect([later(4), later(8), later(16)], &followers);
            next += 1;
            for from in self.before(node) {
                let left = &mut followers[from as usize];
                *left -= 1;
                if *left == 0 {
                    order.push(from);
                }
            }
        }
        if order.len() < self.nodes {
            return Err(stuck(&followers));
        }
        order.reverse();
        Ok(order)
    }

    /// Puts a part of an order right, given where it starts, the positions of all nodes, and
    /// that every edge which disagrees with the order lies within this part; or the nodes of it
    /// that lie on or between cycles.
    pub(super) fn sort_part(
        &self,
        part: &mut [Node],
        start: usize,
        positions: &mut [u32],
    ) -> Result<(), Vec<Node>> {
        let length = part.len();
        let place = |positions: &[u32], node: Node| {
            let place = (positions[node as usize] as usize).wrapping_sub(start);
            (place < length).then_some(place)
        };
        let mut followers = vec![0u32; length];
        for &node in &*part {
            for from in self.before(node).filter_map(|from| place(positions, from)) {
                followers[from] += 1;
            }
        }
        let mut order: Vec<Node> = Vec::with_capacity(length);
        order.extend((0..length).rev().filter(|&it| followers[it] == 0).map(|it| part[it]));
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            next += 1;
            for from in self.before(node).filter_map(|from| place(positions, from)) {
                followers[from] -= 1;
                if followers[from] == 0 {
                    order.push(part[from]);
                }
            }
        }
        if order.len() < length {
            let stuck = (0..length).filter(|&it| followers[it] > 0).map(|it| part[it]);
            let mut stuck: Vec<Node> = stuck.collect();
            stuck.sort_unstable();
            return Err(stuck);
        }
        for (place, node) in order.into_iter().rev().enumerate() {
            part[place] = node;
            positions[node as usize] = (start + place) as u32;
        }
        Ok(())
    }

    /// All nodes, taking of those that may come last the one of the highest rank.
    pub(super) fn sorted_by(&self, rank: impl Fn(Node) -> i64) -> Result<Vec<Node>, Vec<Node>> {
        let mut followers = self.followers();
        let free = (0..self.nodes as Node).filter(|&node| followers[node as usize] == 0);
        let mut open: std::collections::BinaryHeap<(i64, Node)> =
            free.map(|node| (rank(node), node)).collect();
        let mut order: Vec<Node> = Vec::with_capacity(self.nodes);
        while let Some((_, node)) = open.pop() {
            order.push(node);
            for from in self.before(node) {
                let left = &mut followers[from as usize];
                *left -= 1;
                if *left == 0 {
                    open.push((rank(from), from));
                }
            }
        }
        if order.len() < self.nodes {
            return Err(stuck(&followers));
        }
        order.reverse();
        Ok(order)
    }

    /// How many edges start at each node.
    pub(super) fn followers(&self) -> Vec<u32> {
        self.followers.clone()
    }
}

fn stuck(followers: &[u32]) -> Vec<Node> {
    (0..followers.len() as Node).filter(|&node| followers[node as usize] > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::super::saturate::positions;
    use super::*;
    use crate::level::Level;

    struct Given<'a>(&'a [(Node, Node)]);

    impl Edges for Given<'_> {
        fn each(&self, emit: &mut impl FnMut(Node, Node, Why)) {
            self.0.iter().for_each(|&(from, to)| emit(from, to, Why::Session));
        }
    }

    /// The order after the part of it was sorted, or the nodes that have none.
    fn sorted_part(
        edges: &[(Node, Node)],
        order: &[Node],
        part: std::ops::Range<usize>,
    ) -> Result<Vec<Node>, Vec<Node>> {
        let model = Model::of(Level::Serializable).expect("a level of one event");
        let graph = Graph::new(model, order.len(), order.len(), &Given(edges));
        let mut order = order.to_vec();
        let mut places = positions(&order);
        graph.sort_part(&mut order[part.clone()], part.start, &mut places)?;
        assert_eq!(places, positions(&order));
        Ok(order)
    }

    #[test]
    fn a_part_of_an_order_is_put_right_and_the_rest_stays() {
        let edges = [(0, 1), (1, 2), (4, 2), (3, 4), (4, 5)];
        assert_eq!(sorted_part(&edges, &[0, 1, 2, 3, 4, 5], 2..5), Ok(vec![0, 1, 3, 4, 2, 5]));
    }

    #[test]
    fn a_cycle_within_a_part_is_found() {
        let edges = [(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)];
        assert_eq!(sorted_part(&edges, &[0, 1, 2, 3, 4], 1..4), Err(vec![1, 2, 3]));
    }
}
