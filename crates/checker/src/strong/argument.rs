//! The plainest argument against a small history: cycles of dependencies, with cases where needed.
//!
//! The engine derives orders in whatever way is fast. Here the dependencies are what the
//! literature calls them: a write is read (wr), a version follows another (ww), a version that
//! was read is replaced (rw), sessions, real time. Everything but the order of versions is
//! known from the start.
//!
//! **Method.** Of two versions whose order is open, one order is tried: if it closes a cycle,
//! the other one holds, and the cycle is the reason. All pairs are tried before any of the new
//! orders is used, so that reasons are as shallow as can be. This ends with a cycle of what is
//! known, or with two versions neither of whose orders is possible, or with nothing new; then
//! one pair is assumed one way and the other, and each case goes on by itself.
//!
//! Of several cycles the shortest is taken, then the one that needs the least derivation, then
//! the one with the fewest anti-dependencies.

use super::Options;
use super::model::{Events, Model, Node, Protected};
use crate::anomaly::{Cases, Evidence};
use crate::evidence::{Cycle, Edge, Reason};
use crate::level::Level;
use isolde_certificate::Rule;
use isolde_history::{History, Index, KeyId, OpId, OpKind, Origin, TxnId};
use std::collections::BinaryHeap;

/// Larger histories have no plain argument.
const TXNS_MAX: usize = 40;
/// Assumptions under assumptions.
const DEPTH_MAX: usize = 4;

/// The argument that a small history violates a level, if it does and the level is one of
/// begins and commits.
pub(crate) fn argue(
    level: Level,
    (history, index): (&History, &Index),
    options: Options,
) -> Option<Evidence> {
    let model = Model::of(level)?;
    if history.txn_count() > TXNS_MAX || !index.several().is_empty() {
        return None;
    }
    let facts = Facts::new(model, history, index, options);
    let mut cycles = (0..=DEPTH_MAX).find_map(|depth| facts.refute(facts.start(), depth))?;
    match cycles.len() {
        1 => Some(Evidence::Cycle(cycles.remove(0))),
        count => Some(Evidence::Cases(Cases { cycles, count, ways: Vec::new(), seen: Vec::new() })),
    }
}

/// What is known from the start.
struct Facts<'a> {
    model: &'static Model,
    nodes: usize,
    index: &'a Index,
    arcs: Vec<Arc>,
    reads: Vec<Read>,
    pairs: Vec<Pair>,
    /// Orders that lists show or the database gave.
    shown: Vec<Order>,
}

/// A read that has anti-dependencies, of a version by a transaction.
struct Read {
    reader: TxnId,
    op: OpId,
    key: KeyId,
    writer: TxnId,
}

/// Two writers of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Pair {
    key: KeyId,
    one: TxnId,
    other: TxnId,
}

/// The version of `first` comes before that of `second`.
#[derive(Clone)]
struct Order {
    key: KeyId,
    first: TxnId,
    second: TxnId,
    why: Reason,
    /// How much it takes to tell why.
    cost: u64,
}

impl Order {
    fn is_of(&self, pair: Pair) -> bool {
        self.key == pair.key
            && ((self.first, self.second) == (pair.one, pair.other)
                || (self.first, self.second) == (pair.other, pair.one))
    }
}

/// An edge between events.
#[derive(Clone)]
struct Arc {
    from: Node,
    to: Node,
    /// Nothing for a begin before its commit.
    edge: Option<Edge>,
    cost: u64,
    is_anti: bool,
}

/// Cost of an edge by itself; everything else only decides between cycles of one length.
const EDGE: u64 = 1 << 32;
/// Cost of an edge that another one follows from.
const DERIVED: u64 = 1 << 16;
const ANTI: u64 = 64;

/// A closed path.
struct Closed {
    arcs: Vec<Arc>,
    cost: u64,
}

impl Closed {
    fn edges(&self) -> Vec<Edge> {
        self.arcs.iter().filter_map(|arc| arc.edge.clone()).collect()
    }

    /// How far it is from plain: 0 without anti-dependencies, 1 with the one that is
    /// tried, 2 with another one, 3 with more.
    fn rank(&self) -> usize {
        match self.arcs.iter().filter(|arc| arc.is_anti).count() {
            0 => 0,
            1 if self.arcs[0].is_anti => 1,
            1 => 2,
            _ => 3,
        }
    }
}

impl<'a> Facts<'a> {
    fn new(
        model: &'static Model,
        history: &'a History,
        index: &'a Index,
        options: Options,
    ) -> Facts<'a> {
        let nodes = model.events_of(history.txn_count());
        let (arcs, reads) = (Vec::new(), Vec::new());
        let (pairs, shown) = (Vec::new(), Vec::new());
        let mut facts = Facts { model, nodes, index, arcs, reads, pairs, shown };
        facts.events(history);
        facts.sessions_and_times(history, options);
        facts.dependencies(history);
        facts.versions(options);
        facts
    }

    fn add(&mut self, from: Node, to: Node, edge: Edge, (preference, is_anti): (u64, bool)) {
        let anti = if is_anti { ANTI } else { 0 };
        self.arcs.push(Arc { from, to, edge: Some(edge), cost: EDGE + anti + preference, is_anti });
    }

    fn counted(&self, history: &History) -> Vec<TxnId> {
        history.txns().filter(|&txn| self.index.is_counted(txn)).collect()
    }

    fn events(&mut self, history: &History) {
        if self.model.events == Events::Two {
            for txn in history.txns() {
                let (from, to) = (self.model.begin(txn), self.model.commit(txn));
                self.arcs.push(Arc { from, to, edge: None, cost: 1, is_anti: false });
            }
        }
    }

    fn sessions_and_times(&mut self, history: &History, options: Options) {
        let (model, counted) = (self.model, self.counted(history));
        let keeps_sessions = model.session && options.sources.session;
        for (place, &later) in counted.iter().enumerate().filter(|_| keeps_sessions) {
            let session = history.session_of(later);
            let before = counted[..place].iter().filter(|&&txn| history.session_of(txn) == session);
            for &earlier in before {
                let edge = Edge::session(earlier, later);
                self.add(model.commit(earlier), model.begin(later), edge, (3, false));
            }
        }
        for rule in model.real_time.iter().filter(|_| options.sources.real_time) {
            for (&before, &after) in
                counted.iter().flat_map(|one| counted.iter().map(move |other| (one, other)))
            {
                for (&from, &to) in
                    rule.from.iter().flat_map(|one| rule.to.iter().map(move |other| (one, other)))
                {
                    let completed = from.completed(history, before, options.clock_drift);
                    let invoked = to.interval(history, after).invoked;
                    if before != after && completed < invoked {
                        let edge = Edge::by(Rule::RealTime, before, after);
                        let (from, to) = (model.event(before, from), model.event(after, to));
                        self.add(from, to, edge, (4, false));
                    }
                }
            }
        }
    }

    fn is_protected(&self, history: &History, reader: TxnId, op: OpId, key: KeyId) -> bool {
        let kind = history.op(op).kind;
        let is_item = !matches!(kind, OpKind::PredicateRead | OpKind::PredicateUpdate);
        match self.model.protected {
            Protected::Everything => true,
            Protected::Items => is_item,
            Protected::RewrittenItems => is_item && self.index.writes(reader, key),
        }
    }

    fn writers(&self, key: KeyId) -> Vec<TxnId> {
        let writers = self.index.writers_of(key).iter().copied();
        writers.filter(|&txn| self.index.is_counted(txn)).collect()
    }

    fn dependencies(&mut self, history: &History) {
        let model = self.model;
        for reader in self.counted(history) {
            let reads: Vec<_> = self.index.reads_of(reader).collect();
            for read in reads {
                let (op, key) = (read.op, read.key);
                let is_protected = self.is_protected(history, reader, op, key);
                match read.origin {
                    Origin::Txn(writer) if writer != reader => {
                        let edge = Edge::reads_from(writer, reader, op, key);
                        self.add(model.commit(writer), model.begin(reader), edge, (1, false));
                        if is_protected {
                            self.reads.push(Read { reader, op, key, writer });
                        }
                    }
                    Origin::Initial if is_protected => {
                        for writer in self.writers(key).into_iter().filter(|&it| it != reader) {
                            let edge =
                                Edge::by(Rule::InitialRead { read: op, key }, reader, writer);
                            self.add(model.begin(reader), model.commit(writer), edge, (0, true));
                        }
                    }
                    _ => {}
                }
            }
        }
        for key in history.keys() {
            let writers = self.writers(key);
            for (place, &one) in writers.iter().enumerate() {
                let others = writers[place + 1..].iter();
                self.pairs.extend(others.map(|&other| Pair { key, one, other }));
            }
        }
    }

    fn versions(&mut self, options: Options) {
        for step in self.index.steps() {
            if options.sources.show(step) {
                self.shown.push(Order {
                    key: step.key,
                    first: step.before,
                    second: step.after,
                    why: Edge::version(step).reason,
                    cost: 0,
                });
            }
        }
    }

    fn start(&self) -> Vec<Order> {
        self.shown.clone()
    }

    /// What an order of two versions means: the version order itself, and anti-dependencies
    /// of those who read the first.
    fn arcs_of(&self, order: &Order) -> Vec<Arc> {
        let Order { key, first, second, .. } = *order;
        let model = self.model;
        let derived = order.cost * DERIVED;
        let mut arcs = vec![Arc {
            from: model.commit(first),
            to: model.next_writer(second),
            edge: Some(Edge::new(first, second, order.why.clone())),
            cost: EDGE + derived + 2,
            is_anti: false,
        }];
        let is_assumed = matches!(order.why, Reason::Assumed { .. });
        let readers = self
            .reads
            .iter()
            .filter(|read| read.key == key && read.writer == first && read.reader != second);
        for read in readers {
            let reason = if is_assumed {
                order.why.clone()
            } else {
                let path = vec![Edge::new(first, second, order.why.clone())];
                Reason::Rule(Rule::AntiDependency { read: read.op, key, path })
            };
            arcs.push(Arc {
                from: model.begin(read.reader),
                to: model.commit(second),
                edge: Some(Edge::new(read.reader, second, reason)),
                cost: EDGE + derived + ANTI,
                is_anti: true,
            });
        }
        arcs
    }

    fn graph(&self, orders: &[Order]) -> Vec<Arc> {
        let derived = orders.iter().flat_map(|order| self.arcs_of(order));
        self.arcs.iter().cloned().chain(derived).collect()
    }

    /// The best closed path that begins with this edge.
    fn closed_by(&self, graph: &[Arc], first: &Arc) -> Option<Closed> {
        let mut best: Vec<(u64, Option<usize>)> = vec![(u64::MAX, None); self.nodes];
        let mut open: BinaryHeap<(std::cmp::Reverse<u64>, Node)> = BinaryHeap::new();
        best[first.to as usize] = (first.cost, None);
        open.push((std::cmp::Reverse(first.cost), first.to));
        while let Some((std::cmp::Reverse(cost), node)) = open.pop() {
            if node == first.from {
                break;
            }
            if cost > best[node as usize].0 {
                continue;
            }
            for (place, arc) in graph.iter().enumerate().filter(|(_, arc)| arc.from == node) {
                let total = cost + arc.cost;
                if total < best[arc.to as usize].0 {
                    best[arc.to as usize] = (total, Some(place));
                    open.push((std::cmp::Reverse(total), arc.to));
                }
            }
        }
        let cost = best[first.from as usize].0;
        if cost == u64::MAX {
            return None;
        }
        let mut arcs = Vec::new();
        let mut node = first.from;
        while let (_, Some(place)) = best[node as usize] {
            arcs.push(graph[place].clone());
            node = graph[place].from;
        }
        arcs.push(first.clone());
        arcs.reverse();
        Some(Closed { arcs, cost })
    }

    fn best_cycle(&self, graph: &[Arc]) -> Option<Closed> {
        let starts = graph.iter().filter(|arc| arc.edge.is_some());
        starts.filter_map(|arc| self.closed_by(graph, arc)).min_by_key(|closed| closed.cost)
    }

    /// The best cycle that one order of two versions would close.
    fn contradiction(&self, graph: &[Arc], pair: Pair) -> Option<Closed> {
        let Pair { key, one: first, other: second } = pair;
        let why = Reason::Assumed { key, first, second };
        let assumed = self.arcs_of(&Order { key, first, second, why, cost: 0 });
        let closed = assumed.iter().filter_map(|arc| self.closed_by(graph, arc));
        closed.min_by_key(|closed| (closed.rank(), closed.cost))
    }

    /// Cycles, one for each case, or `None` if there are none so far.
    fn refute(&self, mut orders: Vec<Order>, depth: usize) -> Option<Vec<Cycle>> {
        loop {
            let graph = self.graph(&orders);
            if let Some(closed) = self.best_cycle(&graph) {
                return Some(vec![Cycle { edges: closed.edges() }]);
            }
            let mut found: Vec<Order> = Vec::new();
            let mut both: Option<(u64, Vec<Cycle>, Option<Order>)> = None;
            for &pair in &self.pairs {
                if orders.iter().any(|order| order.is_of(pair)) {
                    continue;
                }
                let turned = Pair { one: pair.other, other: pair.one, ..pair };
                let forth = self.contradiction(&graph, pair);
                let back = self.contradiction(&graph, turned);
                match (forth, back) {
                    (None, None) => {}
                    (Some(forth), None) => found.push(self.follows(turned, &forth)),
                    (None, Some(back)) => found.push(self.follows(pair, &back)),
                    (Some(forth), Some(back)) => {
                        let cost = forth.cost + back.cost;
                        if both.as_ref().is_none_or(|known| cost < known.0) {
                            both = Some(self.neither((pair, &forth), (turned, &back), cost));
                        }
                    }
                }
            }
            match both {
                Some((_, _, Some(order))) => orders.push(order),
                Some((_, cycles, None)) => return Some(cycles),
                None if found.is_empty() => return self.by_cases(&orders, depth),
                None => orders.extend(found),
            }
        }
    }

    /// Neither order of two versions is possible. If one is so more plainly, the other one is
    /// left, and what it leads to is the argument.
    fn neither(
        &self,
        (pair, forth): (Pair, &Closed),
        (turned, back): (Pair, &Closed),
        cost: u64,
    ) -> (u64, Vec<Cycle>, Option<Order>) {
        let cycle = |closed: &Closed| Cycle { edges: closed.edges() };
        let edges = |closed: &Closed| closed.cost / EDGE;
        match (forth.rank(), edges(forth)).cmp(&(back.rank(), edges(back))) {
            std::cmp::Ordering::Less => (cost, Vec::new(), Some(self.follows(turned, forth))),
            std::cmp::Ordering::Greater => (cost, Vec::new(), Some(self.follows(pair, back))),
            std::cmp::Ordering::Equal => (cost, vec![cycle(forth), cycle(back)], None),
        }
    }

    /// The order of `pair`, because the other one closes a cycle. That begins with the edge
    /// that was tried.
    fn follows(&self, pair: Pair, closed: &Closed) -> Order {
        let Pair { key, one: first, other: second } = pair;
        let tried = &closed.arcs[0];
        let rest: Vec<Edge> = closed.arcs[1..].iter().filter_map(|arc| arc.edge.clone()).collect();
        let why = match &tried.edge {
            Some(edge) if tried.is_anti => {
                let reader = edge.before;
                let read = self
                    .reads
                    .iter()
                    .find(|read| read.reader == reader && read.key == key && read.writer == second);
                let read = read.expect("the read that was tried").op;
                Rule::Visible { read, key, path: rest }
            }
            _ => Rule::Pair { key, path: rest },
        };
        let cost = closed.cost / EDGE + closed.cost % EDGE / DERIVED;
        Order { key, first, second, why: Reason::Rule(why), cost }
    }

    fn by_cases(&self, orders: &[Order], depth: usize) -> Option<Vec<Cycle>> {
        let depth = depth.checked_sub(1)?;
        let open = self.pairs.iter().filter(|&&pair| !orders.iter().any(|it| it.is_of(pair)));
        let mut best: Option<Vec<Cycle>> = None;
        for &pair in open {
            let case = |first, second| {
                let why = Reason::Assumed { key: pair.key, first, second };
                let mut orders = orders.to_vec();
                orders.push(Order { key: pair.key, first, second, why, cost: 0 });
                self.refute(orders, depth)
            };
            let Some(mut cycles) = case(pair.one, pair.other) else { continue };
            let Some(others) = case(pair.other, pair.one) else { continue };
            cycles.extend(others);
            if best.as_ref().is_none_or(|best| cycles.len() < best.len()) {
                best = Some(cycles);
            }
        }
        best
    }
}
