//! Replicas that copy each other's transactions: causal and read atomic.
//!
//! Every session talks to one replica. A transaction reads from a snapshot of it,
//! and its writes go there when it commits. Replicas take over each other's
//! commits now and then, always whole transactions. Every commit has a stamp larger
//! than all that its replica has, and of two writes of a key the one with the
//! larger stamp stays, so all replicas agree in the end.
//!
//! The order of stamps is the witness: what a transaction saw has smaller stamps
//! than its own, and what it read of a key has the largest stamp of all it could
//! see. If a replica takes over a transaction only after everything that the
//! transaction's replica had, causes come before effects, and the store is causal.
//! If it does not wait, the store is read atomic and no more.

use super::{Conflict, OpenTxn, Store};
use crate::random::Random;

/// When a replica takes over another's transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// After everything it may depend on.
    Causal,
    /// As it comes.
    Eager,
}

/// How many there are.
pub(crate) const REPLICAS: usize = 4;
/// How often a beginning transaction makes its replica ask another one for news.
const NEWS_CHANCE: f64 = 0.125;

/// How many commits of each replica a replica, or a snapshot of it, has.
pub(crate) type Known = [u32; REPLICAS];

/// See the module's documentation.
pub(crate) struct Replicas {
    all: [Replica; REPLICAS],
    /// The write with the largest stamp of each key.
    latest: Vec<u32>,
    writes: Vec<Write>,
    delivery: Delivery,
}

#[derive(Default)]
struct Replica {
    /// The largest stamp it has.
    clock: u32,
    /// What it has, its own commits included.
    has: Known,
    /// Its own commits, in order.
    commits: Vec<Commit>,
}

#[derive(Clone, Copy)]
struct Write {
    /// The write of the key with the next smaller stamp, or [`NO_WRITE`].
    previous: u32,
    value: u32,
    stamp: u32,
    /// Which commit of its replica it belongs to, from 1.
    commit: u32,
}

const NO_WRITE: u32 = u32::MAX;

struct Commit {
    stamp: u32,
    /// What its replica had before it.
    needs: Known,
}

impl Replicas {
    pub(crate) fn new(delivery: Delivery) -> Self {
        let all = [(); REPLICAS].map(|()| Replica::default());
        Replicas { all, latest: Vec::new(), writes: Vec::new(), delivery }
    }

    fn exchange(&mut self, to: usize, from: usize) {
        let [reader, source] = self.all.get_disjoint_mut([to, from]).expect("two replicas");
        for commit in &source.commits[reader.has[from] as usize..] {
            let ready = commit.needs.iter().zip(&reader.has).all(|(needed, has)| needed <= has);
            if self.delivery == Delivery::Causal && !ready {
                break;
            }
            reader.clock = reader.clock.max(commit.stamp);
            reader.has[from] += 1;
        }
    }

    /// Puts a write in its place among those of its key.
    fn store(&mut self, key: u32, mut write: Write) {
        let place = key as usize;
        if self.latest.len() <= place {
            self.latest.resize(place + 1, NO_WRITE);
        }
        let number = self.writes.len() as u32;
        let (mut later, mut next) = (NO_WRITE, self.latest[place]);
        while next != NO_WRITE && self.writes[next as usize].stamp > write.stamp {
            (later, next) = (next, self.writes[next as usize].previous);
        }
        write.previous = next;
        self.writes.push(write);
        if later == NO_WRITE {
            self.latest[place] = number;
        } else {
            self.writes[later as usize].previous = number;
        }
    }
}

fn home(txn: &OpenTxn) -> usize {
    txn.session as usize % REPLICAS
}

impl Store for Replicas {
    fn begin(&mut self, txn: &mut OpenTxn, random: &mut Random) {
        let home = home(txn);
        if random.chance(NEWS_CHANCE) {
            let other = random.below(REPLICAS as u32 - 1) as usize;
            self.exchange(home, (home + 1 + other) % REPLICAS);
        }
        txn.known = self.all[home].has;
    }

    fn read(&mut self, txn: &OpenTxn, key: u32) -> u32 {
        let mut number = self.latest.get(key as usize).copied().unwrap_or(NO_WRITE);
        while number != NO_WRITE {
            let write = self.writes[number as usize];
            // The last bits of a stamp are the replica.
            if write.commit <= txn.known[write.stamp as usize % REPLICAS] {
                return write.value;
            }
            number = write.previous;
        }
        0
    }

    fn write(&mut self, _: &mut OpenTxn, _: u32, _: u32) -> Result<(), Conflict> {
        Ok(())
    }

    fn commit(&mut self, txn: &OpenTxn) -> Result<(), Conflict> {
        let home = home(txn);
        let replica = &mut self.all[home];
        // Times below 2^30, with the replica in the last bits: no two are equal.
        let stamp = (replica.clock / REPLICAS as u32 + 1) * REPLICAS as u32 + home as u32;
        replica.commits.push(Commit { stamp, needs: replica.has });
        replica.clock = stamp;
        replica.has[home] += 1;
        let commit = replica.has[home];
        for (key, value) in txn.writes() {
            self.store(key, Write { previous: NO_WRITE, value, stamp, commit });
        }
        Ok(())
    }

    fn undo(&mut self, _: &OpenTxn) {}
}
