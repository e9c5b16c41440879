//! Searches between two nodes, bounded by their positions.
//!
//! Cycles become clauses, and a short clause rules out more. So nodes are visited
//! by the number of open choices on the way: known edges and those that hold for good cost nothing.

use crate::choice::Node;
use crate::graph::{Graph, NONE, Visit};
use crate::order::BEHIND;

impl Graph {
    /// Visits all that is reachable from `start` without passing the position of
    /// `end`, forward or backward. Stops at `end` and says which visit that is.
    /// Leaves its marks: 0 for nodes not visited, else one more than the visit.
    pub(crate) fn reach<const FORWARD: bool>(&mut self, start: Node, end: Node) -> Option<u32> {
        if FORWARD {
            self.behind.clear();
        }
        let mut visits = std::mem::take(if FORWARD { &mut self.ahead } else { &mut self.behind });
        let mut later = std::mem::take(&mut self.later);
        let mut marks = std::mem::take(&mut self.marks);
        visits.clear();
        later.clear();
        let bound = self.positions[end as usize];
        let within = |node: Node| {
            let position = self.positions[node as usize];
            if FORWARD { position <= bound } else { position >= bound }
        };
        let side = if FORWARD { 0 } else { BEHIND };
        let mut visit = |visits: &mut Vec<Visit>, new: Visit| {
            if marks[new.node as usize] == 0 {
                visits.push(new);
                marks[new.node as usize] = visits.len() as u32 | side;
            }
            new.node == end
        };
        let mut found = visit(&mut visits, Visit { node: start, edge: NONE, previous: NONE });
        let mut next = 0;
        while !found {
            if let Some(&Visit { node, edge, previous }) = visits.get(next) {
                for &known in self.known::<FORWARD>(node) {
                    found |=
                        within(known) && visit(&mut visits, Visit { node: known, edge, previous });
                }
                let mut chosen = self.first_asserted::<FORWARD>(node);
                while chosen != NONE {
                    let edge = &self.edges[chosen as usize];
                    let node = if FORWARD { edge.to } else { edge.from };
                    let new = Visit { node, edge: chosen, previous: next as u32 };
                    if !within(node) {
                    } else if self.states[chosen as usize].fixed {
                        found |= visit(&mut visits, new);
                    } else {
                        later.push(new);
                    }
                    chosen = self.next_asserted::<FORWARD>(chosen);
                }
                next += 1;
            } else if later.is_empty() {
                break;
            } else {
                for new in later.drain(..) {
                    found |= visit(&mut visits, new);
                }
            }
        }
        let end_mark = marks[end as usize];
        self.marks = marks;
        self.later = later;
        *(if FORWARD { &mut self.ahead } else { &mut self.behind }) = visits;
        found.then(|| (end_mark & !BEHIND) - 1)
    }

    fn first_asserted<const FORWARD: bool>(&self, node: Node) -> u32 {
        let slot = self.slots[node as usize];
        if slot == NONE {
            return NONE;
        }
        let touched = &self.touched[slot as usize];
        if FORWARD { touched.asserted_out } else { touched.asserted_in }
    }

    /// The nodes of a path over known edges, both ends included.
    pub(crate) fn known_path(&mut self, start: Node, end: Node) -> Vec<Node> {
        let mut ahead = vec![(start, NONE)];
        let mut behind = vec![(end, NONE)];
        self.marks[start as usize] = 1;
        let mut meeting = None;
        if start == end {
            meeting = Some((0, 0));
        } else {
            self.marks[end as usize] = 1 | BEHIND;
        }
        let (mut next_ahead, mut next_behind) = (0, 0);
        // Both ends advance in turn, so that the nearer surroundings are enough.
        while meeting.is_none() {
            meeting = self.advance::<true>(&mut ahead, &mut next_ahead, end);
            if meeting.is_none() {
                meeting = self.advance::<false>(&mut behind, &mut next_behind, start);
            }
        }
        for &(node, _) in ahead.iter().chain(&behind) {
            self.marks[node as usize] = 0;
        }
        let (mut from, mut to) = meeting.expect("the loop ends with one");
        let mut path = Vec::new();
        while from != NONE {
            path.push(ahead[from as usize].0);
            from = ahead[from as usize].1;
        }
        path.reverse();
        if start == end {
            return path;
        }
        while to != NONE {
            path.push(behind[to as usize].0);
            to = behind[to as usize].1;
        }
        path
    }

    /// Visits the neighbours of one node; where they meet the other search, the
    /// visits of both.
    fn advance<const FORWARD: bool>(
        &mut self,
        visits: &mut Vec<(Node, u32)>,
        next: &mut usize,
        end: Node,
    ) -> Option<(u32, u32)> {
        assert!(*next < visits.len(), "a path was found when its cycle was");
        let (node, _) = visits[*next];
        let mut marks = std::mem::take(&mut self.marks);
        let bound = self.positions[end as usize];
        let (own, mut meeting) = (if FORWARD { 0 } else { BEHIND }, None);
        for &neighbour in self.known::<FORWARD>(node) {
            let position = self.positions[neighbour as usize];
            let within = if FORWARD { position <= bound } else { position >= bound };
            let mark = marks[neighbour as usize];
            if mark == 0 && within {
                visits.push((neighbour, *next as u32));
                marks[neighbour as usize] = visits.len() as u32 | own;
            } else if mark != 0 && mark & BEHIND != own {
                let (here, there) = (*next as u32, (mark & !BEHIND) - 1);
                meeting = Some(if FORWARD { (here, there) } else { (there, here) });
            }
        }
        self.marks = marks;
        *next += 1;
        meeting
    }
}
