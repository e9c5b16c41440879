//! Parallel snapshot isolation by a commit order: no cycle has fewer than two
//! anti-dependencies.
//!
//! The order contains reads-from, and orders the writers of each key, so there is no cycle
//! without anti-dependencies. One with a single anti-dependency leads from a reader to a
//! writer of a later version than the one it read, and back to the reader by reads-from and
//! version order. The next version leads to all later ones, so it alone is looked at: is there
//! a way from its writer to the reader? Only where that writer comes before the reader in the
//! order, and then by going back from the reader as far as the writer.

use super::commits::Ordered;
use isolde_history::{KeyId, TxnId};

/// More steps back are refused.
const STEPS_MAX: u64 = 1 << 32;

/// Checks every read.
pub(super) fn check(ordered: &Ordered<'_, '_>) -> Result<(), String> {
    let history = ordered.facts.history;
    let mut versions: Vec<Vec<TxnId>> = vec![Vec::new(); history.key_count()];
    for &writer in ordered.order {
        for op in history.ops_of(writer).filter(|op| history.op(*op).kind.is_write()) {
            let of_key = &mut versions[history.op(op).key.index()];
            if of_key.last() != Some(&writer) {
                of_key.push(writer);
            }
        }
    }
    let mut search = Search { ordered, versions, steps: 0 };
    for &reader in ordered.order {
        for read in ordered.reads_of(reader) {
            let Some(next) = search.version_after(read.key, read.writer) else { continue };
            if next != reader && search.leads(next, reader)? {
                return Err(format!(
                    "transaction {} read key {} and missed transaction {}, on which it depends",
                    reader.0, read.key.0, next.0
                ));
            }
        }
    }
    Ok(())
}

struct Search<'o, 'f, 'a> {
    ordered: &'o Ordered<'f, 'a>,
    /// By key, its writers in the commit order.
    versions: Vec<Vec<TxnId>>,
    steps: u64,
}

impl Search<'_, '_, '_> {
    fn version_after(&self, key: KeyId, writer: Option<TxnId>) -> Option<TxnId> {
        let versions = &self.versions[key.index()];
        let place = writer.map_or(0, |writer| self.place_of(key, writer) + 1);
        versions.get(place).copied()
    }

    fn place_of(&self, key: KeyId, writer: TxnId) -> usize {
        let place = |txn: TxnId| self.ordered.place(txn);
        self.versions[key.index()].partition_point(|&other| place(other) < place(writer))
    }

    /// Whether reads-from and version order lead from one transaction to the other.
    fn leads(&mut self, from: TxnId, to: TxnId) -> Result<bool, String> {
        let history = self.ordered.facts.history;
        let first = self.ordered.place(from);
        if first > self.ordered.place(to) {
            return Ok(false);
        }
        let mut seen = std::collections::HashSet::from([to]);
        let mut open = vec![to];
        while let Some(txn) = open.pop() {
            let reads = self.ordered.reads_of(txn).iter().filter_map(|read| read.writer);
            let overwritten = history.ops_of(txn).filter_map(|op| {
                let op = history.op(op);
                let place = op.kind.is_write().then(|| self.place_of(op.key, txn))?;
                place.checked_sub(1).map(|before| self.versions[op.key.index()][before])
            });
            let mut steps = 0;
            for before in reads.chain(overwritten) {
                steps += 1;
                if before == from {
                    return Ok(true);
                }
                if self.ordered.place(before) > first && seen.insert(before) {
                    open.push(before);
                }
            }
            self.steps += steps;
            if self.steps > STEPS_MAX {
                return Err("the history takes too much work for this verifier".into());
            }
        }
        Ok(false)
    }
}
