//! An order kept while edges come and go.
//!
//! An edge against the order makes its later end, and what follows it up to the
//! earlier end, change places with the earlier end and what leads to it [Pearce
//! and Kelly 2006]. If the one reaches the other there is a cycle instead. Edges
//! that are taken back need nothing: the order still agrees with the rest.
//!
//! The two sets a search has visited also show which sides can no longer be taken:
//! an edge from the set behind the new edge to the set before it would close a cycle.

use crate::choice::{Literal, Node};
use crate::graph::{ChoiceEdge, Graph, NONE};

/// What became of an edge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Insertion {
    /// It led forward already.
    Agreed,
    /// The order was changed; [`Graph::implied`] has the sides that fell.
    Reordered,
    /// It closes [`Graph::cycle`].
    Cycle,
}

/// Sides that would close a cycle.
#[derive(Default)]
pub(crate) struct Implied {
    /// Literals that must be false, each with the end of its part of `edges`.
    pub(crate) literals: Vec<(Literal, u32)>,
    /// The edges of choices of each cycle, in order.
    pub(crate) edges: Vec<u32>,
}

impl Graph {
    /// Lets an edge of a choice hold.
    pub(crate) fn insert(&mut self, id: u32, fixed: bool, values: &[i8]) -> Insertion {
        let ChoiceEdge { from, to, .. } = self.edges[id as usize];
        if self.positions[from as usize] < self.positions[to as usize] {
            self.link(id, fixed);
            return Insertion::Agreed;
        }
        self.cycle.clear();
        self.cycle.push(id);
        if from == to {
            return Insertion::Cycle;
        }
        if let Some(end) = self.reach::<true>(to, from) {
            let mut cycle = std::mem::take(&mut self.cycle);
            chain(&self.ahead, end, &mut cycle);
            cycle[1..].reverse();
            self.cycle = cycle;
            self.visits += self.ahead.len() as u64;
            self.clear_marks();
            return Insertion::Cycle;
        }
        let none = self.reach::<false>(from, to);
        debug_assert!(none.is_none(), "one direction found no cycle");
        self.visits += (self.ahead.len() + self.behind.len()) as u64;
        self.find_implied(id, values);
        self.clear_marks();
        self.reorder();
        self.link(id, fixed);
        Insertion::Reordered
    }

    fn clear_marks(&mut self) {
        for visit in self.ahead.iter().chain(&self.behind) {
            self.marks[visit.node as usize] = 0;
        }
    }

    /// Gives the places of all visited nodes first to those behind, then to those
    /// ahead, and otherwise leaves their order.
    fn reorder(&mut self) {
        self.reorderings += 1;
        let key = |node: Node| u64::from(self.positions[node as usize]) << 32 | u64::from(node);
        self.places.clear();
        self.places.extend(self.behind.iter().map(|visit| key(visit.node)));
        let split = self.places.len();
        self.places.extend(self.ahead.iter().map(|visit| key(visit.node)));
        self.places[..split].sort_unstable();
        self.places[split..].sort_unstable();
        let places = std::mem::take(&mut self.places);
        let (mut low, mut high) = (0, split);
        for &entry in &places {
            let next = if high == places.len()
                || (low < split && places[low] >> 32 < places[high] >> 32)
            {
                low += 1;
                low - 1
            } else {
                high += 1;
                high - 1
            };
            let (place, node) = ((places[next] >> 32) as u32, entry as u32);
            if self.positions[node as usize] != place {
                self.positions[node as usize] = place;
                self.note_moved(node);
            }
        }
        self.places = places;
    }

    /// Finds undecided sides with an edge from a node ahead to a node behind.
    fn find_implied(&mut self, id: u32, values: &[i8]) {
        let mut implied = std::mem::take(&mut self.implied);
        implied.literals.clear();
        implied.edges.clear();
        if self.ahead.len() <= self.behind.len() {
            for visit in &self.ahead {
                let slot = self.slots[visit.node as usize];
                let mut next = if slot == NONE { NONE } else { self.touched[slot as usize].out };
                while next != NONE {
                    let edge = self.edges[next as usize];
                    let mark = self.marks[edge.to as usize];
                    if mark & BEHIND != 0 && values[edge.literal.index()] == 0 {
                        self.imply(id, next, &mut implied);
                    }
                    next = edge.next_out;
                }
            }
        } else {
            for visit in &self.behind {
                let slot = self.slots[visit.node as usize];
                let mut next = if slot == NONE { NONE } else { self.touched[slot as usize].into };
                while next != NONE {
                    let edge = self.edges[next as usize];
                    let mark = self.marks[edge.from as usize];
                    if mark != 0 && mark & BEHIND == 0 && values[edge.literal.index()] == 0 {
                        self.imply(id, next, &mut implied);
                    }
                    next = edge.next_in;
                }
            }
        }
        self.implied = implied;
    }

    /// Notes the cycle of a new edge and one from a node ahead to a node behind.
    fn imply(&self, id: u32, closing: u32, implied: &mut Implied) {
        let ChoiceEdge { from, to, literal, .. } = self.edges[closing as usize];
        implied.edges.push(id);
        let start = implied.edges.len();
        chain(&self.ahead, self.marks[from as usize] - 1, &mut implied.edges);
        implied.edges[start..].reverse();
        implied.edges.push(closing);
        chain(&self.behind, (self.marks[to as usize] & !BEHIND) - 1, &mut implied.edges);
        implied.literals.push((literal, implied.edges.len() as u32));
    }
}

/// The bit of a mark that says a node was found by the search from the earlier end.
pub(crate) const BEHIND: u32 = 1 << 31;

/// The edges of choices between a visit and the start of its search.
fn chain(visits: &[crate::graph::Visit], mut visit: u32, edges: &mut Vec<u32>) {
    while visits[visit as usize].edge != NONE {
        edges.push(visits[visit as usize].edge);
        visit = visits[visit as usize].previous;
    }
}
