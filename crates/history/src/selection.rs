//! What of a history to keep in a part of it.

use crate::history::{History, KeyId, OpId, OpKind, Outcome, TxnId};
use crate::index::Index;
use crate::value::Value;

/// What of a history to keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Operations, ascending. Transactions without any are left out.
    pub ops: Vec<OpId>,
    /// Transactions that do not follow those before them in their session, ascending.
    pub apart: Vec<TxnId>,
    /// Transactions whose times are forgotten, ascending.
    pub timeless: Vec<TxnId>,
    /// Keys that keep their first value and are kept although no operation that is kept names
    /// them, ascending: conditions may find it. See [`Selection::unwritten`].
    pub initial: Vec<KeyId>,
}

impl Selection {
    /// Everything.
    pub fn all(history: &History) -> Selection {
        let ops = (0..history.op_count() as u32).map(OpId).collect();
        Selection { ops, initial: Selection::unwritten(history), ..Selection::default() }
    }

    /// Keys that exist from the start and that nobody writes who may count, ascending; none if
    /// nothing was done by condition. Of a key that loses a write, no condition tells anything.
    pub fn unwritten(history: &History) -> Vec<KeyId> {
        if !history.has_predicates() {
            return Vec::new();
        }
        let mut is_written = vec![false; history.key_count()];
        for op in telling(history) {
            is_written[history.op(op).key.index()] = true;
        }
        let exists = |key: &KeyId| history.initial(*key) != Value::NIL;
        history.keys().filter(|key| !is_written[key.index()]).filter(exists).collect()
    }

    /// Whether an operation is kept.
    pub fn has(&self, op: OpId) -> bool {
        self.ops.binary_search(&op).is_ok()
    }

    /// The transactions that keep an operation, ascending.
    pub fn txns(&self, history: &History) -> Vec<TxnId> {
        let mut txns: Vec<TxnId> = Vec::new();
        let mut end = 0;
        for &op in &self.ops {
            if op.0 >= end {
                let txn = history.txn_of(op);
                end = history.op_range(txn).end;
                txns.push(txn);
            }
        }
        txns
    }

    /// Leaves out reads that the other operations do not support, until all are.
    pub fn close(&mut self, history: &History, index: &Index) {
        loop {
            let before = self.ops.len();
            let supported: Vec<bool> =
                self.ops.iter().map(|&op| self.supports(history, index, op)).collect();
            let mut places = supported.iter();
            self.ops.retain(|_| *places.next().expect("one for each"));
            if self.ops.len() == before {
                return;
            }
        }
    }

    fn supports(&self, history: &History, index: &Index, op: OpId) -> bool {
        let it = history.op(op);
        match it.kind {
            OpKind::Read => {
                self.has_all_writes((history, index), it.key, it.value)
                    && self.has_own_write_before(history, op, it.key)
            }
            OpKind::ReadOther => {
                index.versions_of(history, it.key).iter().all(|version| self.has(version.op()))
                    && self.has_own_write_before(history, op, it.key)
            }
            OpKind::Append => self.has_all_writes((history, index), it.key, it.value),
            _ => true,
        }
    }

    /// Whether all lists are those of who they were. Where the last element goes, a list becomes
    /// one of an earlier transaction, and only levels that have the order of versions among what
    /// must be seen say the same of it.
    pub fn keeps_lists(&self, history: &History, index: &Index) -> bool {
        let mut lists =
            self.ops.iter().copied().filter(|&op| history.op(op).kind == OpKind::ReadList);
        lists.all(|op| self.has_last_of_others((history, index), op))
    }

    /// Whether the last element of a list that the reader did not append itself is kept.
    fn has_last_of_others(&self, (history, index): (&History, &Index), op: OpId) -> bool {
        let (reader, key) = (history.txn_of(op), history.op(op).key);
        let own = |element: Value| {
            let mut writes = writes_of((history, index), key, element).peekable();
            writes.peek().is_some() && writes.all(|write| history.txn_of(write) == reader)
        };
        let last = history.list(op).iter().rev().find(|&&element| !own(element));
        last.is_none_or(|&element| self.has_all_writes((history, index), key, element))
    }

    /// Whether every write of this value to this key is kept.
    pub(crate) fn has_all_writes(&self, of: (&History, &Index), key: KeyId, value: Value) -> bool {
        writes_of(of, key, value).all(|write| self.has(write))
    }

    /// Whether the write of its own transaction before an operation is kept, if there is one.
    pub(crate) fn has_own_write_before(&self, history: &History, op: OpId, key: KeyId) -> bool {
        let first = history.op_range(history.txn_of(op)).start;
        let is_write = |earlier: &OpId| {
            let it = history.op(*earlier);
            it.kind.is_write() && it.key == key
        };
        (first..op.0).rev().map(OpId).find(is_write).is_none_or(|write| self.has(write))
    }
}

/// Operations without which conditions would tell something else of a key: writes of
/// transactions that were not aborted, since no order has the others, and all that shows a key to
/// be a list, of which no condition tells anything.
pub(crate) fn telling(history: &History) -> impl Iterator<Item = OpId> {
    history.txns().flat_map(move |txn| {
        let may_count = history.outcome(txn) != Outcome::Aborted;
        history.ops_of(txn).filter(move |&op| match history.op(op).kind {
            OpKind::Append | OpKind::ReadList => true,
            kind => kind.is_write() && may_count,
        })
    })
}

/// The writes of a value to a key.
pub(crate) fn writes_of<'a>(
    (history, index): (&History, &'a Index),
    key: KeyId,
    value: Value,
) -> impl Iterator<Item = OpId> + use<'a> {
    let versions = index.versions_of(history, key);
    let start = versions.partition_point(|version| version.value < value);
    versions[start..].iter().take_while(move |it| it.value == value).map(|it| it.op())
}
