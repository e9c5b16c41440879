//! Small facts about single answers.

use crate::instance::{Instance, PLAIN, Sides, solve};
use acyclic::{
    Answer, Edge, KnownEdges, Limits, NothingHidden, OrderError, PathEdge, Phase, Refutation,
    Solver, Step,
};

fn edge(from: u32, to: u32) -> Edge {
    Edge::new(from, to)
}

#[test]
fn an_order_against_a_known_edge_is_refused() {
    let known = || KnownEdges::from_edges(2, &[edge(1, 0)]);
    let refused = |order: &[u32], known| Solver::new(order, known).err();
    assert_eq!(refused(&[0, 1], known()), Some(OrderError::Backward(edge(1, 0))));
    assert_eq!(refused(&[1, 0], known()), None);
    assert_eq!(refused(&[1, 1], known()), Some(OrderError::Incomplete));
    assert_eq!(refused(&[0], known()), Some(OrderError::Malformed));
    let beyond = KnownEdges { starts: vec![0, 1], before: vec![7] };
    assert_eq!(refused(&[0], beyond), Some(OrderError::Malformed));
}

#[test]
fn a_choice_the_order_agrees_with_is_not_decided() {
    let mut solver = Solver::new(&[0, 1], KnownEdges::from_edges(2, &[])).unwrap();
    let choice = solver.choice(&[edge(0, 1)], &[edge(1, 0)], Phase::No);
    assert!(matches!(solver.solve(&mut NothingHidden, &Limits::NONE), Answer::Satisfied));
    assert_eq!((solver.value(choice.yes()), solver.side(choice)), (None, choice.yes()));
    assert_eq!(solver.statistics().decisions, 0);
}

#[test]
fn two_impossible_sides_are_refuted_by_their_two_cycles() {
    let mut solver =
        Solver::new(&[0, 1, 2], KnownEdges::from_edges(3, &[edge(0, 1), edge(1, 2)])).unwrap();
    let choice = solver.choice(&[edge(2, 0)], &[edge(1, 0)], Phase::Yes);
    let known = |from, to| PathEdge { from, to, literal: None };
    let chosen = |from, to, literal| PathEdge { from, to, literal: Some(literal) };
    let Answer::Violated(Refutation { steps }) = solver.solve(&mut NothingHidden, &Limits::NONE)
    else {
        panic!("there is no order");
    };
    // The side that is nearer to the order is tried first.
    let yes = vec![chosen(2, 0, choice.yes()), known(0, 1), known(1, 2)];
    let no = vec![chosen(1, 0, choice.no()), known(0, 1)];
    assert_eq!(
        steps,
        [
            Step::Cycle { path: no },
            Step::Lemma { literals: vec![choice.yes()] },
            Step::Cycle { path: yes },
            Step::Lemma { literals: vec![] }
        ]
    );
}

#[test]
fn an_empty_clause_is_its_own_refutation() {
    let mut solver = Solver::new(&[], KnownEdges::from_edges(0, &[])).unwrap();
    solver.clause(&[], 7);
    let Answer::Violated(refutation) = solver.solve(&mut NothingHidden, &Limits::NONE) else {
        panic!("no clause is empty");
    };
    let input = Step::Input { tag: 7, literals: vec![] };
    assert_eq!(refutation.steps, [input, Step::Lemma { literals: vec![] }]);
}

#[test]
fn more_can_be_added_after_an_answer() {
    let mut solver = Solver::new(&[0, 1, 2], KnownEdges::from_edges(3, &[])).unwrap();
    let one = solver.choice(&[edge(0, 1)], &[edge(1, 0)], Phase::Yes);
    let two = solver.choice(&[edge(1, 2)], &[edge(2, 1)], Phase::Yes);
    solver.clause(&[one.no()], 0);
    assert!(matches!(solver.solve(&mut NothingHidden, &Limits::NONE), Answer::Satisfied));
    solver.extend(one.no(), &[edge(2, 1)]);
    assert!(matches!(solver.solve(&mut NothingHidden, &Limits::NONE), Answer::Satisfied));
    let positions = solver.positions();
    assert!(positions[1] < positions[0] && positions[2] < positions[1]);
    solver.clause(&[two.yes()], 1);
    assert!(matches!(solver.solve(&mut NothingHidden, &Limits::NONE), Answer::Violated(_)));
}

#[test]
fn steps_the_end_does_not_need_are_left_out() {
    // Twenty pairs that are violated and can be turned, then one that cannot.
    let mut instance = Instance { order: (0..42).rev().collect(), ..Instance::default() };
    for pair in 0..20 {
        let (one, other) = (2 * pair, 2 * pair + 1);
        let sides =
            Sides { yes: vec![edge(one, other)], no: vec![edge(one, other)], ..Sides::default() };
        instance.choices.push(sides);
    }
    instance.known.push(edge(41, 40));
    let impossible = Sides { yes: vec![edge(40, 41)], no: vec![edge(40, 41)], ..Sides::default() };
    instance.choices.push(impossible);
    let found = solve(&instance, PLAIN);
    assert_eq!((found.satisfied, found.steps), (false, 4));
}
