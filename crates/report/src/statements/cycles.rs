//! Shortest cycles through reads of what was replaced.

use super::Relation;
use super::graph::{Dependency, Graph};
use isolde_history::TxnId;
use std::collections::HashSet;

/// Edges, each of which begins where the one before ends.
pub(super) type Cycle = Vec<Dependency>;

/// Longer ways are not looked for: nobody reads them.
const LENGTH_MAX: usize = 6;
/// Transactions that one search looks at.
const VISITED_MAX: usize = 20_000;

/// A shortest cycle through each edge from who read a version to who replaced it, every set of
/// transactions once, and whether there may be more.
pub(super) fn through_replaced_reads(
    graph: &Graph,
    overwritten: impl Fn(&Dependency) -> Option<Dependency>,
    cycles_max: usize,
) -> (Vec<Cycle>, bool) {
    let components = components(graph);
    let mut search = Search::new(graph, &components);
    let mut known: HashSet<Vec<TxnId>> = HashSet::new();
    let mut found = Vec::new();
    for edge in &graph.edges {
        let is_inside = components[edge.from.index()] == components[edge.to.index()];
        if edge.relation != Relation::Rw || !is_inside {
            continue;
        }
        if found.len() == cycles_max {
            return (found, true);
        }
        let path = overwritten(edge).map(|back| vec![back]);
        let Some(path) = path.or_else(|| search.path(edge.to, edge.from)) else { continue };
        let cycle: Cycle = std::iter::once(*edge).chain(path).collect();
        let mut txns: Vec<TxnId> = cycle.iter().map(|edge| edge.from).collect();
        txns.sort_unstable();
        if known.insert(txns) {
            found.push(cycle);
        }
    }
    (found, false)
}

/// A search for one path after another.
struct Search<'a> {
    graph: &'a Graph,
    components: &'a [u32],
    /// By transaction, the number of the search that came to it last, and by which edge.
    visited: Vec<(u32, u32)>,
    round: u32,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph, components: &'a [u32]) -> Search<'a> {
        Search { graph, components, visited: vec![(0, 0); graph.txn_count()], round: 0 }
    }

    /// A shortest path between two transactions of one component.
    fn path(&mut self, from: TxnId, to: TxnId) -> Option<Cycle> {
        self.round += 1;
        let mut layer = vec![from];
        let mut visited = 1;
        self.visited[from.index()] = (self.round, u32::MAX);
        for _ in 1..LENGTH_MAX {
            let mut next = Vec::new();
            for &txn in &layer {
                for edge in self.graph.from(txn) {
                    let place = edge.to.index();
                    if self.components[place] != self.components[from.index()]
                        || self.visited[place].0 == self.round
                    {
                        continue;
                    }
                    let number = self.number(edge);
                    self.visited[place] = (self.round, number);
                    if edge.to == to {
                        return Some(self.back(from, to));
                    }
                    next.push(edge.to);
                }
            }
            visited += next.len();
            if visited > VISITED_MAX {
                return None;
            }
            layer = next;
        }
        None
    }

    fn number(&self, edge: &Dependency) -> u32 {
        let edges = &self.graph.edges;
        let key = |it: &Dependency| (it.from, it.to, it.relation, it.from_op, it.to_op);
        edges.partition_point(|it| key(it) < key(edge)) as u32
    }

    fn back(&self, from: TxnId, to: TxnId) -> Cycle {
        let mut path = Vec::new();
        let mut at = to;
        while at != from {
            let edge = self.graph.edges[self.visited[at.index()].1 as usize];
            path.push(edge);
            at = edge.from;
        }
        path.reverse();
        path
    }
}

/// The strongly connected component of each transaction, by Tarjan's method without its recursion.
fn components(graph: &Graph) -> Vec<u32> {
    const UNSEEN: u32 = u32::MAX;
    let count = graph.txn_count();
    let (mut order, mut low) = (vec![UNSEEN; count], vec![0u32; count]);
    let mut component = vec![UNSEEN; count];
    let (mut stack, mut next, mut found) = (Vec::new(), 0, 0);
    for root in 0..count as u32 {
        if order[root as usize] != UNSEEN {
            continue;
        }
        let mut work = vec![(root, 0usize)];
        while let Some((txn, at)) = work.pop() {
            let place = txn as usize;
            if at == 0 {
                (order[place], low[place]) = (next, next);
                next += 1;
                stack.push(txn);
            }
            let edges = graph.from(TxnId(txn));
            if let Some(edge) = edges.get(at) {
                work.push((txn, at + 1));
                let to = edge.to.index();
                if order[to] == UNSEEN {
                    work.push((edge.to.0, 0));
                } else if component[to] == UNSEEN {
                    low[place] = low[place].min(order[to]);
                }
                continue;
            }
            if low[place] == order[place] {
                while let Some(member) = stack.pop() {
                    component[member as usize] = found;
                    if member == txn {
                        break;
                    }
                }
                found += 1;
            }
            if let Some(&(parent, _)) = work.last() {
                low[parent as usize] = low[parent as usize].min(low[place]);
            }
        }
    }
    component
}
