//! A checker of refutations that shares nothing with the solver but the types.
//!
//! A cycle must be a closed path of known edges and edges of the sides it names. A lemma
//! must follow by unit propagation. The last step must be the empty lemma.

use crate::instance::Instance;
use acyclic::{Choice, Edge, Literal, Refutation, Step};
use std::collections::BTreeSet;

/// Checks a proof about an instance. `choices` says which choice of the instance
/// each choice of the solver is, `input` the literals of the clause with a tag.
pub(crate) fn check(instance: &Instance, choices: &[usize], refutation: &Refutation) {
    let known: BTreeSet<Edge> = instance.known.iter().copied().collect();
    let mut clauses = Propagation::default();
    for (place, step) in refutation.steps.iter().enumerate() {
        match step {
            Step::Cycle { path } => {
                assert!(!path.is_empty(), "step {place}: an empty cycle");
                let mut previous = path[path.len() - 1].to;
                let mut clause = Vec::new();
                for edge in path {
                    assert_eq!(edge.from, previous, "step {place}: the path is broken");
                    previous = edge.to;
                    let plain = Edge::new(edge.from, edge.to);
                    if let Some(literal) = edge.literal {
                        let side = instance.side_of(choices[literal.choice().index()], literal);
                        assert!(side.contains(&plain), "step {place}: not an edge of its side");
                        clause.push(!literal);
                    } else {
                        assert!(known.contains(&plain), "step {place}: not a known edge");
                    }
                }
                clauses.add(&clause);
            }
            Step::Input { tag, literals } => {
                let mine: BTreeSet<(usize, bool)> =
                    instance.clauses[*tag as usize].iter().copied().collect();
                let named = literals
                    .iter()
                    .map(|literal| (choices[literal.choice().index()], is_yes(*literal)));
                assert_eq!(mine, named.collect(), "step {place}: another clause");
                clauses.add(literals);
            }
            Step::Lemma { literals } => {
                assert!(clauses.gives(literals), "step {place}: the lemma does not follow");
                clauses.add(literals);
            }
        }
    }
    assert_eq!(refutation.steps.last(), Some(&Step::Lemma { literals: Vec::new() }));
}

pub(crate) fn is_yes(literal: Literal) -> bool {
    literal == literal.choice().yes()
}

/// Reverse unit propagation with counters: each clause knows how many of its
/// literals are not false.
#[derive(Default)]
struct Propagation {
    clauses: Vec<Vec<Literal>>,
    open: Vec<usize>,
    /// By literal: the clauses it is in, and whether it is false.
    within: Vec<Vec<usize>>,
    is_false: Vec<bool>,
    falsified: Vec<Literal>,
}

impl Propagation {
    fn add(&mut self, literals: &[Literal]) {
        let mut clause = literals.to_vec();
        clause.sort_unstable();
        clause.dedup();
        for literal in &clause {
            self.grow(*literal);
            self.within[literal.index()].push(self.clauses.len());
        }
        self.open.push(clause.len());
        self.clauses.push(clause);
    }

    fn grow(&mut self, literal: Literal) {
        let needed = literal.index().max((!literal).index()) + 1;
        if self.is_false.len() < needed {
            self.within.resize(needed, Vec::new());
            self.is_false.resize(needed, false);
        }
    }

    /// Whether a contradiction follows when all these literals are false.
    fn gives(&mut self, lemma: &[Literal]) -> bool {
        let mut waiting = lemma.to_vec();
        let units = (self.clauses.iter()).filter(|clause| clause.len() == 1);
        waiting.extend(units.map(|clause| !clause[0]));
        let mut contradiction = self.clauses.iter().any(Vec::is_empty);
        while !contradiction && let Some(literal) = waiting.pop() {
            self.grow(literal);
            if self.is_false[literal.index()] {
                continue;
            }
            contradiction = self.is_false[(!literal).index()];
            self.is_false[literal.index()] = true;
            self.falsified.push(literal);
            for &clause in &self.within[literal.index()] {
                self.open[clause] -= 1;
                if self.open[clause] == 0 {
                    contradiction = true;
                } else if self.open[clause] == 1 {
                    let mut left = self.clauses[clause].iter();
                    let left = left.find(|other| !self.is_false[other.index()]);
                    waiting.push(!*left.expect("one is open"));
                }
            }
        }
        for literal in self.falsified.drain(..) {
            self.is_false[literal.index()] = false;
            for &clause in &self.within[literal.index()] {
                self.open[clause] += 1;
            }
        }
        contradiction
    }
}

#[test]
fn a_lemma_that_needs_two_clauses_follows_and_a_guess_does_not() {
    let mut solver =
        acyclic::Solver::new(&[], acyclic::KnownEdges::from_edges(0, &[])).expect("no nodes");
    let [one, two]: [Choice; 2] = [(); 2].map(|()| solver.choice(&[], &[], acyclic::Phase::Yes));
    let mut clauses = Propagation::default();
    clauses.add(&[one.yes(), two.yes()]);
    clauses.add(&[one.yes(), two.no()]);
    assert!(clauses.gives(&[one.yes()]));
    assert!(!clauses.gives(&[one.no()]));
    assert!(!clauses.gives(&[]));
    clauses.add(&[one.no()]);
    assert!(clauses.gives(&[]));
}
