//! The same question, asked of CaDiCaL: a second engine that the first is compared with.
//!
//! **Method.** CaDiCaL takes sides by the clauses it was given, and knows nothing of the
//! graph. If the edges of these sides and the known ones leave cycles, short ones become
//! clauses and it is asked again; else an order of them is shown to [`Refine`]. Choices in no
//! clause yet have no meaningful value, so they take the side that agrees with the last order.
//!
//! What the own search finds out about its order, its clauses and its conflicts plays no
//! part here: only the lists of edges and clauses that the caller gave are shared.

use crate::choice::{Choice, Literal, Node};
use crate::graph::{ChoiceEdge, NONE, columns};
use crate::limits::{Limits, Stop};
use crate::solver::{Refine, Refined, Solver};
use cadical_sys::{CaDiCal, Status};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Conflicts of CaDiCaL between two looks at the limits.
const CONFLICTS_BETWEEN: i32 = 5_000;
/// At most so many cycles of one assignment become clauses.
const CYCLES_MAX: usize = 200;

/// What CaDiCaL answers. It proves nothing that could be checked here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Unproven {
    /// [`Solver::positions`] is an order that agrees with a side of every choice.
    Satisfied,
    /// There is no such order.
    Violated,
    /// A limit was reached.
    Stopped(Stop),
}

impl Solver {
    /// As [`Solver::solve`], by CaDiCaL. A solver is for one of the two: what the own
    /// search has learned is not told to CaDiCaL. Its memory does not count.
    pub fn solve_by_cadical<R: Refine>(&mut self, refine: &mut R, limits: &Limits<'_>) -> Unproven {
        let mut asked = Lazy { sat: CaDiCal::new(), constrained: Vec::new(), cycles: 0 };
        loop {
            if self.refuted.is_some() {
                return Unproven::Violated;
            }
            asked.tell(self);
            match asked.sat.solve() {
                Status::SATISFIABLE => {}
                Status::UNSATISFIABLE => return Unproven::Violated,
                Status::UNKNOWN => {
                    if let Some(stop) = self.stop_of_cadical(limits) {
                        return Unproven::Stopped(stop);
                    }
                    continue;
                }
            }
            asked.take_sides(self);
            let taken = Taken::new(self);
            let left = match taken.sorted(self) {
                Ok(order) => {
                    self.follow(&order);
                    if self.refine(refine) == Refined::Complete {
                        return Unproven::Satisfied;
                    }
                    None
                }
                Err(left) => Some(left),
            };
            if let Some(left) = left {
                asked.refuse_cycles(self, &taken, &left);
            }
            self.statistics.conflicts =
                asked.sat.get_statistic_value("conflicts").max(0).cast_unsigned() + asked.cycles;
            if let Some(stop) = self.stop_of_cadical(limits) {
                return Unproven::Stopped(stop);
            }
        }
    }

    fn stop_of_cadical(&self, limits: &Limits<'_>) -> Option<Stop> {
        let many = limits.conflicts_max.is_some_and(|most| self.statistics.conflicts >= most);
        self.reached(limits).or(many.then_some(Stop::Conflicts))
    }

    /// Takes over an order of all nodes.
    fn follow(&mut self, order: &[Node]) {
        for (position, &node) in order.iter().enumerate() {
            if self.graph.positions[node as usize] != position as u32 {
                self.graph.positions[node as usize] = position as u32;
                self.graph.note_moved(node);
            }
        }
    }

    /// The edges of a side.
    fn edges_of(&self, literal: Literal) -> impl Iterator<Item = ChoiceEdge> + '_ {
        let mut next = self.graph.lists[literal.index()].0;
        std::iter::from_fn(move || {
            let edge = *self.graph.edges.get(next as usize).filter(|_| next != NONE)?;
            next = edge.next_of_literal;
            Some(edge)
        })
    }
}

/// CaDiCaL and what it was told.
struct Lazy {
    sat: CaDiCal,
    /// By choice: it is in a clause.
    constrained: Vec<bool>,
    cycles: u64,
}

/// The number of a choice for CaDiCaL, negative for its second side.
fn number(literal: Literal) -> i32 {
    let variable = i32::try_from(literal.choice().index() + 1).expect("choices fit in 31 bits");
    if literal == literal.choice().yes() { variable } else { -variable }
}

impl Lazy {
    /// Tells the clauses that are new, and which sides are near to the order.
    fn tell(&mut self, solver: &mut Solver) {
        self.constrained.resize(solver.choice_count(), false);
        solver.late_edges.clear();
        for clause in std::mem::take(&mut solver.late_clauses) {
            let literals: Vec<Literal> = solver.clauses.literals(clause).collect();
            self.clause(&literals);
        }
        for choice in (0..solver.choice_count()).map(Choice::at) {
            if self.constrained[choice.index()] {
                self.sat.phase(number(solver.nearest(choice)));
            }
        }
        self.sat.limit("conflicts", CONFLICTS_BETWEEN);
    }

    fn clause(&mut self, literals: &[Literal]) {
        for literal in literals {
            self.constrained[literal.choice().index()] = true;
            self.sat.add(number(*literal));
        }
        self.sat.add(0);
    }

    fn take_sides(&mut self, solver: &mut Solver) {
        for choice in (0..solver.choice_count()).map(Choice::at) {
            let side = match self.constrained[choice.index()] {
                true if self.sat.val(number(choice.yes())) > 0 => choice.yes(),
                true => choice.no(),
                false => solver.nearest(choice),
            };
            solver.trail.values[side.index()] = 1;
            solver.trail.values[(!side).index()] = -1;
        }
    }

    /// Not all edges of a cycle hold. Every cycle has an edge of a side that leads backward
    /// in the last order, so one search for each of these finds some.
    fn refuse_cycles(&mut self, solver: &Solver, taken: &Taken, left: &[bool]) {
        let position = |node: Node| solver.graph.positions[node as usize];
        let mut walk = Walk::new(left.len());
        let mut found = 0;
        for edge in &taken.edges {
            let within = left[edge.from as usize] && left[edge.to as usize];
            if !within || position(edge.from) < position(edge.to) || found >= CYCLES_MAX {
                continue;
            }
            if let Some(mut literals) = walk.between(solver, taken, left, (edge.to, edge.from)) {
                literals.push(edge.literal);
                literals.sort_unstable();
                literals.dedup();
                let clause: Vec<Literal> = literals.into_iter().map(|literal| !literal).collect();
                self.clause(&clause);
                found += 1;
            }
        }
        assert!(found > 0, "nodes are left only if there is a cycle");
        self.cycles += found as u64;
    }
}

/// The edges of the sides that are taken.
struct Taken {
    edges: Vec<ChoiceEdge>,
    /// By node: where its edges start in `out`, which has places in `edges`.
    starts: Vec<u32>,
    out: Vec<u32>,
}

impl Taken {
    fn new(solver: &Solver) -> Taken {
        let literals = (0..solver.choice_count()).map(|choice| {
            let yes = Choice::at(choice).yes();
            if solver.trail.value(yes) > 0 { yes } else { !yes }
        });
        let edges: Vec<ChoiceEdge> =
            literals.flat_map(|literal| solver.edges_of(literal).collect::<Vec<_>>()).collect();
        let (starts, out) = columns(solver.graph.positions.len(), edges.len(), |visit| {
            for (place, edge) in edges.iter().enumerate() {
                visit(edge.from, place as u32);
            }
        });
        Taken { edges, starts, out }
    }

    fn out(&self, node: Node) -> impl Iterator<Item = &ChoiceEdge> {
        let range = self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize;
        self.out[range].iter().map(|&place| &self.edges[place as usize])
    }

    /// An order as near to the last one as possible; if there is none, which nodes are left.
    fn sorted(&self, solver: &Solver) -> Result<Vec<Node>, Vec<bool>> {
        let graph = &solver.graph;
        let nodes = graph.positions.len();
        let mut waiting: Vec<usize> =
            (0..nodes as Node).map(|node| graph.known::<false>(node).len()).collect();
        for edge in &self.edges {
            waiting[edge.to as usize] += 1;
        }
        let rank = |node: Node| Reverse((graph.positions[node as usize], node));
        let free = (0..nodes as Node).filter(|&node| waiting[node as usize] == 0);
        let mut free: BinaryHeap<_> = free.map(rank).collect();
        let mut order = Vec::with_capacity(nodes);
        while let Some(Reverse((_, node))) = free.pop() {
            order.push(node);
            let after = graph.known::<true>(node).iter().copied();
            for next in after.chain(self.out(node).map(|edge| edge.to)) {
                waiting[next as usize] -= 1;
                if waiting[next as usize] == 0 {
                    free.push(rank(next));
                }
            }
        }
        if order.len() == nodes {
            return Ok(order);
        }
        Err(waiting.into_iter().map(|edges| edges > 0).collect())
    }
}

/// Searches for the way with the fewest edges of sides.
struct Walk {
    /// By node: the search that met it last, its cost, and the node before it and literal.
    met: Vec<(u32, u32)>,
    from: Vec<(Node, Option<Literal>)>,
    searches: u32,
}

impl Walk {
    fn new(nodes: usize) -> Walk {
        Walk { met: vec![(0, 0); nodes], from: vec![(0, None); nodes], searches: 0 }
    }

    fn between(
        &mut self,
        solver: &Solver,
        taken: &Taken,
        left: &[bool],
        (start, end): (Node, Node),
    ) -> Option<Vec<Literal>> {
        self.searches += 1;
        self.met[start as usize] = (self.searches, 0);
        let mut open = VecDeque::from([(start, 0)]);
        while let Some((node, cost)) = open.pop_front() {
            if node == end {
                return Some(self.literals(start, end));
            }
            if self.met[node as usize].1 < cost {
                continue;
            }
            let known = solver.graph.known::<true>(node).iter().map(|&next| (next, None));
            let sides = taken.out(node).map(|edge| (edge.to, Some(edge.literal)));
            for (next, literal) in known.chain(sides).filter(|(next, _)| left[*next as usize]) {
                let cost = cost + u32::from(literal.is_some());
                let (search, earlier) = self.met[next as usize];
                if search == self.searches && earlier <= cost {
                    continue;
                }
                self.met[next as usize] = (self.searches, cost);
                self.from[next as usize] = (node, literal);
                match literal {
                    None => open.push_front((next, cost)),
                    Some(_) => open.push_back((next, cost)),
                }
            }
        }
        None
    }

    fn literals(&self, start: Node, end: Node) -> Vec<Literal> {
        let mut literals = Vec::new();
        let mut node = end;
        while node != start {
            let (before, literal) = self.from[node as usize];
            literals.extend(literal);
            node = before;
        }
        literals
    }
}
