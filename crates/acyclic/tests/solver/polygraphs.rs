//! Polygraphs of some size: histories with a hidden order, and random ones.

use crate::instance::{Instance, PLAIN, Run, Sides, solve};
use acyclic::{Edge, Node};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How large a random polygraph is.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) nodes: usize,
    pub(crate) choices: usize,
    /// How far apart the nodes of a choice are at most.
    pub(crate) window: usize,
}

/// Random choices between near nodes, all of which a hidden order satisfies: harder
/// than histories, whose edges agree with each other.
pub(crate) fn hard(shape: Shape, seed: u64) -> Instance {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let sessions = 10;
    let mut instance = Instance { order: scrambled(shape.nodes, sessions), ..Instance::default() };
    for node in sessions..shape.nodes {
        instance.known.push(Edge::new((node - sessions) as Node, node as Node));
    }
    for _ in 0..shape.choices {
        let near = |random: &mut Xoshiro256PlusPlus| {
            let low = random.random_range(0..shape.nodes - shape.window);
            let one = low + random.random_range(0..shape.window);
            let other = low + random.random_range(0..shape.window);
            (one.min(other) as Node, one.max(other) as Node)
        };
        let mut sides = Sides::default();
        for _ in 0..=random.random_range(0..3) {
            let (low, high) = near(&mut random);
            if low < high {
                sides.yes.push(Edge::new(low, high));
            }
        }
        for _ in 0..=random.random_range(0..3) {
            let (low, high) = near(&mut random);
            if low < high {
                sides.no.push(Edge::new(high, low));
            }
        }
        if random.random_bool(0.5) {
            std::mem::swap(&mut sides.yes, &mut sides.no);
        }
        instance.choices.push(sides);
    }
    instance
}

/// The nodes session by session: an order of the known edges far from the hidden one.
fn scrambled(nodes: usize, sessions: usize) -> Vec<Node> {
    (0..sessions)
        .flat_map(|session| (session..nodes).step_by(sessions))
        .map(|n| n as Node)
        .collect()
}

/// What a generated history is like.
#[derive(Clone, Copy)]
pub(crate) struct Workload {
    pub(crate) txns: usize,
    pub(crate) keys: usize,
    /// How many reads return the version before the last.
    pub(crate) stale: usize,
}

/// Transactions run one after another in sessions, each with two blind writes and two reads.
/// Known are session order and reads-from; open is the order of each two
/// writers of a key.
pub(crate) fn history(workload: Workload, seed: u64) -> Instance {
    let Workload { txns, keys, stale } = workload;
    let sessions = 24.min(txns);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut writers: Vec<Vec<Node>> = vec![Vec::new(); keys];
    // By key: who read which version.
    let mut reads: Vec<Vec<(Node, usize)>> = vec![Vec::new(); keys];
    let mut last_of: Vec<Option<Node>> = vec![None; sessions];
    let mut instance = Instance::default();
    let stale_txns: Vec<usize> =
        (0..stale).map(|_| txns / 2 + random.random_range(0..txns / 2)).collect();
    for txn in 0..txns as Node {
        let session = random.random_range(0..sessions);
        if let Some(last) = last_of[session].replace(txn) {
            instance.known.push(Edge::new(last, txn));
        }
        for _ in 0..2 {
            let key = random.random_range(0..keys);
            let behind = 1 + usize::from(stale_txns.contains(&(txn as usize)));
            if let Some(version) = writers[key].len().checked_sub(behind) {
                reads[key].push((txn, version));
                if writers[key][version] != txn {
                    instance.known.push(Edge::new(writers[key][version], txn));
                }
            }
        }
        for _ in 0..2 {
            let key = random.random_range(0..keys);
            if writers[key].last() != Some(&txn) {
                writers[key].push(txn);
            }
        }
    }
    for key in 0..keys {
        choices_of_key(&writers[key], &reads[key], &mut instance.choices, &mut random);
    }
    instance.choices.shuffle(&mut random);
    instance.order = topological(txns, &instance.known, &mut random);
    instance
}

fn choices_of_key(
    writers: &[Node],
    reads: &[(Node, usize)],
    choices: &mut Vec<Sides>,
    random: &mut Xoshiro256PlusPlus,
) {
    let first = |one: usize, other: usize| {
        let readers =
            reads.iter().filter(|&&(reader, version)| version == one && reader != writers[other]);
        let mut edges = vec![Edge::new(writers[one], writers[other])];
        edges.extend(readers.map(|&(reader, _)| Edge::new(reader, writers[other])));
        edges
    };
    for one in 0..writers.len() {
        for other in 0..one {
            let (low, high) = if random.random_bool(0.5) { (one, other) } else { (other, one) };
            let (yes, no) = (first(low, high), first(high, low));
            choices.push(Sides {
                yes,
                no,
                prefers_no: random.random_bool(0.5),
                ..Sides::default()
            });
        }
    }
}

/// An order of the edges that takes any node that is free.
fn topological(nodes: usize, edges: &[Edge], random: &mut Xoshiro256PlusPlus) -> Vec<Node> {
    let mut waiting = vec![0; nodes];
    let mut after: Vec<Vec<Node>> = vec![Vec::new(); nodes];
    for edge in edges {
        waiting[edge.to as usize] += 1;
        after[edge.from as usize].push(edge.to);
    }
    let mut free: Vec<Node> =
        (0..nodes as Node).filter(|&node| waiting[node as usize] == 0).collect();
    let mut order = Vec::new();
    while !free.is_empty() {
        let node = free.swap_remove(random.random_range(0..free.len()));
        order.push(node);
        for &next in &after[node as usize] {
            waiting[next as usize] -= 1;
            if waiting[next as usize] == 0 {
                free.push(next);
            }
        }
    }
    order
}

#[test]
fn a_serial_execution_is_found_again() {
    for seed in 0..10 {
        let workload = Workload { txns: 600, keys: 60, stale: 0 };
        let found = solve(&history(workload, seed), PLAIN);
        assert!(found.satisfied, "seed {seed}");
        let statistics = found.statistics;
        assert!(statistics.decisions < statistics.choices, "seed {seed}: {statistics:?}");
    }
}

#[test]
fn stale_reads_are_refuted_with_a_proof() {
    let mut violated = 0;
    for seed in 0..20 {
        let workload = Workload { txns: 400, keys: 20, stale: 3 };
        let instance = history(workload, seed);
        violated += usize::from(!solve(&instance, PLAIN).satisfied);
    }
    assert!(violated >= 10, "{violated} of 20");
}

#[test]
fn hidden_choices_give_the_same_answer() {
    for seed in 0..10 {
        let workload = Workload { txns: 150, keys: 10, stale: (seed % 3) as usize };
        let mut instance = history(workload, seed);
        let all = solve(&instance, PLAIN).satisfied;
        instance.hidden_choices = Some(instance.choices.len() / 10);
        for at_once in [1, 10] {
            let found = solve(&instance, Run { at_once, conflicts_max: None });
            assert_eq!(found.satisfied, all, "seed {seed}, {at_once} at once");
        }
    }
}

#[test]
fn random_polygraphs_are_solved_as_they_were_made() {
    for seed in 0..5 {
        let instance = hard(Shape { nodes: 400, choices: 3_000, window: 60 }, seed);
        assert!(solve(&instance, PLAIN).satisfied, "seed {seed}");
    }
}

#[test]
fn random_polygraphs_without_an_order_are_refuted_with_a_proof() {
    for seed in 0..10 {
        let mut instance = hard(Shape { nodes: 300, choices: 1_000, window: 40 }, seed);
        // Some sides are exchanged with those of others, which the hidden order
        // knows nothing of.
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..150 {
            let (one, other) = (random.random_range(0..1_000), random.random_range(0..1_000));
            let no = std::mem::take(&mut instance.choices[one].no);
            instance.choices[one].no = std::mem::replace(&mut instance.choices[other].no, no);
        }
        assert!(!solve(&instance, PLAIN).satisfied, "seed {seed}");
    }
}

/// Clauses of three literals, so many that about half of such instances have no answer, over
/// choices that order few nodes.
fn clauses(choices: usize, seed: u64) -> Instance {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let nodes = 30;
    let mut instance = Instance { order: (0..nodes).collect(), ..Instance::default() };
    for _ in 0..choices {
        let low = random.random_range(0..nodes as usize - 3) as Node;
        let edge = Edge::new(low, low + 1 + random.random_range(0..2_i32).cast_unsigned());
        let (yes, no) = (vec![edge], vec![Edge::new(edge.to, edge.from)]);
        let empty = random.random_bool(0.8);
        let side = |edges: Vec<Edge>| if empty { Vec::new() } else { edges };
        instance.choices.push(Sides { yes: side(yes), no: side(no), ..Sides::default() });
    }
    for _ in 0..choices * 39 / 10 {
        let literal = |_| (random.random_range(0..choices), random.random_bool(0.5));
        instance.clauses.push((0..3).map(literal).collect());
    }
    instance
}

#[test]
fn long_searches_forget_clauses_and_still_prove_their_answers() {
    let (mut satisfied, mut proven_after_forgetting) = (0, 0);
    for seed in 0..8 {
        let found = solve(&clauses(180, seed), PLAIN);
        satisfied += usize::from(found.satisfied);
        let forgot = found.statistics.forgotten > 0;
        proven_after_forgetting += usize::from(!found.satisfied && forgot);
    }
    assert!(satisfied > 0, "{satisfied} of 8 satisfied");
    assert!(proven_after_forgetting > 0, "{proven_after_forgetting} of 8 proven");
}

#[cfg(feature = "cadical")]
#[test]
fn cadical_gives_the_same_answers() {
    use crate::instance::solve_by_cadical;
    let (mut satisfied, mut violated) = (0, 0);
    for seed in 0..20 {
        let workload = Workload { txns: 400, keys: 20, stale: (seed % 4) as usize };
        let mut instance = history(workload, seed);
        let own = solve(&instance, PLAIN).satisfied;
        assert_eq!(solve_by_cadical(&instance, PLAIN), own, "seed {seed}");
        instance.hidden_choices = Some(instance.choices.len() / 10);
        assert_eq!(solve_by_cadical(&instance, PLAIN), own, "seed {seed}, hidden");
        *(if own { &mut satisfied } else { &mut violated }) += 1;
    }
    assert!(satisfied >= 5 && violated >= 5, "{satisfied} satisfied, {violated} violated");
}
