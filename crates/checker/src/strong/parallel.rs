//! Parallel snapshot isolation: snapshots without lost updates.
//!
//! **Definition** [Sovran11]. Some version orders leave no cycle with fewer
//! than two anti-dependencies. Session order plays no part.
//!
//! **Method.** An order of commits orders the versions of every key, so without
//! anti-dependencies there is no cycle. One with a single anti-dependency leads from a
//! reader to the next version after the one it read, and back to the reader by
//! reads-from and version order. It is searched backwards from the reader, as far as the
//! position of that version: the orders of versions it takes become choices, not all of
//! which hold unless the version that was not seen precedes the one that was.

use super::commits::{CommitLevel, Commits};
use super::cycle::Step;
use super::decision::violated;
use super::forced_orders::{self, OneMissed};
use super::graph::Why;
use super::model::{Events, Model, Node, Protected, Writers};
use super::orders::witness::Pair;
use super::questions::{Asking, Questions};
use super::search::{Because, CycleEdge, Input};
use super::versions::{Divergence, INITIAL_SLOT, NO_SLOT, Slot};
use crate::anomaly::{self, Anomaly, AnomalyKind};
use crate::evidence::{Cycle, Edge, EdgeKind, Reason};
use crate::level::Level;
use crate::naming;
use crate::verdict::Verdict;
use acyclic::{Refined, Solver};
use hashbrown::HashMap;
use isolde_certificate::Rule;
use isolde_history::{History, KeyId, ReadId, TxnId};
use std::collections::VecDeque;

static MODEL: Model = Model {
    level: Level::ParallelSnapshotIsolation,
    events: Events::One,
    writers: Writers::Apart,
    protected: Protected::Everything,
    session: false,
    real_time: &[],
};

/// At most so many cycles of one order become clauses.
const CYCLES_MAX: usize = 2_000;

/// So many nodes are looked at for each node there is, then the cycles found so far become
/// clauses. In an order that is far from what readers saw, every search goes through most of
/// it, and the first few cycles say as much as all of them.
const VISITS_PER_NODE: u64 = 64;

/// Searches for cycles with a single anti-dependency.
pub(super) struct Parallel {
    /// Per transaction, where its versions start in `versions`.
    starts: Vec<u32>,
    /// The versions by transaction.
    versions: Vec<(KeyId, Slot)>,
    /// Reads of repeated values by transaction.
    repeated: HashMap<TxnId, Vec<ReadId>>,
    /// Cycles to begin with.
    known: Vec<OneMissed>,
    back: Back,
    /// By position, how many nodes before it moved since the last order.
    moved: Vec<u32>,
    /// Whether the last order was not looked at to the end.
    is_unfinished: bool,
    /// Who is looked at first: the one after the last that was.
    first: usize,
}

/// A version that a read skipped.
struct Skipped {
    read: ReadId,
    seen: Slot,
    next: Slot,
}

impl CommitLevel for Parallel {
    const ASKS_STRONGER: bool = true;

    fn model() -> &'static Model {
        &MODEL
    }

    fn begin(commits: &mut Commits<'_>) -> Option<Verdict> {
        let &divergence = commits.versions.divergences.first()?;
        let Divergence { first, second } = divergence;
        let (history, cycle) = (commits.versions.history, divergence.cycle(commits.versions));
        let proof = commits.prover().of_parallel_divergence(first, second);
        let anomaly = naming::of_event_cycle(history, MODEL.level, cycle);
        Some(Verdict::Violated(violated(anomaly, Some(proof))))
    }

    fn must_see(_: &Commits<'_>, _: TxnId, _: TxnId) -> bool {
        true
    }

    fn missed_first(commits: &Commits<'_>, read: ReadId, path: &[Step]) -> Verdict {
        let reader = commits.versions.reader(read).0;
        let mut steps = vec![Step { from: reader, to: path[0].from, why: Why::InitialRead(read) }];
        steps.extend_from_slice(path);
        let proof = commits.prover().of_cycle(&steps);
        let anomaly = naming::of_derivation(commits.versions.history, MODEL.level, &proof);
        Verdict::Violated(violated(anomaly, Some(proof)))
    }

    fn anomaly(history: &History, cycle: Cycle) -> Anomaly {
        match cycle.edges.iter().filter(|edge| edge.is_overwriting()).count() {
            0 => naming::of_event_cycle(history, MODEL.level, cycle),
            1 => naming::of_event_cycle(history, MODEL.level, with_anti_dependency(history, cycle)),
            _ => anomaly::of_cycle(history, cycle, AnomalyKind::ReadSkew),
        }
    }

    fn contradicting(commits: &Commits<'_>) -> Option<Self> {
        let known = forced_orders::contradiction(commits)?;
        Some(Parallel { known, ..Self::asking(commits) })
    }

    fn asking(commits: &Commits<'_>) -> Self {
        let (history, index) = (commits.versions.history, commits.versions.index);
        let mut starts = vec![0];
        let mut versions = Vec::with_capacity(index.writers().len());
        for txn in history.txns() {
            if index.is_counted(txn) {
                let slot = |key| commits.versions.slot(key, txn).expect("it writes the key");
                versions.extend(index.written_by(txn).iter().map(|&key| (key, slot(key))));
            }
            starts.push(versions.len() as u32);
        }
        let mut repeated: HashMap<TxnId, Vec<ReadId>> = HashMap::new();
        for read in commits.repeated {
            repeated.entry(read.reader).or_default().push(read.read);
        }
        let nodes = history.txn_count();
        let (back, moved) = (Back::new(nodes), vec![0; nodes + 1]);
        let known = Vec::new();
        Parallel { starts, versions, repeated, known, back, moved, is_unfinished: false, first: 0 }
    }
}

/// A cycle with one edge that holds because a reader saw another version: instead by way
/// of the reader, which has an anti-dependency to where the edge starts.
fn with_anti_dependency(history: &History, mut cycle: Cycle) -> Cycle {
    let at = cycle.edges.iter().position(Edge::is_overwriting).expect("one of them");
    cycle.edges.rotate_left(at);
    let later = cycle.edges.split_off(1);
    let Some(Edge {
        before: missed, reason: Reason::Rule(Rule::Visible { read, key, path }), ..
    }) = cycle.edges.pop()
    else {
        unreachable!("it is first");
    };
    let visible = path;
    let path = match &later[..] {
        [only] if only.kind() == EdgeKind::Wr && only.key() == Some(key) => Vec::new(),
        _ => later,
    };
    let rule = Rule::AntiDependency { read, key, path };
    let mut edges = vec![Edge::by(rule, history.txn_of(read), missed)];
    edges.extend(visible);
    Cycle { edges }
}

impl Asking for Parallel {
    fn ask(
        &mut self,
        questions: &mut Questions<'_>,
        solver: &mut Solver,
        moved: &[Node],
    ) -> Refined {
        if !self.known.is_empty() {
            for cycle in std::mem::take(&mut self.known) {
                tell(questions, solver, &cycle);
            }
            self.is_unfinished = true;
            return Refined::Added;
        }
        let versions = questions.commits.versions;
        let everything = questions.is_first() || self.is_unfinished || !self.repeated.is_empty();
        self.count_moved(solver.positions(), moved);
        self.is_unfinished = false;
        let mut skipped = Vec::new();
        let mut found = 0;
        self.back.visits = 0;
        let txns = versions.history.txn_count();
        let visits_max = VISITS_PER_NODE * txns as u64;
        for place in self.first..self.first + txns {
            let reader = TxnId((place % txns) as u32);
            skipped.clear();
            self.skipped(questions, solver.positions(), reader, everything, &mut skipped);
            if skipped.is_empty() {
                continue;
            }
            self.find(questions, solver.positions(), reader, &skipped);
            for skipped in &skipped {
                if self.back.has(versions.writer(skipped.next).0) {
                    self.refuse(questions, solver, skipped);
                    found += 1;
                }
            }
            if found >= CYCLES_MAX || (found > 0 && self.back.visits > visits_max) {
                self.is_unfinished = true;
                self.first = (place + 1) % txns;
                break;
            }
        }
        solver.worked(self.back.visits);
        if found > 0 { Refined::Added } else { Refined::Complete }
    }
}

impl Parallel {
    fn count_moved(&mut self, positions: &[u32], moved: &[Node]) {
        self.moved.fill(0);
        for &node in moved {
            self.moved[positions[node as usize] as usize + 1] = 1;
        }
        for place in 1..self.moved.len() {
            self.moved[place] += self.moved[place - 1];
        }
    }

    /// Whether a node between two positions moved, or at one of them.
    fn has_moved(&self, first: u32, last: u32) -> bool {
        self.moved[last as usize + 1] > self.moved[first as usize]
    }

    /// Versions that precede a transaction although it read the ones before them. Where
    /// nothing moved, nothing can have changed since the last order.
    fn skipped(
        &self,
        questions: &Questions<'_>,
        positions: &[u32],
        reader: TxnId,
        everything: bool,
        skipped: &mut Vec<Skipped>,
    ) {
        let versions = questions.commits.versions;
        let at = positions[reader.index()];
        for read in versions.index.read_range(reader).map(ReadId) {
            let seen = questions.seen[read.0 as usize];
            if seen == NO_SLOT {
                continue;
            }
            let key = versions.index.read(read).key;
            let Some(&next) = questions.sorted.after(key, seen).first() else { continue };
            let position = |slot: Slot| positions[versions.writer(slot).index()];
            if position(next) >= at {
                continue;
            }
            let seen_moved =
                || seen != INITIAL_SLOT && self.has_moved(position(seen), position(seen));
            if everything || self.has_moved(position(next), at) || seen_moved() {
                skipped.push(Skipped { read, seen, next });
            }
        }
    }

    /// Searches for the writers of skipped versions, backwards from the reader.
    fn find(
        &mut self,
        questions: &Questions<'_>,
        positions: &[u32],
        reader: TxnId,
        skipped: &[Skipped],
    ) {
        let versions = questions.commits.versions;
        let positions_of = skipped.iter().map(|it| positions[versions.writer(it.next).index()]);
        let low = positions_of.min().expect("something was skipped");
        let Parallel { starts, versions: own, repeated, back, .. } = self;
        back.begin(reader.0);
        while let Some((node, cost)) = back.next() {
            let txn = TxnId(node);
            let is_within = |from: Node| positions[from as usize] >= low;
            for from in questions.commits.graph.before(node).filter(|&from| is_within(from)) {
                back.meet(from, Way { to: node, by: By::Known }, cost);
            }
            for &read in repeated.get(&txn).into_iter().flatten() {
                let seen = questions.seen[read.0 as usize];
                if seen != INITIAL_SLOT && is_within(versions.writer(seen).0) {
                    let way = Way { to: node, by: By::Read(read) };
                    back.meet(versions.writer(seen).0, way, cost + 1);
                }
            }
            let range = starts[txn.index()] as usize..starts[txn.index() + 1] as usize;
            for &(key, slot) in &own[range] {
                let Some(earlier) = questions.sorted.before(key, slot) else { continue };
                let from = versions.writer(earlier).0;
                if is_within(from) {
                    let way = Way { to: node, by: By::Versions(key, earlier, slot) };
                    back.meet(from, way, cost + 1);
                }
            }
        }
    }

    /// Adds the clause that a cycle through a skipped version is.
    fn refuse(&mut self, questions: &mut Questions<'_>, solver: &mut Solver, it: &Skipped) {
        let versions = questions.commits.versions;
        let (reader, next) = (versions.reader(it.read).0, versions.writer(it.next).0);
        let taken = questions.taken(it.read);
        let mut literals = Vec::new();
        let because = if it.seen == INITIAL_SLOT {
            literals.extend(taken.map(|taken| !taken));
            taken.map_or(Because::Known(Why::InitialRead(it.read)), Because::Literal)
        } else {
            let order = questions.pair(solver, Pair { first: it.seen, second: it.next });
            literals.push(!order);
            literals.extend(taken.map(|taken| !taken));
            match taken {
                Some(origin) => Because::Overwritten { order, origin },
                None => Because::Literal(order),
            }
        };
        let mut edges = vec![CycleEdge { from: reader, to: next, because }];
        for (from, way) in merged(&self.back.path(next, reader)) {
            let literal = match way.by {
                By::Read(read) => Some(questions.taken(read).expect("it repeats")),
                By::Versions(_, first, second) if !is_known(questions.commits, from, way.to) => {
                    Some(questions.pair(solver, Pair { first, second }))
                }
                By::Known | By::Versions(..) => None,
            };
            let known = || known(questions.commits, from, way.to);
            let because = literal.map_or_else(known, Because::Literal);
            literals.extend(literal.map(|literal| !literal));
            edges.push(CycleEdge { from, to: way.to, because });
        }
        questions.clause(solver, &literals, Input::Cycle(edges));
    }
}

/// Adds the clause that such a cycle is.
fn tell(questions: &mut Questions<'_>, solver: &mut Solver, cycle: &OneMissed) {
    let versions = questions.commits.versions;
    let (from, to) = (versions.reader(cycle.read).0, versions.writer(cycle.next).0);
    let mut literals = Vec::new();
    let because = if cycle.seen == INITIAL_SLOT {
        Because::Known(Why::InitialRead(cycle.read))
    } else {
        let order = questions.pair(solver, Pair { first: cycle.seen, second: cycle.next });
        literals.push(!order);
        Because::Literal(order)
    };
    let mut edges = vec![CycleEdge { from, to, because }];
    for leg in &cycle.path {
        let literal = leg.versions.map(|pair| questions.pair(solver, pair));
        let known = || known(questions.commits, leg.from, leg.to);
        let because = literal.map_or_else(known, Because::Literal);
        literals.extend(literal.map(|literal| !literal));
        edges.push(CycleEdge { from: leg.from, to: leg.to, because });
    }
    questions.clause(solver, &literals, Input::Cycle(edges));
}

fn is_known(commits: &Commits<'_>, from: Node, to: Node) -> bool {
    commits.graph.before(to).any(|other| other == from)
}

fn known(commits: &Commits<'_>, from: Node, to: Node) -> Because {
    Because::Known(commits.premises().step(from, to).why)
}

/// Steps from version to version of one key as one step.
fn merged(path: &[(Node, Way)]) -> Vec<(Node, Way)> {
    let mut steps: Vec<(Node, Way)> = Vec::with_capacity(path.len());
    for &(from, way) in path {
        if let (Some((_, last)), By::Versions(key, _, later)) = (steps.last_mut(), way.by)
            && let By::Versions(last_key, first, _) = last.by
            && last_key == key
        {
            *last = Way { to: way.to, by: By::Versions(key, first, later) };
            continue;
        }
        steps.push((from, way));
    }
    steps
}

/// A step towards the reader.
#[derive(Clone, Copy)]
struct Way {
    to: Node,
    by: By,
}

/// What a step is by.
#[derive(Clone, Copy)]
enum By {
    /// An edge of the graph.
    Known,
    /// A read of a repeated value.
    Read(ReadId),
    /// The order of two versions of a key.
    Versions(KeyId, Slot, Slot),
}

/// A search backwards that prefers known edges.
struct Back {
    /// Per node, the last search that met it, at what cost, and how it goes on.
    met_in: Vec<u32>,
    costs: Vec<u32>,
    ways: Vec<Way>,
    searches: u32,
    /// Nodes that were looked at.
    visits: u64,
    open: VecDeque<(Node, u32)>,
}

impl Back {
    fn new(nodes: usize) -> Self {
        Back {
            met_in: vec![0; nodes],
            costs: vec![0; nodes],
            ways: vec![Way { to: 0, by: By::Known }; nodes],
            searches: 0,
            visits: 0,
            open: VecDeque::new(),
        }
    }

    fn begin(&mut self, end: Node) {
        self.searches += 1;
        self.met_in[end as usize] = self.searches;
        self.costs[end as usize] = 0;
        self.open.push_back((end, 0));
    }

    fn next(&mut self) -> Option<(Node, u32)> {
        while let Some((node, cost)) = self.open.pop_front() {
            if self.costs[node as usize] == cost {
                return Some((node, cost));
            }
        }
        None
    }

    /// A way that costs as much as the node it leads to or one more.
    fn meet(&mut self, node: Node, way: Way, cost: u32) {
        self.visits += 1;
        let place = node as usize;
        if self.met_in[place] == self.searches && self.costs[place] <= cost {
            return;
        }
        self.met_in[place] = self.searches;
        self.costs[place] = cost;
        self.ways[place] = way;
        match way.by {
            By::Known => self.open.push_front((node, cost)),
            _ => self.open.push_back((node, cost)),
        }
    }

    fn has(&self, node: Node) -> bool {
        self.met_in[node as usize] == self.searches
    }

    fn path(&self, start: Node, end: Node) -> Vec<(Node, Way)> {
        let mut path = Vec::new();
        let mut at = start;
        while at != end {
            let way = self.ways[at as usize];
            path.push((at, way));
            at = way.to;
        }
        path
    }
}
