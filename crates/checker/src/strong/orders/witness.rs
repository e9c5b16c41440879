//! Whether an order of events explains every read: the guess and its check.
//!
//! An order of events gives each key an order of versions, that of their commits. It
//! is a witness if no two writers of a key overlap (where the level forbids it) and
//! every reader begins before the version it saw is replaced. Settled keys are right
//! in every order that agrees with the known edges.

use super::seriation;
use crate::strong::graph::Graph;
use crate::strong::model::{Events, Model, Node, Writers};
use crate::strong::sources::Sources;
use crate::strong::versions::{INITIAL_SLOT, NO_SLOT, Slot, Versions};
use isolde_history::{History, KeyId, ReadId, TxnId};

/// Two versions of a key whose order has to be decided; `first` comes first in the
/// order that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::strong) struct Pair {
    pub(in crate::strong) first: Slot,
    pub(in crate::strong) second: Slot,
}

impl Pair {
    /// Calls `add` with every edge that follows if the first version comes first: its
    /// writer precedes the other, and so does who read it, which is given.
    pub(in crate::strong) fn each_edge(
        self,
        model: &Model,
        versions: &Versions<'_>,
        reads: impl Iterator<Item = ReadId>,
        mut add: impl FnMut(Node, Node),
    ) {
        let (earlier, later) = (versions.writer(self.first), versions.writer(self.second));
        add(model.commit(earlier), model.next_writer(later));
        for read in reads {
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
pub(in crate::strong) struct Witness<'a> {
    pub(in crate::strong) model: &'static Model,
    pub(in crate::strong) versions: &'a Versions<'a>,
    /// Versions of the key in question, reused.
    sorted: Vec<Slot>,
}

impl<'a> Witness<'a> {
    pub(in crate::strong) fn new(model: &'static Model, versions: &'a Versions<'a>) -> Self {
        Witness { model, versions, sorted: Vec::new() }
    }

    /// Adds the pairs of one key that contradict the positions, given the reads of its versions.
    pub(in crate::strong) fn check<R: Iterator<Item = ReadId>>(
        &mut self,
        key: KeyId,
        positions: &[u32],
        reads_of: impl Fn(Slot) -> R,
        found: &mut Vec<Pair>,
    ) {
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
            for read in reads_of(first) {
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

/// What an order of events may get wrong.
#[derive(Default)]
pub(in crate::strong) struct Suspects {
    /// The last two versions of a key, if a read saw the older one or their writers overlap:
    /// most of what an order gets wrong.
    pub(in crate::strong) pairs: Vec<(KeyId, Pair)>,
    /// Keys with a read of a still older version, in the order of their ids: what is wrong
    /// about them has to be looked for.
    pub(in crate::strong) keys: Vec<KeyId>,
    /// Reads of initial versions that begin after another one was installed.
    pub(in crate::strong) initial_reads: Vec<ReadId>,
}

impl Suspects {
    /// All keys with versions in the wrong order, in the order of their ids.
    pub(in crate::strong) fn wrong_keys(self) -> Vec<KeyId> {
        let mut keys = self.keys;
        keys.extend(self.pairs.iter().map(|it| it.0));
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// Replays an order of events, given with the position of each.
///
/// At hand are the last versions of all keys, and what neighbours in time did lies together,
/// so that caches help however long the history is. Looking at one key after the other
/// touches all of the history for each.
pub(in crate::strong) fn suspects(
    model: &Model,
    versions: &Versions<'_>,
    order: &[Node],
    positions: &[u32],
) -> Suspects {
    let events = model.events_of(versions.history.txn_count()) as Node;
    let keys = versions.history.key_count();
    let apart = model.writers == Writers::Apart && model.events == Events::Two;
    let mut replay = Replay {
        model,
        versions,
        last: vec![[NO_SLOT; 2]; keys],
        installed: vec![0; if apart { keys } else { 0 }],
        found: Suspects::default(),
    };
    for &node in order.iter().filter(|&&node| node < events) {
        let txn = model.txn(node);
        if node == model.begin(txn) {
            replay.read(txn);
        }
        if node == model.commit(txn) {
            replay.install(txn, positions);
        }
    }
    let mut found = replay.found;
    found.keys.sort_unstable();
    found.keys.dedup();
    found
}

struct Replay<'a> {
    model: &'a Model,
    versions: &'a Versions<'a>,
    /// Per key, its last version and the one before.
    last: Vec<[Slot; 2]>,
    /// Per key, the position at which the last version was installed; empty if writers may
    /// overlap.
    installed: Vec<u32>,
    found: Suspects,
}

impl Replay<'_> {
    fn read(&mut self, reader: TxnId) {
        let (versions, index) = (self.versions, self.versions.index);
        for read in index.read_range(reader) {
            let seen = versions.seen[read as usize];
            if seen == NO_SLOT {
                continue;
            }
            let key = index.read(ReadId(read)).key;
            let newest = self.last[key.index()][0];
            if seen == INITIAL_SLOT && newest != NO_SLOT {
                self.found.initial_reads.push(ReadId(read));
            } else if seen != INITIAL_SLOT && newest != seen {
                self.missed(reader, key, seen);
            }
        }
    }

    /// The reader did not see the newest version.
    #[cold]
    fn missed(&mut self, reader: TxnId, key: KeyId, seen: Slot) {
        let versions = self.versions;
        if versions.settled[key.index()] {
            return;
        }
        let [newest, older] = self.last[key.index()];
        if seen != older {
            self.found.keys.push(key);
        } else if versions.writer(newest) != reader {
            self.found.pairs.push((key, Pair { first: older, second: newest }));
        }
    }

    fn install(&mut self, writer: TxnId, positions: &[u32]) {
        for (key, slot) in self.versions.written_by(writer) {
            let last = &mut self.last[key.index()];
            if !self.installed.is_empty() {
                let installed = &mut self.installed[key.index()];
                let begin = positions[self.model.begin(writer) as usize];
                let overlaps = last[0] != NO_SLOT && begin < *installed;
                if overlaps && !self.versions.settled[key.index()] {
                    self.found.pairs.push((key, Pair { first: last[0], second: slot }));
                }
                *installed = positions[self.model.commit(writer) as usize];
            }
            *last = [slot, last[0]];
        }
    }
}

/// An order that agrees with all edges and follows the serialization order that the
/// database gave [Enne], or else the times of the events; without either, one in which
/// all sessions advance evenly, or one by who read from whom where sessions are too short to
/// tell anything.
pub(in crate::strong) fn guess(
    graph: &Graph,
    versions: &Versions<'_>,
    sources: Sources,
) -> Result<Vec<Node>, Vec<Node>> {
    let history = versions.history;
    if let Some(total) = &history.orders().total {
        return graph.sorted_by(given_rank(graph, history, total));
    }
    if let Some(order) = by_timestamps(graph, history) {
        return order;
    }
    if !history.has_times() || !sources.real_time {
        if seriation::is_wanted(history, sources) {
            return seriation::order(graph, versions);
        }
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
