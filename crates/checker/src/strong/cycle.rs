//! Short cycles among the nodes that no order fits, and short paths between nodes.

use super::clocks::Clocks;
use super::connected::each_part;
use super::cover::Cover;
use super::graph::{Graph, Why};
use super::model::{Events, Node};
use hashbrown::{HashMap, HashSet};
use std::collections::VecDeque;

/// One edge of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) from: Node,
    pub(super) to: Node,
    pub(super) why: Why,
}

/// Starts of a search for a shorter cycle.
const STARTS_MAX: usize = 64;
/// Nodes that all these searches together may visit.
const VISITS_MAX: usize = 1 << 18;

/// Nodes on cycles: those of each strongly connected part of the graph, the smallest
/// first.
pub(super) struct Core {
    parts: Vec<Vec<Node>>,
    /// Per node, its part plus one; 0 for nodes on no cycle.
    part: Vec<u32>,
}

impl Core {
    /// Of these `stuck` nodes, among which are all cycles.
    pub(super) fn new(graph: &Graph, stuck: &[Node]) -> Core {
        let nodes = graph.node_count();
        let mut core = Core { parts: Vec::new(), part: vec![0; nodes] };
        each_part(
            nodes,
            stuck,
            |node| graph.before(node),
            |part| {
                if part.len() > 1 {
                    core.parts.push(part.to_vec());
                }
            },
        );
        core.parts.sort_by_key(Vec::len);
        for (place, part) in core.parts.iter().enumerate() {
            for &node in part {
                core.part[node as usize] = place as u32 + 1;
            }
        }
        core
    }

    /// All nodes on cycles.
    pub(super) fn nodes(&self) -> impl Iterator<Item = Node> {
        self.parts.iter().flatten().copied()
    }

    /// Whether some cycle goes through both.
    pub(super) fn joins(&self, one: Node, other: Node) -> bool {
        let part = self.part[one as usize];
        part != 0 && part == self.part[other as usize]
    }
}

/// A short cycle.
pub(super) fn short_cycle(graph: &Graph, core: &Core) -> Vec<Step> {
    let part = core.parts.first().expect("a cycle");
    let first = some_cycle(graph, core, part[0]);
    let mut best = first.clone();
    let mut visits_left = VISITS_MAX;
    let mut tried: HashSet<Node> = HashSet::new();
    // The cycle that was met first is often long; short ones are near it.
    let mut starts: VecDeque<Node> = first.iter().map(|step| step.from).collect();
    while let Some(start) = starts.pop_front() {
        if tried.len() >= STARTS_MAX || visits_left == 0 || best.len() <= 2 {
            break;
        }
        if !tried.insert(start) {
            continue;
        }
        let shorter =
            path_back(graph, start, start, &mut visits_left, |node, _| core.joins(node, start));
        if let Some(shorter) = shorter.filter(|shorter| shorter.len() < best.len()) {
            starts.extend(shorter.iter().map(|step| step.from));
            best = shorter;
        }
    }
    best
}

/// Follows edges backwards on cycles until a node comes again.
fn some_cycle(graph: &Graph, core: &Core, start: Node) -> Vec<Step> {
    let mut place: HashMap<Node, usize> = HashMap::new();
    let mut steps: Vec<Step> = Vec::new();
    let mut node = start;
    loop {
        if let Some(&begun) = place.get(&node) {
            steps.drain(..begun);
            steps.reverse();
            return steps;
        }
        place.insert(node, steps.len());
        let (from, why) = graph
            .before_why(node)
            .find(|&(from, _)| core.joins(from, node))
            .expect("every node on a cycle has a predecessor on it");
        steps.push(Step { from, to: node, why });
        node = from;
    }
}

/// A shortest path from `start` to `end`, at least one edge long, searched backwards
/// through edges that are `allowed`, given their earlier end and evidence.
pub(super) fn path_back(
    graph: &Graph,
    start: Node,
    end: Node,
    visits_left: &mut usize,
    allowed: impl Fn(Node, Why) -> bool,
) -> Option<Vec<Step>> {
    let mut next: HashMap<Node, Step> = HashMap::new();
    let mut open: VecDeque<Node> = VecDeque::from([end]);
    while let Some(node) = open.pop_front() {
        *visits_left = visits_left.checked_sub(1)?;
        for (from, why) in graph.before_why(node) {
            if next.contains_key(&from) || !allowed(from, why) {
                continue;
            }
            next.insert(from, Step { from, to: node, why });
            if from == start {
                let mut steps = Vec::new();
                let mut at = start;
                loop {
                    let step = next[&at];
                    steps.push(step);
                    at = step.to;
                    if at == end {
                        return Some(steps);
                    }
                }
            }
            open.push_back(from);
        }
    }
    None
}

/// Finds the premises of derived edges: paths of older edges.
pub(super) struct Premises<'a> {
    pub(super) graph: &'a Graph,
    /// Clocks of a state in which all premises held already, to search only between
    /// the ends of a path.
    pub(super) clocks: Option<(&'a Clocks, &'a Cover)>,
}

impl Premises<'_> {
    /// The edge between two nodes. Where there are several, not one of session order,
    /// which the level may not have.
    pub(super) fn step(&self, from: Node, to: Node) -> Step {
        let edges = || self.graph.before_why(to).filter(|(other, _)| *other == from);
        let (_, why) = edges()
            .find(|(_, why)| *why != Why::Session)
            .or_else(|| edges().next())
            .expect("an edge of the graph");
        Step { from, to, why }
    }

    /// A shortest path from `start` to `end` of edges derived before the one at `place`.
    pub(super) fn path(&self, start: Node, end: Node, place: u32) -> Vec<Step> {
        let older = |why: Why| !matches!(why, Why::Derived(other) if other >= place);
        let model = self.graph.model;
        let mut unlimited = usize::MAX;
        path_back(self.graph, start, end, &mut unlimited, |node, why| {
            older(why)
                && (node == start
                    || self.clocks.is_none_or(|(clocks, cover)| {
                        let txn = model.txn(start);
                        let chain = cover.chain[txn.index()];
                        if !cover.covers(txn) {
                            return true;
                        }
                        let rank = cover.rank[txn.index()];
                        if model.events == Events::Two && model.begin(txn) == start {
                            clocks.begins(node, chain) > rank
                        } else {
                            clocks.commits(node, chain) > rank
                        }
                    }))
        })
        .expect("the premise of a derived edge")
    }
}
