//! What a transaction itself writes to a key, for its list reads.
//!
//! A short transaction is searched operation by operation. In a long one that would
//! cost the square of its length, so the writes of those are sorted once.

use crate::history::{History, KeyId, OpId, OpKind, TxnId};
use hashbrown::HashMap;
use std::ops::Range;

pub(super) struct OwnWrites<'a> {
    history: &'a History,
    /// The writes of each long transaction that reads lists, by key and operation.
    long: HashMap<TxnId, Vec<(KeyId, OpId)>>,
}

impl<'a> OwnWrites<'a> {
    pub(super) fn new(history: &'a History) -> Self {
        const OPS_SHORT: usize = 64;
        let mut long = HashMap::new();
        for txn in history.txns().filter(|_| history.has_lists()) {
            let ops = || history.ops_of(txn);
            let kind = |op: &OpId| history.op_kinds()[op.index()];
            if ops().len() > OPS_SHORT && ops().any(|op| kind(&op) == OpKind::ReadList) {
                let writes = ops().filter(|op| kind(op).is_write());
                let mut sorted: Vec<_> = writes.map(|op| (history.op(op).key, op)).collect();
                sorted.sort_unstable();
                long.insert(txn, sorted);
            }
        }
        OwnWrites { history, long }
    }

    /// The transaction's writes of `key` among these operations, in program order.
    pub(super) fn of(
        &self,
        txn: TxnId,
        key: KeyId,
        ops: Range<u32>,
    ) -> impl DoubleEndedIterator<Item = OpId> + use<'_> {
        let (kinds, keys) = (self.history.op_kinds(), self.history.op_keys());
        let sorted = self.long.get(&txn);
        let found = sorted.map_or(&[][..], |sorted| {
            let place = |op| sorted.partition_point(|&write| write < (key, OpId(op)));
            &sorted[place(ops.start)..place(ops.end)]
        });
        let searched = if sorted.is_some() { 0..0 } else { ops };
        let is_own = move |op: &OpId| keys[op.index()] == key && kinds[op.index()].is_write();
        found.iter().map(|write| write.1).chain(searched.map(OpId).filter(is_own))
    }
}
