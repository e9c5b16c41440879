//! Reading the snapshots of the binary format.

use super::read::Reader;
use crate::error::ReadError;
use crate::history::OpId;
use crate::snapshot::{NO_SNAPSHOT, Snapshot};

impl Reader<'_> {
    /// Numbers of transactions, the table of snapshots, and whose they are.
    pub(super) fn snapshots(&mut self) -> Result<(), ReadError> {
        let txns = self.columns.outcomes.len();
        let numbers = self.stored.longs("txn.numbers");
        self.check_optional(&numbers, txns)?;
        let below = self.stored.longs("snapshot.below");
        let except = self.stored.longs("snapshot.except");
        let exceptions = self.stored.longs("snapshot.exceptions");
        self.check_offsets(&exceptions, below.len(), except.len())?;
        let mut table = Vec::with_capacity(below.len());
        for (bounds, &below) in exceptions.entries.windows(2).zip(&below.entries) {
            let range = bounds[0] as usize..bounds[1] as usize;
            let ascends = |pair: &[u64]| pair[0] < pair[1];
            if let Some(place) =
                except.entries[range.clone()].windows(2).position(|pair| !ascends(pair))
            {
                let message = "expected exceptions in ascending order, found another";
                return Err(except.wrong(self.file, range.start + place + 1, message));
            }
            if range.end > range.start && except.entries[range.end - 1] >= below {
                let message =
                    format!("expected an exception below the bound {below}, found another");
                return Err(except.wrong(self.file, range.end - 1, &message));
            }
            table.push(Snapshot { below, except: except.entries[range].to_vec() });
        }
        let known = table.len();
        let of_txns = self.stored.words("txn.snapshots");
        self.check_optional(&of_txns, txns)?;
        self.check(&of_txns, &format!("a snapshot below {known}"), |place| {
            place == NO_SNAPSHOT || (place as usize) < known
        })?;
        let ops = self.stored.words("snapshot.ops");
        let count = self.columns.kinds.len();
        self.check(&ops, &format!("an operation below {count}"), |op| (op as usize) < count)?;
        self.check_ascending(&ops, "operations")?;
        let places = self.stored.words("snapshot.places");
        self.check_length(&places, ops.len())?;
        self.check(&places, &format!("a snapshot below {known}"), |place| {
            (place as usize) < known
        })?;
        let columns = &mut self.columns.snapshots;
        columns.numbers = numbers.entries;
        columns.of_txns = of_txns.entries;
        columns.of_ops = ops.entries.into_iter().map(OpId).zip(places.entries).collect();
        columns.table = table;
        Ok(())
    }
}
