//! An order kept while edges come and go.
//!
//! An edge against the order makes its later end, and what follows it up to the
//! earlier end, change places with the earlier end and what leads to it (Pearce
//! and Kelly 2006). If the one reaches the other there is a cycle instead. Edges
//! that are taken back need nothing: the order still agrees with the rest.
//!
//! The two sets a search has visited also show which sides can no longer be taken:
//! an edge from the set behind the new edge to the set before it would close a cycle.

use crate::choice::{Literal, Node};
use crate::graph::{ChoiceEdge, Graph, Implied, Incidence, NONE, Visit};

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
        let slots = &self.slots;
        let slots_of = |visits: &[Visit]| {
            let slot_of = |visit: &Visit| slots[visit.node as usize];
            visits.iter().map(slot_of).filter(|&slot| slot != NONE).collect::<Vec<u32>>()
        };
        let (ahead, behind) = (slots_of(&self.ahead), slots_of(&self.behind));
        let outward: usize = ahead.iter().map(|&slot| self.touched[slot as usize].out.len()).sum();
        let inward: usize = behind.iter().map(|&slot| self.touched[slot as usize].into.len()).sum();
        // Edges are looked for from the end that has fewer.
        let (near, far) = if outward <= inward { (ahead, behind) } else { (behind, ahead) };
        for &slot in &far {
            self.slot_marks[slot as usize] = 1;
        }
        for &slot in &near {
            let touched = &self.touched[slot as usize];
            let incidences = if outward <= inward { &touched.out } else { &touched.into };
            for incidence in incidences {
                if self.slot_marks[incidence.other as usize] != 0
                    && values[self.edges[incidence.edge as usize].literal.index()] == 0
                {
                    self.imply(id, incidence.edge, &mut implied);
                }
            }
        }
        for &slot in &far {
            self.slot_marks[slot as usize] = 0;
        }
        self.implied = implied;
    }

    /// Looks at the nodes that moved, and calls `turned` with every literal that has its
    /// first backward edge by that.
    ///
    /// Nodes are looked at one by one, against what was last seen of the others: an
    /// edge between two that moved is then counted as often as it turns.
    pub(crate) fn look_at_moved(&mut self, mut turned: impl FnMut(Literal)) {
        while let Some(slot) = self.stale.pop() {
            let touched = &mut self.touched[slot as usize];
            touched.stale = false;
            let (old, new) = (self.seen[slot as usize], self.positions[touched.node as usize]);
            let mut count = |edge: u32, was: bool, is: bool| {
                let literal = self.edges[edge as usize].literal;
                let backward = &mut self.backward[literal.index()];
                if is && !was {
                    *backward += 1;
                    if *backward == 1 {
                        turned(literal);
                    }
                } else {
                    *backward -= 1;
                }
            };
            for &Incidence { edge, other } in &touched.out {
                let other = self.seen[other as usize];
                if (old >= other) != (new >= other) {
                    count(edge, old >= other, new >= other);
                }
            }
            for &Incidence { edge, other } in &touched.into {
                let other = self.seen[other as usize];
                if (other >= old) != (other >= new) {
                    count(edge, other >= old, other >= new);
                }
            }
            self.seen[slot as usize] = new;
        }
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
fn chain(visits: &[Visit], mut visit: u32, edges: &mut Vec<u32>) {
    while visits[visit as usize].edge != NONE {
        edges.push(visits[visit as usize].edge);
        visit = visits[visit as usize].previous;
    }
}
