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
    let mut clauses: Vec<Vec<Literal>> = Vec::new();
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
                clauses.push(clause);
            }
            Step::Input { tag, literals } => {
                let mine: BTreeSet<(usize, bool)> =
                    instance.clauses[*tag as usize].iter().copied().collect();
                let named = literals
                    .iter()
                    .map(|literal| (choices[literal.choice().index()], is_yes(*literal)));
                assert_eq!(mine, named.collect(), "step {place}: another clause");
                clauses.push(literals.clone());
            }
            Step::Lemma { literals } => {
                assert!(follows(&clauses, literals), "step {place}: the lemma does not follow");
                clauses.push(literals.clone());
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
fn follows(clauses: &[Vec<Literal>], lemma: &[Literal]) -> bool {
    let mut falsified: BTreeSet<Literal> = lemma.iter().copied().collect();
    loop {
        let before = falsified.len();
        for clause in clauses {
            let mut open: Vec<Literal> =
                clause.iter().copied().filter(|literal| !falsified.contains(literal)).collect();
            open.sort_unstable();
            open.dedup();
            match open[..] {
                [] => return true,
                [literal] => {
                    falsified.insert(!literal);
                }
                _ => {}
            }
        }
        if falsified.len() == before {
            return false;
        }
    }
}

#[test]
fn a_lemma_that_needs_two_clauses_follows_and_a_guess_does_not() {
    let mut solver =
        acyclic::Solver::new(&[], acyclic::KnownEdges::from_edges(0, &[])).expect("no nodes");
    let [one, two]: [Choice; 2] = [(); 2].map(|()| solver.choice(&[], &[], acyclic::Phase::Yes));
    let clauses = vec![vec![one.yes(), two.yes()], vec![one.yes(), two.no()]];
    assert!(follows(&clauses, &[one.yes()]));
    assert!(!follows(&clauses, &[one.no()]));
}
