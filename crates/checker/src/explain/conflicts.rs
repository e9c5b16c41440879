//! The key that two transactions both write, where the level asks only such to see each other.
//!
//! At update atomic a reader misses another writer against the rules if it read from that one or
//! both write some key; at cursor stability if it writes the key that it read. A step that rests
//! on such a write names it, unless another step shows it.

use super::admissible::saw_directly;
use crate::anomaly::{Anomaly, Evidence};
use crate::evidence::{Edge, EdgeKind, INITIAL, Reason};
use crate::level::Level;
use hashbrown::HashSet;
use isolde_certificate::Rule;
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
    for edge in anomaly.evidence.cycles_mut().iter_mut().flat_map(|cycle| &mut cycle.edges) {
        name((history, index), edge, &conflict);
    }
    anomaly
}

/// Names the keys of an edge and of what it follows from. Nested no deeper than what is told.
fn name(
    (history, index): (&History, &Index),
    edge: &mut Edge,
    hidden: &dyn Fn(TxnId, TxnId, KeyId) -> Option<KeyId>,
) {
    let (before, after) = (edge.before, edge.after);
    if let Reason::Assumed { key, first, second } = edge.reason
        && before != first
        && let Some(conflict) = hidden(before, second, key)
    {
        let mut reads = index.reads_of(before);
        let read = reads.find(|it| it.key == key && it.origin == Origin::Txn(first));
        if let Some(read) = read {
            let path = vec![Edge::new(first, second, edge.reason.clone())];
            edge.reason = Reason::Rule(Rule::AntiDependency { read: read.op, key, path });
            edge.conflict = Some(conflict);
        }
        return;
    }
    if let (Some(read), Some(key)) = (edge.read(), edge.key()) {
        edge.conflict = match edge.kind() {
            EdgeKind::Rw => hidden(before, after, key),
            _ if edge.is_overwriting() => hidden(history.txn_of(read), before, key),
            _ => None,
        };
    }
    for step in edge.premises_mut() {
        name((history, index), step, hidden);
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
    for edge in anomaly.evidence.all_edges() {
        let Some(key) = edge.key() else { continue };
        let (before, after) = (edge.before, edge.after);
        match (&edge.reason, edge.kind()) {
            (Reason::Assumed { first, second, .. }, _) => {
                shown.extend([(*first, key), (*second, key)]);
            }
            (_, EdgeKind::Wr) => shown.extend([(before, key)]),
            (_, EdgeKind::Rw) => shown.extend([(after, key)]),
            _ => shown.extend([(before, key), (after, key)]),
        }
    }
    shown
}
