//! Whether an order of events explains every read: the guess and its check.
//!
//! An order of events gives each key an order of versions, that of their commits. It
//! is a witness if no two writers of a key overlap (where the level forbids it) and
//! every reader begins before the version it saw is replaced. Settled keys are right
//! in every order that agrees with the known edges.

use super::graph::Graph;
use super::model::{Events, Model, Node, Writers};
use super::sources::Sources;
use super::versions::{Slot, Versions};
use isolde_history::{History, KeyId, TxnId};

/// Two versions of a key whose order has to be decided; `first` comes first in the
/// order that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Pair {
    pub(super) first: Slot,
    pub(super) second: Slot,
}

impl Pair {
    /// Calls `add` with every edge that follows if the first version comes first: its
    /// writer precedes the other, and so does who read it.
    pub(super) fn each_edge(
        self,
        model: &Model,
        versions: &Versions<'_>,
        mut add: impl FnMut(Node, Node),
    ) {
        let (earlier, later) = (versions.writer(self.first), versions.writer(self.second));
        add(model.commit(earlier), model.next_writer(later));
        for &read in versions.reads_of(self.first) {
            let reader = versions.reader(read);
            if reader != later {
                add(model.begin(reader), model.commit(later));
            }
        }
    }
}

/// At most so many versions between a read and what it saw become pairs at once.
const BETWEEN_MAX: usize = 8;

/// Finds what an order of events does not explain.
pub(super) struct Witness<'a> {
    pub(super) model: &'static Model,
    pub(super) versions: &'a Versions<'a>,
    /// Versions of the key in question, reused.
    sorted: Vec<Slot>,
}

impl<'a> Witness<'a> {
    pub(super) fn new(model: &'static Model, versions: &'a Versions<'a>) -> Self {
        Witness { model, versions, sorted: Vec::new() }
    }

    /// Adds the pairs of one key that contradict the positions.
    pub(super) fn check(&mut self, key: KeyId, positions: &[u32], found: &mut Vec<Pair>) {
        let (model, versions) = (self.model, self.versions);
        let commit = |slot: Slot| positions[model.commit(versions.writer(slot)) as usize];
        let begin = |slot: Slot| positions[model.begin(versions.writer(slot)) as usize];
        self.sorted.clear();
        self.sorted.extend(versions.slots_of(key));
        self.sorted.sort_unstable_by_key(|&slot| commit(slot));
        let apart = model.writers == Writers::Apart && model.events == Events::Two;
        for place in 0..self.sorted.len() - 1 {
            let first = self.sorted[place];
            let later = &self.sorted[place + 1..];
            if apart && begin(later[0]) < commit(first) {
                found.push(Pair { first, second: later[0] });
            }
            for &read in versions.reads_of(first) {
                let reader = versions.reader(read);
                let at = positions[model.begin(reader) as usize];
                let missed = later.iter().take(BETWEEN_MAX).take_while(|&&slot| commit(slot) < at);
                for &second in missed.filter(|&&slot| versions.writer(slot) != reader) {
                    found.push(Pair { first, second });
                }
            }
        }
    }
}

/// An order that agrees with all edges and follows the serialization order that the
/// database gave [Enne], or else the times of the events; without either, one in which
/// all sessions advance evenly.
pub(super) fn guess(
    graph: &Graph,
    history: &History,
    sources: Sources,
) -> Result<Vec<Node>, Vec<Node>> {
    if let Some(total) = &history.orders().total {
        return graph.sorted_by(given_rank(graph, history, total));
    }
    if let Some(order) = by_timestamps(graph, history) {
        return order;
    }
    if !history.has_times() || !sources.real_time {
        return graph.sorted();
    }
    let model = graph.model;
    let events = model.events_of(history.txn_count()) as Node;
    graph.sorted_by(|node| {
        // Points in time give way at once: what they order has times of its own.
        if node >= events {
            return i64::MAX;
        }
        let txn = model.txn(node);
        let times = history.txn_times(txn);
        match (model.events, model.begin(txn) == node) {
            (Events::Two, true) => times.begin.invoked,
            _ => times.commit.completed,
        }
    })
}

/// An order along the database's own timestamps [Chronos], if all transactions have them.
fn by_timestamps(graph: &Graph, history: &History) -> Option<Result<Vec<Node>, Vec<Node>>> {
    let model = graph.model;
    let events = model.events_of(history.txn_count());
    let mut times = Vec::with_capacity(events);
    for txn in history.txns() {
        let given = history.timestamps(txn)?;
        if model.events == Events::Two {
            // Who starts sees what was committed up to then.
            times.push((given.start, 1, model.begin(txn)));
        }
        times.push((given.commit, 0, model.commit(txn)));
    }
    times.sort_unstable();
    let mut ranks = vec![i64::MAX; graph.node_count()];
    for (rank, (_, _, node)) in (0..).zip(times) {
        ranks[node as usize] = rank;
    }
    Some(graph.sorted_by(|node| ranks[node as usize]))
}

/// The place of each event if transactions ran one after another in a given order.
fn given_rank(graph: &Graph, history: &History, total: &[TxnId]) -> impl Fn(Node) -> i64 {
    let model = graph.model;
    let events = model.events_of(history.txn_count()) as Node;
    let mut places = vec![i64::MAX; history.txn_count()];
    for (place, txn) in total.iter().enumerate() {
        places[txn.index()] = i64::try_from(place).unwrap_or(i64::MAX);
    }
    move |node| if node < events { places[model.txn(node).index()] } else { i64::MAX }
}
