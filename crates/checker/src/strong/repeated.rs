//! Reads of repeated values: everything each of them may have seen.

use super::model::Model;
use super::versions::Versions;
use crate::verdict::REPEATED_ELEMENT;
use isolde_history::{KeyId, OpId, OpKind, Origin, Outcome, ReadId, TxnId};

/// What is no read of the index.
pub(super) const NO_READ: ReadId = ReadId(u32::MAX);

/// A read with several possible origins.
pub(super) struct Repeated {
    /// [`NO_READ`] for a key that a read by condition looked at.
    pub(super) read: ReadId,
    pub(super) reader: TxnId,
    pub(super) op: OpId,
    pub(super) key: KeyId,
    /// Whether it has anti-dependencies.
    pub(super) protected: bool,
    /// Each transaction it may have read from; `None` is the initial state.
    pub(super) origins: Vec<Option<TxnId>>,
}

/// All reads with several possible origins, or why they cannot be decided here.
pub(super) fn repeated_reads(
    model: &Model,
    versions: &Versions<'_>,
) -> Result<Vec<Repeated>, String> {
    let (history, index) = (versions.history, versions.index);
    if index.has_repeated_elements() {
        return Err(REPEATED_ELEMENT.into());
    }
    let mut reads = Vec::with_capacity(index.several().len());
    for several in index.several() {
        let read = index.read(several.read);
        let reader = history.txn_of(read.op);
        let protected = versions.is_protected(model, reader, &read);
        let origins = if several.complete {
            several.candidates.iter().map(|&origin| txn_of(origin)).collect()
        } else {
            all_origins(versions, reader, read.op, read.key)
        };
        if history.op(read.op).kind == OpKind::ReadList {
            return Err(REPEATED_ELEMENT.into());
        }
        let optional = |writer: &&Option<TxnId>| writer.is_some_and(|txn| !index.is_counted(txn));
        if let Some(Some(writer)) = origins.iter().find(optional) {
            return Err(format!(
                "a value was written more than once, also by {}, whose outcome is unknown and \
                 which nobody else observed",
                history.readable_name(*writer)
            ));
        }
        let (op, key) = (read.op, read.key);
        reads.push(Repeated { read: several.read, reader, op, key, protected, origins });
    }
    Ok(reads)
}

fn txn_of(origin: Origin) -> Option<TxnId> {
    match origin {
        Origin::Txn(txn) => Some(txn),
        Origin::Initial | Origin::Several | Origin::Nobody => None,
    }
}

/// Candidates of a value that repeats more often than the index keeps track of.
fn all_origins(versions: &Versions<'_>, reader: TxnId, op: OpId, key: KeyId) -> Vec<Option<TxnId>> {
    let (history, index) = (versions.history, versions.index);
    let value = match history.op(op).kind {
        OpKind::PredicateRead | OpKind::PredicateUpdate => {
            let rows = &history.predicate(op).rows;
            rows.iter().find(|row| row.key == key).expect("a row of the key").value
        }
        _ => history.op(op).value,
    };
    let differs = history.op(op).kind == OpKind::ReadOther;
    let admits = |other| (other == value) != differs;
    let written = index.versions_of(history, key).iter().filter(|version| {
        admits(version.value)
            && version.is_final()
            && version.txn != reader
            && history.outcome(version.txn) != Outcome::Aborted
    });
    let initial = admits(history.initial(key)).then_some(None);
    initial.into_iter().chain(written.map(|version| Some(version.txn))).collect()
}
