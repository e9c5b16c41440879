//! A history taken in one of several ways that it can be understood in.

use crate::database_order::{Named, VersionChain};
use crate::history::{Columns, History, KeyId, NEVER, Op, OpId, OpKind, Outcome, TxnId};
use crate::value::{Value, Values};
use hashbrown::HashMap;

impl History {
    /// The same history with these outcomes, and with elements of these appends that nobody
    /// else appended. Readers who saw their own appends at the end of a list see the new
    /// elements there. When transactions of unknown outcome ended is still not known.
    ///
    /// # Panics
    /// If an operation is no append.
    #[must_use]
    pub fn taken_as(&self, outcomes: &[(TxnId, Outcome)], alone: &[OpId]) -> History {
        let mut columns = self.columns.clone();
        for &(txn, outcome) in outcomes {
            let known = std::mem::replace(&mut columns.outcomes[txn.index()], outcome);
            if known == Outcome::Unknown {
                // Nothing comes after what may never have ended, nor after its begin.
                for times in [&mut columns.begun, &mut columns.completed] {
                    times.get_mut(txn.index()).into_iter().for_each(|time| *time = NEVER);
                }
            }
        }
        for &append in alone {
            assert_eq!(columns.kinds[append.index()], OpKind::Append, "only elements are renamed");
            columns.op_values[append.index()] = new_element(&mut columns.values, append);
        }
        let mut txns: Vec<TxnId> = alone.iter().map(|&append| self.txn_of(append)).collect();
        txns.sort_unstable();
        txns.dedup();
        for txn in txns {
            for read in self.ops_of(txn).filter(|&op| self.op(op).kind == OpKind::ReadList) {
                self.rename_own(&mut columns, txn, read);
            }
        }
        History { columns }
    }

    /// The same history in which these transactions never happened: they aborted, and nobody
    /// saw what they would have written. Where they wrote stand reads that were never
    /// answered, so that all others keep their ids.
    #[must_use]
    pub fn without_effects_of(mut self, txns: &[TxnId]) -> History {
        if !self.columns.orders.versions.is_empty() {
            self.columns.orders.versions = self.orders_without(txns);
        }
        for &txn in txns {
            for op in self.ops_of(txn) {
                if self.columns.kinds[op.index()].is_write() {
                    self.columns.kinds[op.index()] = OpKind::Read;
                    self.columns.op_values[op.index()] = Value::UNKNOWN;
                }
            }
            self.columns.outcomes[txn.index()] = Outcome::Aborted;
        }
        self
    }

    /// The orders of versions without what these transactions wrote. An entry that stood for a
    /// removal would otherwise be taken for the initial state.
    fn orders_without(&self, txns: &[TxnId]) -> Vec<VersionChain> {
        let mut writes: HashMap<(KeyId, Value), Vec<OpId>> = HashMap::new();
        for op in self.txns().flat_map(|txn| self.ops_of(txn)) {
            let Op { kind, key, value } = self.op(op);
            if kind.is_write() {
                writes.entry((key, value)).or_default().push(op);
            }
        }
        let without = |chain: &VersionChain| {
            let writes_of = |value| writes.get(&(chain.key, value)).cloned().unwrap_or_default();
            let named = chain.named(self, &writes_of);
            let is_gone = |op: &OpId| txns.contains(&self.txn_of(*op));
            chain.keeping(|place| match named[place] {
                Named::Write(op) => !is_gone(&op),
                Named::Open => !writes_of(chain.values[place]).iter().all(is_gone),
                Named::Initial | Named::Nobody => true,
            })
        };
        self.columns.orders.versions.iter().map(without).collect()
    }

    /// Lets a list read end with the new elements of the reader's own appends, if it ended
    /// with the old ones.
    fn rename_own(&self, columns: &mut Columns, txn: TxnId, read: OpId) {
        let key: KeyId = self.op(read).key;
        let own: Vec<OpId> = (self.ops_of(txn))
            .take_while(|&op| op < read)
            .filter(|&op| self.op(op).kind == OpKind::Append && self.op(op).key == key)
            .collect();
        let list = self.list(read);
        let Some(external) = list.len().checked_sub(own.len()) else { return };
        let ends_with_own = (own.iter().zip(&list[external..]))
            .all(|(append, &element)| self.op(*append).value == element);
        let is_new = |append: &OpId| columns.op_values[append.index()] != self.op(*append).value;
        if !ends_with_own || !own.iter().any(is_new) {
            return;
        }
        let start = columns.elements.len() as u32;
        columns.elements.extend_from_slice(&list[..external]);
        columns.elements.extend(own.iter().map(|append| columns.op_values[append.index()]));
        let place = self.op(read).value.bits() as usize;
        columns.lists[place] = (start, list.len() as u32);
    }
}

/// A value that no operation has.
fn new_element(values: &mut Values, append: OpId) -> Value {
    let mut name = format!("append {}", append.0);
    loop {
        let known = values.table().count();
        let element = values.other(&name);
        if values.table().count() > known {
            return element;
        }
        name.push('\'');
    }
}

#[cfg(test)]
mod tests {
    use crate::format::{parse_text, to_text};
    use crate::{Index, KeyId, Misread, MisreadKind, OpId, Outcome, TxnId};

    #[test]
    fn nobody_can_have_seen_what_never_happened() {
        let text = "A: w(x,1) a(l,1) r(l,[1]) unknown\nB: r(x,1)\n";
        let history = parse_text(text).expect("a history").without_effects_of(&[TxnId(0)]);
        let misreads = Index::new(&history).misreads().to_vec();
        let read = OpId(3);
        assert_eq!(misreads, [Misread { read, key: KeyId(0), kind: MisreadKind::ThinAir }]);
    }

    #[test]
    fn an_order_loses_what_never_happened() {
        let text = "A: w(x,1)\nB: d(x) w(x,2) unknown\norder x complete: 1 nil 2\n";
        let history = parse_text(text).expect("a history").without_effects_of(&[TxnId(1)]);
        let orders = &history.orders().versions;
        assert_eq!((orders.len(), orders[0].values.len(), orders[0].complete), (1, 1, true));
        assert!(Index::new(&history).conflicts().is_empty(), "nil is no initial state");
    }

    #[test]
    fn an_append_taken_alone_is_seen_by_its_own_reader() {
        let text = "A: a(l,1)\nB: r(l,[1])\nC: a(l,1) r(l,[1]) a(l,2) r(l,[1 1 2])\n";
        let history = parse_text(text).expect("a history");
        let taken = history.taken_as(&[(TxnId(1), Outcome::Unknown)], &[OpId(2)]);
        let text = to_text(&taken);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(':')).collect();
        assert_eq!(
            lines,
            [
                "A: a(l,1)",
                "B: r(l,[1]) unknown",
                "C: a(l,~\"append 2\") r(l,[~\"append 2\"]) a(l,2) r(l,[1 ~\"append 2\" 2])",
            ]
        );
    }
}
