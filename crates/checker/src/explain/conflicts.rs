//! The key that two transactions both write, where the level asks only such to see each other.
//!
//! At update atomic a reader misses another writer against the rules if it read from that one or
//! both write some key; at cursor stability if it writes the key that it read. A step that rests
//! on such a write names it, unless another step shows it.

use super::admissible::{all_edges, edges_mut, saw_directly};
use crate::anomaly::{Anomaly, Evidence};
use crate::evidence::{Edge, INITIAL, Reason};
use crate::level::Level;
use hashbrown::HashSet;
use isolde_history::{History, Index, KeyId, Origin, TxnId};

/// The same anomaly with the keys that its steps need both of their transactions to write.
#[must_use]
pub(super) fn with_conflicts(
    (history, index): (&History, &Index),
    level: Level,
    mut anomaly: Anomaly,
) -> Anomaly {
    if !matches!(level, Level::UpdateAtomic | Level::CursorStability)
        || matches!(anomaly.evidence, Evidence::Operations { .. })
    {
        return anomaly;
    }
    let writes = Writes { history, shown: shown(&anomaly), saw: saw_directly(&anomaly) };
    let conflict = |reader: TxnId, other: TxnId, key: KeyId| match level {
        Level::CursorStability => writes.hidden(reader, other, [key]),
        _ if writes.saw.contains(&(other, reader)) => None,
        _ => writes.hidden(reader, other, history.keys()),
    };
    for edge in edges_mut(&mut anomaly) {
        name(index, edge, &conflict);
    }
    anomaly
}

/// Names the keys of an edge and of what it follows from. Nested no deeper than what is told.
fn name(index: &Index, edge: &mut Edge, hidden: &dyn Fn(TxnId, TxnId, KeyId) -> Option<KeyId>) {
    if let Reason::Assumed { key, first, second } = edge.reason
        && edge.before != first
        && let Some(conflict) = hidden(edge.before, second, key)
    {
        let mut reads = index.reads_of(edge.before);
        let read = reads.find(|it| it.key == key && it.origin == Origin::Txn(first));
        if let Some(read) = read {
            let because = vec![Edge { before: first, after: second, reason: edge.reason.clone() }];
            let conflict = Some(conflict);
            edge.reason = Reason::AntiDependency { read: read.op, key, because, conflict };
        }
        return;
    }
    let (before, after) = (edge.before, edge.after);
    match &mut edge.reason {
        Reason::AntiDependency { key, because, conflict, .. } => {
            *conflict = hidden(before, after, *key);
            for step in because.iter_mut() {
                name(index, step, hidden);
            }
        }
        Reason::Overwritten { reader, key, visible, conflict, .. } => {
            *conflict = hidden(*reader, before, *key);
            for step in visible.iter_mut() {
                name(index, step, hidden);
            }
        }
        Reason::WritersApart { because, .. } => {
            for step in because.iter_mut() {
                name(index, step, hidden);
            }
        }
        _ => {}
    }
}

struct Writes<'a> {
    history: &'a History,
    /// Writes that the steps show.
    shown: HashSet<(TxnId, KeyId)>,
    /// Who read from whom: the writer first.
    saw: HashSet<(TxnId, TxnId)>,
}

impl Writes<'_> {
    /// The first of these keys that both write, unless the steps show that they write one.
    fn hidden(
        &self,
        one: TxnId,
        other: TxnId,
        keys: impl IntoIterator<Item = KeyId>,
    ) -> Option<KeyId> {
        let mut hidden = None;
        for key in keys {
            if !writes(self.history, one, key) || !writes(self.history, other, key) {
                continue;
            }
            if self.shown.contains(&(one, key)) && self.shown.contains(&(other, key)) {
                return None;
            }
            hidden = hidden.or(Some(key));
        }
        hidden
    }
}

/// Whether a transaction writes a key.
pub(super) fn writes(history: &History, txn: TxnId, key: KeyId) -> bool {
    let is_write = |op| history.op(op).kind.is_write() && history.op(op).key == key;
    txn != INITIAL && history.ops_of(txn).any(is_write)
}

/// The writes that the steps of an anomaly name.
fn shown(anomaly: &Anomaly) -> HashSet<(TxnId, KeyId)> {
    let mut shown = HashSet::new();
    for edge in all_edges(anomaly) {
        let (before, after) = (edge.before, edge.after);
        match edge.reason {
            Reason::ReadsFrom { key, .. } => shown.extend([(before, key)]),
            Reason::AntiDependency { key, .. } => shown.extend([(after, key)]),
            Reason::WritersApart { key, .. }
            | Reason::Overwritten { key, .. }
            | Reason::FirstVersion { key, .. } => shown.extend([(before, key), (after, key)]),
            Reason::Version(step) => shown.extend([(before, step.key), (after, step.key)]),
            Reason::Assumed { key, first, second } => {
                shown.extend([(first, key), (second, key)]);
            }
            _ => {}
        }
    }
    shown
}
