//! The serialization order that a database gave, held against the history.
//!
//! **Definition** [Enne]. Run one after another in the given order, every transaction reads
//! what was written last before it, and versions come in the order that is known of them.
//! If so the order shows serializability; if not, only the claim is refuted: another order
//! may explain the history, which the verdict on the level tells.
//!
//! **Method.** One pass over the order that keeps the last writer of each key.

use hashbrown::HashMap;
use isolde_history::{
    ExternalRead, History, Index, KeyId, OpId, Origin, ReadId, TxnId, VersionStep,
};

/// Where a given serialization order and the history part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// This transaction counts, but the order does not have it.
    Missing(TxnId),
    /// A transaction read something else than the last version before it.
    Read {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
        /// Who wrote the last version by the order; none for the initial one.
        expected: Option<TxnId>,
        /// Who wrote what was read; none for the initial version.
        saw: Option<TxnId>,
    },
    /// The versions of a key are known to have come the other way round.
    Versions(VersionStep),
}

/// The first place where the given serialization order and the history part, if there is an
/// order; `Some(None)` if it explains every read.
pub fn replay(history: &History, index: &Index) -> Option<Option<Contradiction>> {
    let total = history.orders().total.as_deref()?;
    Some(contradiction(history, index, total))
}

fn contradiction(history: &History, index: &Index, total: &[TxnId]) -> Option<Contradiction> {
    let mut places = vec![usize::MAX; history.txn_count()];
    for (place, txn) in total.iter().enumerate() {
        places[txn.index()] = place;
    }
    let is_missing = |txn: &TxnId| index.is_counted(*txn) && places[txn.index()] == usize::MAX;
    if let Some(txn) = history.txns().find(is_missing) {
        return Some(Contradiction::Missing(txn));
    }
    let several: HashMap<ReadId, &[Origin]> =
        index.several().iter().map(|it| (it.read, it.candidates.as_slice())).collect();
    let mut last: Vec<Option<TxnId>> = vec![None; history.key_count()];
    for &txn in total.iter().filter(|&&txn| index.is_counted(txn)) {
        for read in index.read_range(txn).map(ReadId) {
            let ExternalRead { op, key, origin } = index.read(read);
            let expected = last[key.index()];
            let candidates = match &origin {
                Origin::Several => several.get(&read).copied().unwrap_or_default(),
                // A value from nowhere is no matter of order.
                Origin::Nobody => &[],
                one => std::slice::from_ref(one),
            };
            let wanted = expected.map_or(Origin::Initial, Origin::Txn);
            if let Some(first) = candidates.first()
                && !candidates.contains(&wanted)
            {
                let saw = if let Origin::Txn(writer) = *first { Some(writer) } else { None };
                return Some(Contradiction::Read { read: op, key, expected, saw });
            }
        }
        for key in index.written_by(txn) {
            last[key.index()] = Some(txn);
        }
    }
    let is_reversed =
        |step: &&VersionStep| places[step.before.index()] > places[step.after.index()];
    index.steps().iter().find(is_reversed).copied().map(Contradiction::Versions)
}
