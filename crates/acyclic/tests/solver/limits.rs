//! Searches that must end early, and do.

use crate::polygraphs::{Shape, hard};
use acyclic::{
    Answer, Edge, KnownEdges, Limits, NothingHidden, Phase, Refine, Refined, Solver, Stop,
};
use std::sync::atomic::{AtomicU64, Ordering};

/// A solver with enough to do to be stopped: it meets 21 contradictions.
fn busy() -> Solver {
    let instance = hard(Shape { nodes: 1_000, choices: 10_000, window: 200 }, 3);
    let known = KnownEdges::from_edges(instance.order.len(), &instance.known);
    let mut solver = Solver::new(&instance.order, known).unwrap();
    for sides in &instance.choices {
        solver.choice(&sides.yes, &sides.no, Phase::Yes);
    }
    solver
}

#[test]
fn a_search_ends_when_it_is_asked_to() {
    let mut solver = busy();
    let stop = || true;
    let limits = Limits { stop: &stop, ..Limits::NONE };
    assert!(matches!(solver.solve(&mut NothingHidden, &limits), Answer::Stopped(Stop::Asked)));
    let begun = solver.statistics();
    assert!(begun.propagations + begun.decisions < 5_000);
}

#[test]
fn the_caller_is_asked_every_few_thousand_propagations() {
    let mut solver = busy();
    let asked = AtomicU64::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) > 20;
    let limits = Limits { stop: &stop, ..Limits::NONE };
    let _ = solver.solve(&mut NothingHidden, &limits);
    let statistics = solver.statistics();
    let least = (statistics.propagations + statistics.decisions) / 5_000;
    assert!(asked.load(Ordering::Relaxed) >= least, "{statistics:?}");
}

#[test]
fn a_chain_of_conclusions_can_be_interrupted() {
    // One decision, and everything follows: each choice is refuted by the one before.
    let nodes = 20_000;
    let order: Vec<u32> = (0..nodes).collect();
    let mut solver = Solver::new(&order, KnownEdges::from_edges(order.len(), &[])).unwrap();
    let choices: Vec<_> = (1..nodes)
        .map(|node| solver.choice(&[Edge::new(node - 1, node)], &[], Phase::Yes))
        .collect();
    for (place, pair) in choices.windows(2).enumerate() {
        solver.clause(&[pair[0].no(), pair[1].yes()], place as u32);
    }
    solver.clause(&[choices[0].yes()], nodes);
    let asked = AtomicU64::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) > 2;
    let limits = Limits { stop: &stop, ..Limits::NONE };
    assert!(matches!(solver.solve(&mut NothingHidden, &limits), Answer::Stopped(Stop::Asked)));
    assert!(matches!(solver.solve(&mut NothingHidden, &Limits::NONE), Answer::Satisfied));
    assert!(choices.iter().all(|choice| solver.value(choice.yes()) == Some(true)));
}

#[test]
fn a_search_ends_when_memory_does() {
    let mut solver = busy();
    let limits = Limits { memory_bytes_max: Some(10_000), ..Limits::NONE };
    assert!(matches!(solver.solve(&mut NothingHidden, &limits), Answer::Stopped(Stop::Memory)));
    assert!(solver.memory_bytes() > 10_000);
}

#[test]
fn a_search_ends_after_its_conflicts_and_can_go_on() {
    let mut solver = busy();
    let limits = Limits { conflicts_max: Some(5), ..Limits::NONE };
    for _ in 0..3 {
        let before = solver.statistics().conflicts;
        let answer = solver.solve(&mut NothingHidden, &limits);
        assert!(matches!(answer, Answer::Stopped(Stop::Conflicts)));
        assert!(solver.statistics().conflicts >= before + 5);
    }
    assert!(!matches!(solver.solve(&mut NothingHidden, &Limits::NONE), Answer::Stopped(_)));
}

#[test]
fn a_search_ends_after_its_work_and_can_go_on() {
    let (mut solver, mut other) = (busy(), busy());
    let limits = Limits { work_max: Some(1_000), ..Limits::NONE };
    for _ in 0..3 {
        for solver in [&mut solver, &mut other] {
            let answer = solver.solve(&mut NothingHidden, &limits);
            assert!(matches!(answer, Answer::Stopped(Stop::Work)));
        }
        // Work is no time: it ends where it ended before.
        assert_eq!(solver.statistics(), other.statistics());
    }
    assert!(!matches!(solver.solve(&mut NothingHidden, &Limits::NONE), Answer::Stopped(_)));
}

/// Asks about nothing new, again and again, and looks at many nodes each time.
struct Laborious {
    asked: u32,
}

impl Refine for Laborious {
    fn refine(&mut self, solver: &mut Solver, _: &[u32]) -> Refined {
        solver.choice(&[Edge::new(0, 1)], &[Edge::new(1, 0)], Phase::Yes);
        solver.worked(8_000);
        self.asked += 1;
        Refined::Added
    }
}

#[test]
fn what_is_done_between_two_orders_is_work_too() {
    let mut solver = Solver::new(&[0, 1], KnownEdges::from_edges(2, &[])).unwrap();
    let mut laborious = Laborious { asked: 0 };
    let limits = Limits { work_max: Some(3_000), ..Limits::NONE };
    assert!(matches!(solver.solve(&mut laborious, &limits), Answer::Stopped(Stop::Work)));
    assert_eq!(laborious.asked, 3);
}
