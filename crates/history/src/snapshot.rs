//! What a database says an operation saw: the transactions of its snapshot.
//!
//! A database numbers its transactions: by their ids, by the places of their commits in its
//! log, by commit timestamps. A snapshot sees every transaction with a number below a bound,
//! but for some exceptions that had not committed yet. With the order of versions this gives
//! the *version set* of an operation: of every key the last version that the snapshot sees,
//! or the transaction's own. So nobody has to store a version of each key for each operation.
//!
//! | database | number | snapshot |
//! |---|---|---|
//! | numbers transactions when they first write | that id | below the next id, but those still running |
//! | numbers commits | the place of the commit in the log | below the first commit that was not seen |
//! | commit timestamps | the timestamp | below the first timestamp after the start |

use crate::builder::{DraftTxn, HistoryBuilder, set};
use crate::history::{Columns, History, OpId, TxnId};

/// Which transactions an operation saw, by the database's numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// All transactions with smaller numbers were seen,
    pub below: u64,
    /// but for these. Ascending.
    pub except: Vec<u64>,
}

impl Snapshot {
    /// Whether the transaction of this number was seen.
    pub fn sees(&self, number: u64) -> bool {
        number < self.below && self.except.binary_search(&number).is_err()
    }
}

/// The number of a transaction that has none.
pub(crate) const NO_NUMBER: u64 = u64::MAX;
/// The snapshot of a transaction that tells none.
pub(crate) const NO_SNAPSHOT: u32 = u32::MAX;

/// The columns of a history that snapshots need; empty where absent.
#[derive(Clone, Default)]
pub(crate) struct SnapshotColumns {
    /// By transaction.
    pub(crate) numbers: Vec<u64>,
    /// Each once.
    pub(crate) table: Vec<Snapshot>,
    /// By transaction, a place in the table.
    pub(crate) of_txns: Vec<u32>,
    /// Sorted by operation, each with a place in the table.
    pub(crate) of_ops: Vec<(OpId, u32)>,
}

impl SnapshotColumns {
    pub(crate) fn memory(&self) -> usize {
        let exceptions: usize = self.table.iter().map(|it| it.except.capacity()).sum();
        8 * (self.numbers.capacity() + exceptions)
            + self.table.capacity() * size_of::<Snapshot>()
            + 4 * self.of_txns.capacity()
            + 8 * self.of_ops.capacity()
    }
}

impl History {
    /// The number that the database gave a transaction; see [`Snapshot`].
    pub fn number(&self, txn: TxnId) -> Option<u64> {
        let number = self.columns.snapshots.numbers.get(txn.index()).copied();
        number.filter(|&number| number != NO_NUMBER)
    }

    /// The snapshot of a transaction, for all of its operations that have none of their own.
    pub fn txn_snapshot(&self, txn: TxnId) -> Option<&Snapshot> {
        let place = *self.columns.snapshots.of_txns.get(txn.index())?;
        self.columns.snapshots.table.get(place as usize)
    }

    /// An operation's own snapshot.
    pub fn op_snapshot(&self, op: OpId) -> Option<&Snapshot> {
        let SnapshotColumns { table, of_ops, .. } = &self.columns.snapshots;
        let place = of_ops.binary_search_by_key(&op, |entry| entry.0).ok()?;
        Some(&table[of_ops[place].1 as usize])
    }

    /// What an operation of `txn` saw: by its own snapshot, else by the transaction's.
    pub fn snapshot(&self, txn: TxnId, op: OpId) -> Option<&Snapshot> {
        self.op_snapshot(op).or_else(|| self.txn_snapshot(txn))
    }

    /// Whether the database told orders of versions or snapshots.
    pub fn has_evidence(&self) -> bool {
        !self.columns.orders.versions.is_empty() || self.has_snapshots()
    }

    /// Whether any operation or transaction has a snapshot.
    pub fn has_snapshots(&self) -> bool {
        !self.columns.snapshots.table.is_empty()
    }
}

impl HistoryBuilder {
    /// The number that the database gave `txn`, below 2⁶⁴ − 1.
    pub fn number(&mut self, txn: DraftTxn, number: u64) {
        set(&mut self.columns.snapshots.numbers, txn.index(), number, NO_NUMBER);
    }

    /// What all operations of `txn` saw.
    pub fn txn_snapshot(&mut self, txn: DraftTxn, snapshot: Snapshot) {
        let place = self.snapshot(snapshot);
        set(&mut self.columns.snapshots.of_txns, txn.index(), place, NO_SNAPSHOT);
    }

    /// What the last operation saw.
    pub fn op_snapshot(&mut self, snapshot: Snapshot) {
        let place = self.snapshot(snapshot);
        if let Some(last) = self.columns.kinds.len().checked_sub(1) {
            self.columns.snapshots.of_ops.push((OpId(last as u32), place));
        }
    }

    fn snapshot(&mut self, mut snapshot: Snapshot) -> u32 {
        // What lies beyond the bound is not seen anyway.
        snapshot.except.retain(|&number| number < snapshot.below);
        snapshot.except.sort_unstable();
        snapshot.except.dedup();
        let table = &mut self.columns.snapshots.table;
        *self.snapshot_places.entry(snapshot).or_insert_with_key(|snapshot| {
            table.push(snapshot.clone());
            table.len() as u32 - 1
        })
    }
}

/// Puts snapshots of operations at the operations' new places, `moved` by their old ones.
pub(crate) fn move_ops(columns: &mut Columns, moved: &[u32]) {
    let of_ops = &mut columns.snapshots.of_ops;
    for entry in of_ops.iter_mut() {
        entry.0 = OpId(moved[entry.0.index()]);
    }
    of_ops.sort_by_key(|entry| entry.0);
    // Of several for one operation the last one counts.
    of_ops.reverse();
    of_ops.dedup_by_key(|entry| entry.0);
    of_ops.reverse();
}
