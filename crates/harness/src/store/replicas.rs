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

const REPLICAS: usize = 4;
/// How often a beginning transaction makes its replica ask another one for news.
const NEWS_CHANCE: f64 = 0.125;

/// See the module's documentation.
pub(crate) struct Replicas {
    replicas: [Replica; REPLICAS],
    delivery: Delivery,
}

struct Replica {
    cells: Vec<Cell>,
    /// The largest stamp it has.
    clock: u32,
    /// How many commits of each replica it has; its own included.
    has: [u32; REPLICAS],
    /// Its own commits, in order.
    commits: Vec<Commit>,
    /// The writes of its commits.
    writes: Vec<(u32, u32)>,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    value: u32,
    stamp: u32,
}

struct Commit {
    stamp: u32,
    /// What its replica had before it.
    needs: [u32; REPLICAS],
    /// Where its writes end.
    end: u32,
}

impl Replicas {
    pub(crate) fn new(keys: u32, delivery: Delivery) -> Self {
        let replica = || Replica {
            cells: vec![Cell::default(); keys as usize],
            clock: 0,
            has: [0; REPLICAS],
            commits: Vec::new(),
            writes: Vec::new(),
        };
        Replicas { replicas: [(); REPLICAS].map(|()| replica()), delivery }
    }

    fn exchange(&mut self, to: usize, from: usize) {
        let [reader, source] = self.replicas.get_disjoint_mut([to, from]).expect("two replicas");
        for commit in &source.commits[reader.has[from] as usize..] {
            let ready = commit.needs.iter().zip(&reader.has).all(|(needed, has)| needed <= has);
            if self.delivery == Delivery::Causal && !ready {
                break;
            }
            let number = reader.has[from] as usize;
            let start = number.checked_sub(1).map_or(0, |last| source.commits[last].end);
            for &(key, value) in &source.writes[start as usize..commit.end as usize] {
                reader.store(key, Cell { value, stamp: commit.stamp });
            }
            reader.clock = reader.clock.max(commit.stamp);
            reader.has[from] += 1;
        }
    }
}

impl Replica {
    fn store(&mut self, key: u32, cell: Cell) {
        let held = &mut self.cells[key as usize];
        if held.stamp <= cell.stamp {
            *held = cell;
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
        let cells = &self.replicas[home].cells;
        txn.decided.clear();
        txn.decided.extend(txn.plan.iter().map(|intent| cells[intent.key as usize].value));
    }

    fn read(&mut self, txn: &OpenTxn, _: u32) -> u32 {
        txn.decided[txn.done.len()]
    }

    fn write(&mut self, _: &mut OpenTxn, _: u32, _: u32) -> Result<(), Conflict> {
        Ok(())
    }

    fn commit(&mut self, txn: &OpenTxn) -> Result<(), Conflict> {
        let home = home(txn);
        let replica = &mut self.replicas[home];
        // Times below 2^30, with the replica in the last bits: no two are equal.
        let stamp = (replica.clock / REPLICAS as u32 + 1) * REPLICAS as u32 + home as u32;
        for (key, value) in txn.writes() {
            replica.store(key, Cell { value, stamp });
            replica.writes.push((key, value));
        }
        let (needs, end) = (replica.has, replica.writes.len() as u32);
        replica.clock = stamp;
        replica.has[home] += 1;
        replica.commits.push(Commit { stamp, needs, end });
        Ok(())
    }

    fn undo(&mut self, _: &OpenTxn) {}
}
