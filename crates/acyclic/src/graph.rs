//! The graph: known edges, edges of choices, and the order that all of them that
//! hold agree with.
//!
//! Known edges never change and are stored in two flat columns for each direction.
//! Only nodes that an edge of a choice touches have more than a few words: most
//! nodes of a large history have no open choice.

use crate::choice::{Edge, Literal, Node};
use std::fmt;

/// No edge, no slot, no visit.
pub(crate) const NONE: u32 = u32::MAX;

/// Edges that hold whatever is chosen, by their later ends.
#[derive(Clone, Debug)]
pub struct KnownEdges {
    /// Where the predecessors of each node start in `before`, and last where they end.
    pub starts: Vec<u32>,
    /// Predecessors, node by node.
    pub before: Vec<Node>,
}

impl KnownEdges {
    /// The known edges among so many nodes.
    pub fn from_edges(nodes: usize, edges: &[Edge]) -> KnownEdges {
        let (starts, before) = columns(nodes, edges.len(), |visit| {
            for edge in edges {
                visit(edge.to, edge.from);
            }
        });
        KnownEdges { starts, before }
    }

    fn each(&self, mut visit: impl FnMut(Node, Node)) {
        for node in 0..self.starts.len() - 1 {
            for &before in &self.before[self.starts[node] as usize..self.starts[node + 1] as usize]
            {
                visit(before, node as Node);
            }
        }
    }
}

/// Pairs (owner, item) as two columns. `each` is run twice and calls its visitor
/// with the same pairs.
pub(crate) fn columns(
    owners: usize,
    items: usize,
    each: impl Fn(&mut dyn FnMut(Node, Node)),
) -> (Vec<u32>, Vec<Node>) {
    let mut starts = vec![0u32; owners + 1];
    each(&mut |owner, _| starts[owner as usize] += 1);
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    // Filled from the back, so that starts end where they belong.
    let mut column = vec![0; items];
    each(&mut |owner, item| {
        starts[owner as usize] -= 1;
        column[starts[owner as usize] as usize] = item;
    });
    (starts, column)
}

/// Why an order was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderError {
    /// The order is not one of all nodes, each once.
    Incomplete,
    /// The columns of known edges do not fit together, or name nodes that do not exist.
    Malformed,
    /// A known edge leads backward in the order.
    Backward(Edge),
}

impl fmt::Display for OrderError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrderError::Incomplete => write!(formatter, "expected an order of all nodes"),
            OrderError::Malformed => write!(formatter, "expected edges between nodes, by node"),
            OrderError::Backward(Edge { from, to }) => {
                write!(formatter, "expected {from} before {to} in the order, found it after")
            }
        }
    }
}

impl std::error::Error for OrderError {}

/// An edge of a side.
#[derive(Clone, Copy)]
pub(crate) struct ChoiceEdge {
    pub(crate) from: Node,
    pub(crate) to: Node,
    pub(crate) literal: Literal,
    pub(crate) next_of_literal: u32,
    next_asserted_out: u32,
    next_asserted_in: u32,
}

/// How an edge of a side stands.
#[derive(Clone, Copy, Default)]
pub(crate) struct EdgeState {
    /// It holds.
    pub(crate) asserted: bool,
    /// It holds for good.
    pub(crate) fixed: bool,
}

/// A node that edges of sides touch.
pub(crate) struct Touched {
    pub(crate) node: Node,
    /// The first of the edges that hold, out of the node and into it.
    pub(crate) asserted_out: u32,
    pub(crate) asserted_in: u32,
    /// It moved since it was last looked at.
    pub(crate) stale: bool,
    /// All edges of sides but those to itself.
    pub(crate) out: Vec<Incidence>,
    pub(crate) into: Vec<Incidence>,
}

/// An edge of a side, seen from one end.
#[derive(Clone, Copy)]
pub(crate) struct Incidence {
    pub(crate) edge: u32,
    /// The slot of the other end.
    pub(crate) other: u32,
}

/// A node that a search came to.
#[derive(Clone, Copy)]
pub(crate) struct Visit {
    pub(crate) node: Node,
    /// The last edge of a choice on the way to it.
    pub(crate) edge: u32,
    /// The visit that edge was taken from.
    pub(crate) previous: u32,
}

/// Sides that would close a cycle.
#[derive(Default)]
pub(crate) struct Implied {
    /// Literals that must be false, each with the end of its part of `edges`.
    pub(crate) literals: Vec<(Literal, u32)>,
    /// The edges of choices of each cycle, in order.
    pub(crate) edges: Vec<u32>,
}

pub(crate) struct Graph {
    /// Invariant: every known and every asserted edge leads forward.
    pub(crate) positions: Vec<u32>,
    before_starts: Vec<u32>,
    before: Vec<Node>,
    after_starts: Vec<u32>,
    after: Vec<Node>,
    /// Where a node stands in `touched`.
    pub(crate) slots: Vec<u32>,
    pub(crate) touched: Vec<Touched>,
    pub(crate) edges: Vec<ChoiceEdge>,
    pub(crate) states: Vec<EdgeState>,
    /// The first and last edge of every literal.
    pub(crate) lists: Vec<(u32, u32)>,
    /// By slot: the position of its node when it was last looked at.
    pub(crate) seen: Vec<u32>,
    /// By literal: how many of its edges lead backward by `seen`.
    pub(crate) backward: Vec<u32>,
    /// By slot: where a running search has it.
    pub(crate) slot_marks: Vec<u32>,
    /// Edges that hold, in the order they were asserted.
    asserted: Vec<u32>,
    retained: Vec<u32>,
    /// Where a running search has a node; see `search.rs`.
    pub(crate) marks: Vec<u32>,
    pub(crate) ahead: Vec<Visit>,
    pub(crate) behind: Vec<Visit>,
    pub(crate) later: Vec<Visit>,
    pub(crate) places: Vec<u64>,
    /// The edges of choices on the cycle that was found last, in order.
    pub(crate) cycle: Vec<u32>,
    pub(crate) implied: Implied,
    /// Slots of nodes that moved since sides were last looked at.
    pub(crate) stale: Vec<u32>,
    /// Nodes that moved since the caller last looked.
    moved: Vec<Node>,
    moved_bits: Vec<u64>,
    pub(crate) visits: u64,
    pub(crate) reorderings: u64,
}

impl Graph {
    pub(crate) fn new(order: &[Node], known: KnownEdges) -> Result<Graph, OrderError> {
        let nodes = order.len();
        let mut positions = vec![NONE; nodes];
        for (position, &node) in order.iter().enumerate() {
            match positions.get_mut(node as usize) {
                Some(place) if *place == NONE => *place = position as u32,
                _ => return Err(OrderError::Incomplete),
            }
        }
        let fit = known.starts.len() == nodes + 1
            && known.starts.is_sorted()
            && known.starts[0] == 0
            && known.starts[nodes] as usize == known.before.len()
            && known.before.iter().all(|&node| (node as usize) < nodes);
        if !fit {
            return Err(OrderError::Malformed);
        }
        let mut wrong = None;
        known.each(|from, to| {
            if positions[from as usize] >= positions[to as usize] {
                wrong = Some(Edge { from, to });
            }
        });
        if let Some(edge) = wrong {
            return Err(OrderError::Backward(edge));
        }
        let (after_starts, after) = columns(nodes, known.before.len(), |visit| known.each(visit));
        Ok(Graph {
            positions,
            before_starts: known.starts,
            before: known.before,
            after_starts,
            after,
            slots: vec![NONE; nodes],
            touched: Vec::new(),
            edges: Vec::new(),
            states: Vec::new(),
            lists: Vec::new(),
            seen: Vec::new(),
            backward: Vec::new(),
            slot_marks: Vec::new(),
            asserted: Vec::new(),
            retained: Vec::new(),
            marks: vec![0; nodes],
            ahead: Vec::new(),
            behind: Vec::new(),
            later: Vec::new(),
            places: Vec::new(),
            cycle: Vec::new(),
            implied: Implied::default(),
            stale: Vec::new(),
            moved: Vec::new(),
            moved_bits: vec![0; nodes.div_ceil(64)],
            visits: 0,
            reorderings: 0,
        })
    }

    /// Known neighbours of a node: successors, or predecessors.
    #[inline]
    pub(crate) fn known<const FORWARD: bool>(&self, node: Node) -> &[Node] {
        let (starts, nodes) = if FORWARD {
            (&self.after_starts, &self.after)
        } else {
            (&self.before_starts, &self.before)
        };
        let node = node as usize;
        &nodes[starts[node] as usize..starts[node + 1] as usize]
    }

    #[inline]
    pub(crate) fn is_forward(&self, edge: u32) -> bool {
        let ChoiceEdge { from, to, .. } = self.edges[edge as usize];
        self.positions[from as usize] < self.positions[to as usize]
    }

    /// The next asserted edge after one in the list of its earlier end, or its later.
    #[inline]
    pub(crate) fn next_asserted<const FORWARD: bool>(&self, edge: u32) -> u32 {
        let edge = &self.edges[edge as usize];
        if FORWARD { edge.next_asserted_out } else { edge.next_asserted_in }
    }

    /// Adds an edge to a side, and says which it is.
    pub(crate) fn add(&mut self, literal: Literal, edge: Edge) -> u32 {
        let id = self.edges.len() as u32;
        let (from, to) = (self.touch(edge.from), self.touch(edge.to));
        if from != to {
            self.touched[from].out.push(Incidence { edge: id, other: to as u32 });
            self.touched[to].into.push(Incidence { edge: id, other: from as u32 });
        }
        self.edges.push(ChoiceEdge {
            from: edge.from,
            to: edge.to,
            literal,
            next_of_literal: NONE,
            next_asserted_out: NONE,
            next_asserted_in: NONE,
        });
        self.states.push(EdgeState::default());
        self.backward[literal.index()] += u32::from(self.seen[from] >= self.seen[to]);
        let (first, last) = &mut self.lists[literal.index()];
        if *first == NONE {
            *first = id;
        } else {
            self.edges[*last as usize].next_of_literal = id;
        }
        *last = id;
        id
    }

    fn touch(&mut self, node: Node) -> usize {
        let slot = &mut self.slots[node as usize];
        if *slot == NONE {
            *slot = self.touched.len() as u32;
            self.touched.push(Touched {
                node,
                asserted_out: NONE,
                asserted_in: NONE,
                stale: false,
                out: Vec::new(),
                into: Vec::new(),
            });
            self.seen.push(self.positions[node as usize]);
            self.slot_marks.push(0);
        }
        *slot as usize
    }

    /// Lets an edge hold that leads forward.
    pub(crate) fn link(&mut self, id: u32, fixed: bool) {
        debug_assert!(self.is_forward(id));
        let ChoiceEdge { from, to, .. } = self.edges[id as usize];
        let out = &mut self.touched[self.slots[from as usize] as usize].asserted_out;
        self.edges[id as usize].next_asserted_out = std::mem::replace(out, id);
        let into = &mut self.touched[self.slots[to as usize] as usize].asserted_in;
        self.edges[id as usize].next_asserted_in = std::mem::replace(into, id);
        let state = &mut self.states[id as usize];
        (state.asserted, state.fixed) = (true, fixed);
        self.asserted.push(id);
    }

    pub(crate) fn asserted_len(&self) -> usize {
        self.asserted.len()
    }

    /// Takes back the edges asserted last, until so many are left, but for those of
    /// literals that are still true: a side may get edges later than it was taken.
    pub(crate) fn retract_to(&mut self, len: usize, values: &[i8]) {
        while self.asserted.len() > len {
            let id = self.asserted.pop().expect("more than `len`");
            let edge = self.edges[id as usize];
            let out = &mut self.touched[self.slots[edge.from as usize] as usize].asserted_out;
            debug_assert_eq!(*out, id);
            *out = edge.next_asserted_out;
            let into = &mut self.touched[self.slots[edge.to as usize] as usize].asserted_in;
            debug_assert_eq!(*into, id);
            *into = edge.next_asserted_in;
            self.states[id as usize].asserted = false;
            if values[edge.literal.index()] > 0 {
                self.retained.push(id);
            }
        }
        while let Some(id) = self.retained.pop() {
            let fixed = self.states[id as usize].fixed;
            self.link(id, fixed);
        }
    }

    /// Notes that a node has a new position.
    pub(crate) fn note_moved(&mut self, node: Node) {
        let (word, bit) = (node as usize / 64, 1u64 << (node % 64));
        if self.moved_bits[word] & bit == 0 {
            self.moved_bits[word] |= bit;
            self.moved.push(node);
        }
        let slot = self.slots[node as usize];
        if slot != NONE && !self.touched[slot as usize].stale {
            self.touched[slot as usize].stale = true;
            self.stale.push(slot);
        }
    }

    /// The nodes that moved since this was last asked.
    pub(crate) fn take_moved(&mut self) -> Vec<Node> {
        for &node in &self.moved {
            self.moved_bits[node as usize / 64] = 0;
        }
        std::mem::take(&mut self.moved)
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let words = self.positions.capacity()
            + self.before_starts.capacity()
            + self.before.capacity()
            + self.after_starts.capacity()
            + self.after.capacity()
            + self.slots.capacity()
            + self.marks.capacity()
            + self.asserted.capacity()
            + self.stale.capacity()
            + self.moved.capacity()
            + 2 * self.moved_bits.capacity()
            + 2 * self.lists.capacity()
            + self.backward.capacity()
            + self.seen.capacity()
            + self.slot_marks.capacity()
            + 2 * self.places.capacity();
        let visits = self.ahead.capacity() + self.behind.capacity() + self.later.capacity();
        4 * words
            + size_of::<Visit>() * visits
            + size_of::<Touched>() * self.touched.capacity()
            + size_of::<EdgeState>() * self.states.capacity()
            // Every edge is seen from both ends, in lists that grow by doubling.
            + (size_of::<ChoiceEdge>() + 3 * size_of::<Incidence>()) * self.edges.capacity()
    }
}
