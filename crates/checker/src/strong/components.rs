//! Parts of what is left open that have nothing to do with each other.
//!
//! Take all known edges, and all edges that some order of an open pair of versions would
//! add. An edge that leads from one strongly connected part of this graph to another lies
//! on no cycle, whatever is decided. So each part is decided by itself, at the same time
//! as others, and the orders found for the parts stand one after another in the whole.
//! All writers of an open pair, and who read their versions in between, lie in one part.

use super::clocks::Clocks;
use super::connected::each_part;
use super::cover::Cover;
use super::graph::Graph;
use super::model::{Node, Writers};
use super::runs::Runs;
use super::versions::Versions;
use crate::limits::ComponentCounts;

/// Groups that are searched at once; each needs a solver with a graph of its own.
const GROUPS_MAX: usize = 8;
/// Possible edges beyond which one search for all is cheaper than to look for parts.
const POSSIBLE_MAX: usize = 1 << 26;

/// See the module's documentation.
pub(super) struct Components {
    /// Per node, its part; a part has a higher number than those that lead to it.
    part: Vec<u32>,
    /// Per part, the group that decides it, or [`NO_GROUP`] for a node by itself.
    group: Vec<u8>,
    /// How many groups there are.
    pub(super) groups: usize,
    apart: ComponentCounts,
}

const NO_GROUP: u8 = u8::MAX;

impl Components {
    /// The parts of a saturated graph; `None` if they cannot be told apart.
    pub(super) fn new(
        graph: &Graph,
        versions: &Versions<'_>,
        (clocks, cover): (&Clocks, &Cover),
    ) -> Option<Components> {
        let possible = Possible::new(graph, versions, (clocks, cover))?;
        let nodes: Vec<Node> = (0..graph.node_count() as Node).collect();
        let mut part_of = vec![0; nodes.len()];
        let mut sizes: Vec<u32> = Vec::new();
        let before = |node| graph.before(node).chain(possible.before(node));
        each_part(nodes.len(), &nodes, before, |part| {
            for &node in part {
                part_of[node as usize] = sizes.len() as u32;
            }
            sizes.push(part.len() as u32);
        });
        let mut by_size: Vec<u32> =
            (0..sizes.len() as u32).filter(|&part| sizes[part as usize] > 1).collect();
        by_size.sort_by_key(|&part| std::cmp::Reverse(sizes[part as usize]));
        let all: u64 = by_size.iter().map(|&part| u64::from(sizes[part as usize])).sum();
        let largest = by_size.first().map_or(0, |&part| sizes[part as usize]);
        // As many as are busy while the largest part is searched.
        let groups = ((all / u64::from(largest.max(1))) as usize).clamp(1, GROUPS_MAX);
        let mut loads = vec![0; groups];
        let mut group = vec![NO_GROUP; sizes.len()];
        for &part in &by_size {
            let (place, load) =
                loads.iter_mut().enumerate().min_by_key(|(_, load)| **load).expect("a group");
            *load += u64::from(sizes[part as usize]);
            group[part as usize] = place as u8;
        }
        let apart = ComponentCounts {
            parts: by_size.len() as u64,
            events: all,
            largest: u64::from(largest),
        };
        Some(Components { part: part_of, group, groups, apart })
    }

    /// How many parts there are, and how large.
    pub(super) fn apart(&self) -> ComponentCounts {
        self.apart
    }

    /// The group that decides the part of a node.
    #[inline]
    pub(super) fn group(&self, node: Node) -> Option<usize> {
        match self.group[self.part[node as usize] as usize] {
            NO_GROUP => None,
            group => Some(usize::from(group)),
        }
    }

    /// One order made of those of the groups, given by the positions of the nodes.
    pub(super) fn joined(&self, positions: &[Vec<u32>]) -> Vec<Node> {
        let mut order: Vec<Node> = (0..self.part.len() as Node).collect();
        order.sort_unstable_by_key(|&node| {
            let within = self.group(node).map_or(0, |group| positions[group][node as usize]);
            (self.part[node as usize], within)
        });
        order
    }
}

/// Edges that an order of open pairs would add; of those that lead to one chain only the
/// first, from which the others follow.
struct Possible {
    /// Per node, where its edges start.
    starts: Vec<u32>,
    froms: Vec<Node>,
}

impl Possible {
    fn new(
        graph: &Graph,
        versions: &Versions<'_>,
        (clocks, cover): (&Clocks, &Cover),
    ) -> Option<Possible> {
        let model = graph.model;
        let runs = Runs::new(versions, cover);
        let mut edges: Vec<(Node, Node)> = Vec::new();
        for key in versions.open_keys() {
            for slot in versions.slots_of(key) {
                let txn = versions.writer(slot);
                if !cover.covers(txn) || edges.len() > POSSIBLE_MAX {
                    return None;
                }
                let commit = model.commit(txn);
                for (chain, run) in runs.of(key) {
                    // What follows on its own chain is known to follow.
                    if cover.chain[txn.index()] == chain {
                        continue;
                    }
                    let bound = match model.writers {
                        Writers::Apart => clocks.begins(commit, chain),
                        Writers::Overlap => clocks.commits(commit, chain),
                    };
                    let decided = run.partition_point(|writer| writer.rank < bound);
                    let Some(first) = run.get(decided) else { continue };
                    let later = versions.writer(first.slot);
                    edges.push((model.next_writer(later), commit));
                    for &read in versions.reads_of(slot) {
                        edges.push((model.commit(later), model.begin(versions.reader(read))));
                    }
                }
            }
        }
        edges.sort_unstable();
        edges.dedup();
        let mut starts = vec![0u32; graph.node_count() + 1];
        for &(to, _) in &edges {
            starts[to as usize + 1] += 1;
        }
        for node in 0..graph.node_count() {
            starts[node + 1] += starts[node];
        }
        Some(Possible { starts, froms: edges.into_iter().map(|(_, from)| from).collect() })
    }

    fn before(&self, node: Node) -> impl Iterator<Item = Node> {
        let range = self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize;
        self.froms[range].iter().copied()
    }
}
