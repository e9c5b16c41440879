//! Why there is no order: cycles, the caller's clauses, and what follows from them.
//!
//! The solver notes every clause it learns with the steps it was derived from, and
//! of a cycle only the edges of choices. A [`Refutation`] is made of that at the end: steps
//! the end does not depend on are left out, and the known edges of cycles are
//! looked up again.

use crate::choice::{Literal, Node};
use crate::graph::Graph;

/// A proof that can be checked without the solver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refutation {
    /// Each step follows from those before it; the last is the empty lemma.
    pub steps: Vec<Step>,
}

/// A clause, and why it is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Not all literals of a cycle are true.
    Cycle {
        /// A closed path: each edge starts where the one before it ends, the first where the last ends.
        path: Vec<PathEdge>,
    },
    /// A clause of the caller.
    Input {
        /// The tag it was given with.
        tag: u32,
        /// At least one of them is true.
        literals: Vec<Literal>,
    },
    /// Follows from the steps before it by unit propagation: were all its literals false,
    /// clauses with one literal left would lead to one with none.
    Lemma {
        /// At least one of them is true.
        literals: Vec<Literal>,
    },
}

/// An edge of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEdge {
    /// The earlier node.
    pub from: Node,
    /// The later node.
    pub to: Node,
    /// The side it belongs to, none if it is known.
    pub literal: Option<Literal>,
}

const CYCLE: u32 = 0;
const INPUT: u32 = 1;
const LEMMA: u32 = 2;

/// What was concluded so far.
#[derive(Default)]
pub(crate) struct Log {
    starts: Vec<usize>,
    /// `CYCLE`, edges; `INPUT`, tag, literals; `LEMMA`, how many literals, literals, steps.
    words: Vec<u32>,
}

impl Log {
    pub(crate) fn cycle(&mut self, edges: &[u32]) -> u32 {
        self.begin(CYCLE);
        self.words.extend_from_slice(edges);
        self.last()
    }

    pub(crate) fn input(&mut self, tag: u32, literals: &[Literal]) -> u32 {
        self.begin(INPUT);
        self.words.push(tag);
        self.words.extend(literals.iter().map(|literal| literal.word()));
        self.last()
    }

    pub(crate) fn lemma(&mut self, literals: &[Literal], from: &[u32]) -> u32 {
        self.begin(LEMMA);
        self.words.push(literals.len() as u32);
        self.words.extend(literals.iter().map(|literal| literal.word()));
        self.words.extend_from_slice(from);
        self.last()
    }

    fn begin(&mut self, kind: u32) {
        self.starts.push(self.words.len());
        self.words.push(kind);
    }

    fn last(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    fn words_of(&self, step: usize) -> &[u32] {
        let end = self.starts.get(step + 1).copied().unwrap_or(self.words.len());
        &self.words[self.starts[step]..end]
    }

    /// The steps that one depends on, and it.
    pub(crate) fn refutation(&self, end: u32, graph: &mut Graph) -> Refutation {
        let mut needed = vec![false; end as usize + 1];
        needed[end as usize] = true;
        for step in (0..=end as usize).rev().filter(|&step| self.words_of(step)[0] == LEMMA) {
            let words = self.words_of(step);
            if needed[step] {
                for &from in &words[2 + words[1] as usize..] {
                    needed[from as usize] = true;
                }
            }
        }
        let steps = (0..=end as usize).filter(|&step| needed[step]);
        Refutation { steps: steps.map(|step| self.step(step, graph)).collect() }
    }

    fn step(&self, step: usize, graph: &mut Graph) -> Step {
        let words = self.words_of(step);
        let literals = |words: &[u32]| words.iter().map(|&word| Literal::from_word(word)).collect();
        match words[0] {
            CYCLE => Step::Cycle { path: closed_path(&words[1..], graph) },
            INPUT => Step::Input { tag: words[1], literals: literals(&words[2..]) },
            _ => Step::Lemma { literals: literals(&words[2..2 + words[1] as usize]) },
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        8 * self.starts.capacity() + 4 * self.words.capacity()
    }
}

/// The edges of choices of a cycle with the known edges between them.
fn closed_path(edges: &[u32], graph: &mut Graph) -> Vec<PathEdge> {
    let mut path = Vec::new();
    for (place, &id) in edges.iter().enumerate() {
        let edge = graph.edges[id as usize];
        path.push(PathEdge { from: edge.from, to: edge.to, literal: Some(edge.literal) });
        let next = graph.edges[edges[(place + 1) % edges.len()] as usize];
        for known in graph.known_path(edge.to, next.from).windows(2) {
            path.push(PathEdge { from: known[0], to: known[1], literal: None });
        }
    }
    path
}
