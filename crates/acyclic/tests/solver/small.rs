//! Thousands of small random instances, each compared with brute force.

use crate::instance::{Instance, PLAIN, Run, Sides, solve};
use acyclic::{Edge, Node};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What may be in an instance.
#[derive(Clone, Copy)]
struct Kind {
    nodes_max: usize,
    choices_max: usize,
    known_percent: u32,
    clauses_max: usize,
    hidden: bool,
    self_loops: bool,
}

const BASE: Kind = Kind {
    nodes_max: 6,
    choices_max: 7,
    known_percent: 15,
    clauses_max: 0,
    hidden: false,
    self_loops: false,
};

fn generate(random: &mut Xoshiro256PlusPlus, kind: Kind) -> Instance {
    let nodes = 2 + random.random_range(0..kind.nodes_max - 1);
    let mut order: Vec<Node> = (0..nodes as Node).collect();
    order.shuffle(random);
    let mut known = Vec::new();
    for later in 0..nodes {
        for earlier in 0..later {
            if random.random_ratio(kind.known_percent, 100) {
                known.push(Edge::new(order[earlier], order[later]));
            }
        }
    }
    let edges = |random: &mut Xoshiro256PlusPlus, most: usize| {
        let count = random.random_range(0..=most);
        let mut edges: Vec<Edge> = Vec::new();
        while edges.len() < count {
            let edge = Edge::new(
                random.random_range(0..nodes) as Node,
                random.random_range(0..nodes) as Node,
            );
            if edge.from != edge.to || (kind.self_loops && random.random_bool(0.3)) {
                edges.push(edge);
            }
        }
        edges
    };
    let mut choices = Vec::new();
    for _ in 0..=random.random_range(0..kind.choices_max) {
        let mut sides = Sides { prefers_no: random.random_bool(0.5), ..Sides::default() };
        sides.yes = edges(random, 3);
        sides.no = edges(random, 3);
        if kind.hidden && random.random_bool(0.4) {
            sides.hidden_yes = edges(random, 2);
            sides.hidden_no = edges(random, 2);
        }
        choices.push(sides);
    }
    let told = if kind.hidden { random.random_range(0..=choices.len()) } else { choices.len() };
    let mut clauses = Vec::new();
    for _ in 0..random.random_range(0..=kind.clauses_max) {
        if told > 0 {
            let literal = |_| (random.random_range(0..told), random.random_bool(0.5));
            clauses.push((0..3).map(literal).collect::<Vec<_>>());
            let len = 1 + random.random_range(0..3);
            clauses.last_mut().expect("just pushed").truncate(len);
        }
    }
    let hidden_clauses = kind.hidden.then(|| random.random_range(0..=clauses.len()));
    let hidden_choices = Some(told);
    Instance { order, known, choices, hidden_choices, clauses, hidden_clauses }
}

fn compare(kind: Kind, seeds: u64) {
    let (mut satisfied, mut violated) = (0, 0);
    for seed in 0..seeds {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let instance = generate(&mut random, kind);
        let expected = instance.is_satisfiable();
        let run = Run {
            at_once: if random.random_bool(0.5) { 1 } else { usize::MAX },
            conflicts_max: random.random_bool(0.2).then_some(1),
        };
        for run in [PLAIN, run] {
            let found = std::panic::catch_unwind(|| solve(&instance, run));
            let found = found.unwrap_or_else(|_| panic!("seed {seed}: {instance:?}"));
            assert_eq!(found.satisfied, expected, "seed {seed}: {instance:?}");
        }
        #[cfg(feature = "cadical")]
        assert_eq!(
            crate::instance::solve_by_cadical(&instance, run),
            expected,
            "CaDiCaL, seed {seed}: {instance:?}"
        );
        *(if expected { &mut satisfied } else { &mut violated }) += 1;
    }
    let least = seeds / 10;
    assert!(satisfied > least && violated > least, "{satisfied} satisfied, {violated} violated");
}

#[test]
fn choices_alone_agree_with_brute_force() {
    compare(BASE, 6_000);
}

#[test]
fn choices_and_clauses_agree_with_brute_force() {
    compare(Kind { clauses_max: 8, known_percent: 5, ..BASE }, 6_000);
}

#[test]
fn loops_at_one_node_agree_with_brute_force() {
    compare(Kind { self_loops: true, clauses_max: 2, ..BASE }, 3_000);
}

#[test]
fn what_is_told_late_agrees_with_brute_force() {
    compare(Kind { hidden: true, clauses_max: 5, ..BASE }, 8_000);
}

#[test]
fn larger_graphs_agree_with_brute_force() {
    compare(Kind { nodes_max: 10, choices_max: 11, hidden: true, self_loops: true, ..BASE }, 1_500);
}
