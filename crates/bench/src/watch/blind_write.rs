//! BlindW-RW+ as a trace that never ends: a store that keeps versions, and its clients.
//!
//! Half of the transactions read, eight requests each, half of which are ranges of ten
//! keys; the other half writes eight keys without reading them. The store takes
//! snapshots at the first request, locks what is written and refuses second updaters.
//! Such transactions are serializable too. Time passes in the store alone.

use isolde::online::{Batch, Cell, CellSpan, ClientId, Content, Event, EventKind, Interval, Time};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Keys of the table.
const KEYS: u64 = 2000;
/// Requests of a transaction.
const REQUESTS: u32 = 8;
/// Keys of a range.
const RANGE: u64 = 10;
/// A request takes so many nanoseconds at most.
const LATENCY_MAX: u64 = 100_000;
/// Keys that a writer tries before it gives up.
const TRIES: u32 = 16;
/// Versions of a key that may still be seen.
const VERSIONS: usize = 64;

/// A version: when it was committed, and its content.
type Version = (u64, i64);

struct Client {
    txn: u64,
    requests: u32,
    reads: bool,
    /// How many transactions had committed when it took its snapshot.
    snapshot: Option<u64>,
    locked: Vec<(u32, i64)>,
    /// When its next request is sent.
    sent: Time,
    batch: Batch,
}

/// The store and its clients.
pub(super) struct BlindWrite {
    random: SplitMix64,
    commits: u64,
    last_value: i64,
    /// Versions of each key, the last ones at the end.
    versions: Vec<Vec<Version>>,
    locks: Vec<bool>,
    clients: Vec<Client>,
    /// Who acts next, and when.
    next: BinaryHeap<Reverse<(Time, u32)>>,
    pub(super) operations: u64,
    pub(super) txns: u64,
}

impl BlindWrite {
    pub(super) fn new(clients: u32) -> BlindWrite {
        let mut store = BlindWrite {
            random: SplitMix64::seed_from_u64(1),
            commits: 0,
            last_value: 0,
            versions: vec![Vec::new(); KEYS as usize],
            locks: vec![false; KEYS as usize],
            clients: Vec::new(),
            next: BinaryHeap::new(),
            operations: 0,
            txns: 0,
        };
        for client in 0..clients {
            store.clients.push(Client {
                txn: 0,
                requests: 0,
                reads: client % 2 == 0,
                snapshot: None,
                locked: Vec::new(),
                sent: 0,
                batch: Batch::default(),
            });
            let instant = store.time(LATENCY_MAX);
            store.next.push(Reverse((instant, client)));
        }
        store
    }

    /// Goes on until so many more transactions have committed, and hands out what each
    /// client did meanwhile, and until when it is complete.
    pub(super) fn run(&mut self, txns: u64, mut hand_out: impl FnMut(ClientId, &Batch, Time)) {
        let until = self.txns + txns;
        while self.txns < until {
            let Some(Reverse((instant, client))) = self.next.pop() else { return };
            self.act(instant, client);
        }
        for (number, client) in self.clients.iter_mut().enumerate() {
            hand_out(ClientId(number as u32), &client.batch, client.sent);
            client.batch.clear();
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.random.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    fn time(&mut self, bound: u64) -> Time {
        self.below(bound).cast_signed()
    }

    /// The store does what a client asked for.
    fn act(&mut self, instant: Time, number: u32) {
        let client = &self.clients[number as usize];
        let start = client.batch.cells.len();
        let kind = if client.requests == REQUESTS {
            self.commit(number);
            EventKind::Commit
        } else if client.reads {
            self.read(number);
            EventKind::Read
        } else if self.write(number) {
            EventKind::Write
        } else {
            self.unlock(number);
            EventKind::Abort
        };
        let answered = instant + 1 + self.time(LATENCY_MAX / 4);
        let sent = answered + 1 + self.time(LATENCY_MAX / 8);
        let acts = sent + 1 + self.time(LATENCY_MAX);
        let client = &mut self.clients[number as usize];
        let interval = Interval { invoked: client.sent, completed: answered };
        let event = Event {
            client: ClientId(number),
            txn: client.txn,
            interval,
            kind,
            cells: CellSpan::NONE,
        };
        client.batch.push_with_cells_from(event, start);
        client.sent = sent;
        if kind.is_end() {
            client.txn += 1;
            client.requests = 0;
            client.snapshot = None;
            client.reads = !client.reads;
            self.txns += u64::from(kind == EventKind::Commit);
        } else {
            client.requests += 1;
            self.operations += 1;
        }
        self.next.push(Reverse((acts, number)));
    }

    fn read(&mut self, number: u32) {
        let commits = self.commits;
        let is_range = self.below(2) == 0;
        let first = self.below(KEYS - RANGE);
        let client = &mut self.clients[number as usize];
        let snapshot = *client.snapshot.get_or_insert(commits);
        for key in first..first + if is_range { RANGE } else { 1 } {
            let versions = self.versions[key as usize].iter();
            let seen = versions.rev().find(|version| version.0 <= snapshot);
            let content = seen.map_or(Content::ABSENT, |version| Content::integer(version.1));
            client.batch.cells.push(Cell { item: key as u32, row: key as u32, content });
        }
    }

    /// Writes a key that is free and has not changed; whether there is one.
    fn write(&mut self, number: u32) -> bool {
        let commits = self.commits;
        let snapshot = *self.clients[number as usize].snapshot.get_or_insert(commits);
        for _ in 0..TRIES {
            let key = self.below(KEYS) as usize;
            let last = self.versions[key].last().map_or(0, |version| version.0);
            if self.locks[key] || last > snapshot {
                continue;
            }
            self.locks[key] = true;
            self.last_value += 1;
            let client = &mut self.clients[number as usize];
            client.locked.push((key as u32, self.last_value));
            let content = Content::integer(self.last_value);
            client.batch.cells.push(Cell { item: key as u32, row: key as u32, content });
            return true;
        }
        false
    }

    fn commit(&mut self, number: u32) {
        let locked = std::mem::take(&mut self.clients[number as usize].locked);
        if !locked.is_empty() {
            self.commits += 1;
        }
        for &(key, value) in &locked {
            let versions = &mut self.versions[key as usize];
            if versions.len() == VERSIONS {
                versions.remove(0);
            }
            versions.push((self.commits, value));
            self.locks[key as usize] = false;
        }
        self.clients[number as usize].locked = locked;
        self.clients[number as usize].locked.clear();
    }

    fn unlock(&mut self, number: u32) {
        for (key, _) in std::mem::take(&mut self.clients[number as usize].locked) {
            self.locks[key as usize] = false;
        }
    }
}
