//! An order of events along the times that clients noted, repaired where it is wrong.
//!
//! Most databases do what their clients' clocks say. So the events are taken from the
//! last to the first by their times, as far as known edges and real time let them. Real
//! time needs no edges here: an event may come last if nothing that is left was invoked
//! after it had completed, and the latest invocations are at hand. Versions whose order
//! this gets wrong are then told apart by edges of their own, a few times over. What
//! still does not fit is left to the solver.

use super::witness::{Pair, Witness, suspects};
use crate::strong::graph::Graph;
use crate::strong::model::{Event, Events, Model, Node};
use crate::strong::reads_by_slot::SomeReads;
use crate::strong::saturate::positions;
use crate::strong::versions::{Slot, Versions};
use hashbrown::{HashMap, HashSet};
use isolde_history::{ALWAYS, History, KeyId, NEVER, ReadId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Repairs before the solver is asked.
const REPAIRS_MAX: usize = 8;
/// More wrong pairs than one in so many events are no slips of clocks.
const EVENTS_PER_WRONG_PAIR: usize = 16;

/// See the module's documentation.
pub(in crate::strong) struct OrderOfTimes<'a> {
    graph: &'a Graph,
    versions: &'a Versions<'a>,
    clock_drift: Time,
    /// Edges that repair the guess, by their later end.
    repairs: HashMap<Node, Vec<Node>>,
}

impl<'a> OrderOfTimes<'a> {
    /// `graph` has all known edges but real time, and where something is open, but those of
    /// initial reads.
    pub(in crate::strong) fn new(
        graph: &'a Graph,
        versions: &'a Versions<'a>,
        clock_drift: Time,
    ) -> Self {
        OrderOfTimes { graph, versions, clock_drift, repairs: HashMap::new() }
    }

    /// An order that explains every read and agrees with real time, if one is found.
    pub(in crate::strong) fn order(mut self) -> Option<Vec<Node>> {
        let is_open = self.versions.open_keys().next().is_some();
        let clocks = Latest::new(self.graph.model, self.versions, self.clock_drift);
        let mut repaired: HashSet<Pair> = HashSet::new();
        for _ in 0..=REPAIRS_MAX {
            let order = self.sorted(&clocks)?;
            if !is_open {
                return Some(order);
            }
            let wrong = self.wrong(&order)?;
            if wrong.is_empty() {
                return Some(order);
            }
            let reads = self.versions.reads_of_some(wrong.slots());
            // Several readers may have missed the same version.
            let mut pairs: Vec<Pair> =
                wrong.pairs.iter().map(|&it| self.likelier(it, &reads)).collect();
            pairs.sort_unstable();
            pairs.dedup();
            for pair in pairs {
                if !repaired.insert(pair) {
                    return None;
                }
                self.repair(pair, &reads);
            }
            for (from, to) in wrong.initial {
                self.repairs.entry(to).or_default().push(from);
            }
        }
        None
    }

    /// What an order gets wrong, unless that is too much.
    fn wrong(&self, order: &[Node]) -> Option<Wrong> {
        let (model, versions) = (self.graph.model, self.versions);
        let positions = positions(order);
        let suspects = suspects(model, versions, order, &positions);
        let many = order.len() / EVENTS_PER_WRONG_PAIR + 1;
        let mut wrong = Wrong::default();
        wrong.pairs.extend(suspects.pairs.iter().map(|it| it.1));
        let mut witness = Witness::new(model, versions);
        let slots = suspects.keys.iter().flat_map(|&key| versions.slots_of(key));
        let reads = versions.reads_of_some(slots);
        for key in suspects.keys {
            witness.check(key, &positions, |slot| reads.of(slot), &mut wrong.pairs);
        }
        let position = |node: Node| positions[node as usize];
        let reader = |read: ReadId| model.begin(versions.reader(read));
        let mut reads: Vec<(KeyId, Node)> = suspects
            .initial_reads
            .iter()
            .map(|&it| (versions.index.read(it).key, reader(it)))
            .collect();
        // The last ones of each key come first.
        reads.sort_unstable_by_key(|&(key, begin)| (key, Reverse(position(begin))));
        for same in reads.chunk_by(|one, other| one.0 == other.0) {
            for slot in versions.slots_of(same[0].0) {
                let commit = model.commit(versions.writer(slot));
                let later = same.iter().take_while(|it| position(commit) < position(it.1));
                wrong.initial.extend(later.map(|&(_, begin)| (begin, commit)));
                if wrong.initial.len() > many {
                    return None;
                }
            }
        }
        (wrong.pairs.len() + wrong.initial.len() <= many).then_some(wrong)
    }

    /// The pair the other way round, if a reader of its first version began only after
    /// the second had been installed.
    fn likelier(&self, pair: Pair, reads: &SomeReads) -> Pair {
        let Pair { first, second } = pair;
        let history = self.versions.history;
        let replacer = self.versions.writer(second);
        let installed = history.txn_times(replacer).commit.completed;
        let later = reads.of(first).any(|read| {
            let reader = self.versions.reader(read);
            reader != replacer && history.txn_times(reader).begin.invoked > installed
        });
        if later { Pair { first: second, second: first } } else { pair }
    }

    /// Adds what it means that the first of the pair comes first.
    fn repair(&mut self, pair: Pair, reads: &SomeReads) {
        let repairs = &mut self.repairs;
        let reads = reads.of(pair.first);
        pair.each_edge(self.graph.model, self.versions, reads, |from, to| {
            repairs.entry(to).or_default().push(from);
        });
    }

    /// All events from the last to the first by their times, then turned round; `None`
    /// if no order agrees with edges, repairs and real time.
    fn sorted(&self, clocks: &Latest<'_>) -> Option<Vec<Node>> {
        let graph = self.graph;
        let nodes = graph.node_count();
        let mut followers = graph.followers();
        for &from in self.repairs.values().flatten() {
            followers[from as usize] += 1;
        }
        let mut frontier = Frontier::new(clocks, nodes);
        for node in (0..nodes as Node).filter(|&node| followers[node as usize] == 0) {
            frontier.offer(node);
        }
        let mut order: Vec<Node> = Vec::with_capacity(nodes);
        while let Some(node) = frontier.take() {
            order.push(node);
            // A session's next events lie before this one.
            let soon = [4, 16, 64].map(|steps| node.saturating_sub(steps));
            graph.expect(soon, &followers);
            let repairs = self.repairs.get(&node).map_or(&[][..], Vec::as_slice);
            for from in graph.before(node).chain(repairs.iter().copied()) {
                let left = &mut followers[from as usize];
                *left -= 1;
                if *left == 0 {
                    frontier.offer(from);
                }
            }
        }
        if order.len() < nodes {
            return None;
        }
        order.reverse();
        Some(order)
    }
}

/// What an order gets wrong.
#[derive(Default)]
struct Wrong {
    /// Versions of one key.
    pairs: Vec<Pair>,
    /// Who read an initial version, and who replaced it before that.
    initial: Vec<(Node, Node)>,
}

impl Wrong {
    /// The versions in question.
    fn slots(&self) -> impl Iterator<Item = Slot> {
        self.pairs.iter().flat_map(|pair| [pair.first, pair.second])
    }

    fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.initial.is_empty()
    }
}

/// The times of events, and what was invoked last.
struct Latest<'a> {
    model: &'static Model,
    history: &'a History,
    versions: &'a Versions<'a>,
    clock_drift: Time,
    events: Node,
    /// Begins and commits, as far as real time orders something before them, by the
    /// time of their invocation.
    invoked: [Vec<(Time, Node)>; 2],
    /// Of which of these the events before a begin, and before a commit, must be free.
    binds: [[bool; 2]; 2],
}

const EVENTS: [Event; 2] = [Event::Begin, Event::Commit];

impl<'a> Latest<'a> {
    fn new(model: &'static Model, versions: &'a Versions<'a>, clock_drift: Time) -> Self {
        let (history, index) = (versions.history, versions.index);
        let orders = |from: Event, to: Event| {
            let mut rules = model.real_time.iter();
            rules.any(|rule| rule.from.contains(&from) && rule.to.contains(&to))
        };
        let binds = EVENTS.map(|from| EVENTS.map(|to| orders(from, to)));
        let invoked = EVENTS.map(|to| {
            if !EVENTS.iter().any(|&from| orders(from, to)) {
                return Vec::new();
            }
            let mut invoked: Vec<(Time, Node)> = history
                .txns()
                .filter(|&txn| index.is_counted(txn))
                .map(|txn| (to.interval(history, txn).invoked, model.event(txn, to)))
                .filter(|&(time, _)| time != ALWAYS)
                .collect();
            #[expect(clippy::stable_sort_primitive, reason = "it merges; each session ascends")]
            invoked.sort();
            invoked
        });
        let events = model.events_of(history.txn_count()) as Node;
        Latest { model, history, versions, clock_drift, events, invoked, binds }
    }

    /// Which event a node is; of one for both, its commit, which is when it completes.
    fn event(&self, node: Node) -> Event {
        let txn = self.model.txn(node);
        match self.model.events {
            Events::Two if self.model.begin(txn) == node => Event::Begin,
            _ => Event::Commit,
        }
    }

    /// When a node would like to be taken.
    fn rank(&self, node: Node) -> Time {
        if node >= self.events {
            return NEVER;
        }
        let times = self.history.txn_times(self.model.txn(node));
        match self.event(node) {
            Event::Begin => times.begin.invoked,
            Event::Commit => times.commit.completed,
        }
    }

    /// When an event was over for all clocks.
    fn completed(&self, node: Node) -> Time {
        let txn = self.model.txn(node);
        if !self.versions.index.is_counted(txn) {
            return NEVER;
        }
        self.event(node).completed(self.history, txn, self.clock_drift)
    }
}

/// Which event may be taken next, from the last to the first.
struct Frontier<'a> {
    clocks: &'a Latest<'a>,
    taken: Vec<bool>,
    /// Events that may be taken, by the time they would like.
    open: BinaryHeap<(Time, Node)>,
    /// Begins and commits that were over before something that is left was invoked, by
    /// the time they were over.
    held_back: [BinaryHeap<(Time, Node)>; 2],
    /// How many of the invocations are left, but for some that were taken.
    left: [usize; 2],
}

impl<'a> Frontier<'a> {
    fn new(clocks: &'a Latest<'a>, nodes: usize) -> Self {
        Frontier {
            clocks,
            taken: vec![false; nodes],
            open: BinaryHeap::new(),
            held_back: [BinaryHeap::new(), BinaryHeap::new()],
            left: [clocks.invoked[0].len(), clocks.invoked[1].len()],
        }
    }

    /// The latest invocation that is left, of those that events like this must precede.
    fn latest(&self, from: usize) -> Time {
        let binding = (0..2).filter(|&to| self.clocks.binds[from][to] && self.left[to] > 0);
        binding.map(|to| self.clocks.invoked[to][self.left[to] - 1].0).max().unwrap_or(ALWAYS)
    }

    /// Nothing known follows this node any more.
    fn offer(&mut self, node: Node) {
        if node < self.clocks.events {
            let from = self.clocks.event(node) as usize;
            let completed = self.clocks.completed(node);
            if completed < self.latest(from) {
                self.held_back[from].push((completed, node));
                return;
            }
        }
        self.open.push((self.clocks.rank(node), node));
    }

    fn take(&mut self) -> Option<Node> {
        let (_, node) = self.open.pop()?;
        self.taken[node as usize] = true;
        for to in 0..2 {
            let invoked = &self.clocks.invoked[to];
            while self.left[to] > 0 && self.taken[invoked[self.left[to] - 1].1 as usize] {
                self.left[to] -= 1;
            }
        }
        for from in 0..2 {
            let latest = self.latest(from);
            while let Some(&(completed, held)) = self.held_back[from].peek()
                && completed >= latest
            {
                self.held_back[from].pop();
                self.open.push((self.clocks.rank(held), held));
            }
        }
        Some(node)
    }
}
