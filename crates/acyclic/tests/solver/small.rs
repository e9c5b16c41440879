//! Thousands of small random instances, each compared with brute force.

use crate::instance::{Instance, PLAIN, Random, Run, Sides, solve};
use acyclic::{Edge, Node};

/// What may be in an instance.
#[derive(Clone, Copy)]
struct Kind {
    nodes_max: usize,
    choices_max: usize,
    known_percent: usize,
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

fn generate(random: &mut Random, kind: Kind) -> Instance {
    let nodes = 2 + random.below(kind.nodes_max - 1);
    let mut order: Vec<Node> = (0..nodes as Node).collect();
    random.shuffle(&mut order);
    let mut known = Vec::new();
    for later in 0..nodes {
        for earlier in 0..later {
            if random.chance(kind.known_percent) {
                known.push(Edge::new(order[earlier], order[later]));
            }
        }
    }
    let edges = |random: &mut Random, most: usize| {
        let count = random.below(most + 1);
        let mut edges: Vec<Edge> = Vec::new();
        while edges.len() < count {
            let edge = Edge::new(random.below(nodes) as Node, random.below(nodes) as Node);
            if edge.from != edge.to || (kind.self_loops && random.chance(30)) {
                edges.push(edge);
            }
        }
        edges
    };
    let mut choices = Vec::new();
    for _ in 0..=random.below(kind.choices_max) {
        let mut sides = Sides { prefers_no: random.chance(50), ..Sides::default() };
        sides.yes = edges(random, 3);
        sides.no = edges(random, 3);
        if kind.hidden && random.chance(40) {
            sides.hidden_yes = edges(random, 2);
            sides.hidden_no = edges(random, 2);
        }
        choices.push(sides);
    }
    let told = if kind.hidden { random.below(choices.len() + 1) } else { choices.len() };
    let mut clauses = Vec::new();
    for _ in 0..random.below(kind.clauses_max + 1) {
        if told > 0 {
            let literal = |_| (random.below(told), random.chance(50));
            clauses.push((0..3).map(literal).collect::<Vec<_>>());
            let len = 1 + random.below(3);
            clauses.last_mut().expect("just pushed").truncate(len);
        }
    }
    let hidden_clauses = kind.hidden.then(|| random.below(clauses.len() + 1));
    let hidden_choices = Some(told);
    Instance { order, known, choices, hidden_choices, clauses, hidden_clauses }
}

fn compare(kind: Kind, seeds: u64) {
    let (mut satisfied, mut violated) = (0, 0);
    for seed in 0..seeds {
        let mut random = Random(seed);
        let instance = generate(&mut random, kind);
        let expected = instance.is_satisfiable();
        let run = Run {
            at_once: if random.chance(50) { 1 } else { usize::MAX },
            conflicts_max: random.chance(20).then_some(1),
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
