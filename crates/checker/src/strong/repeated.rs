//! Reads of repeated values: everything each of them may have seen.
//!
//! A refused compare-and-set that does not tell what it found may have seen every version but
//! one. To try them costs the square of the history, and is seldom needed: without these reads
//! there are fewer conditions, so what is violated without them is violated, and an order found
//! without them mostly fits them too.

use super::model::Model;
use super::versions::Versions;
use crate::unknown::Obstacle;
use crate::verdict::Satisfied;
use isolde_certificate::Node;
use isolde_history::{History, Index, KeyId, OpId, OpKind, Origin, Outcome, ReadId, TxnId, Value};

/// What refused compare-and-sets may have seen is not tried beyond so many versions together.
const REFUSED_ORIGINS_MAX: usize = 1 << 22;

/// What becomes of refused compare-and-sets that do not tell what they found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    LeftOut,
    Tried,
}

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
    refused: Refused,
) -> Result<Vec<Repeated>, Obstacle> {
    let (history, index) = (versions.history, versions.index);
    let mut refused_origins = 0;
    if index.has_repeated_elements() {
        return Err(Obstacle::RepeatedElement);
    }
    let mut reads = Vec::with_capacity(index.several().len());
    for several in index.several() {
        let read = index.read(several.read);
        let is_refused = history.op(read.op).kind == OpKind::ReadOther;
        if is_refused && refused == Refused::LeftOut {
            continue;
        }
        let reader = history.txn_of(read.op);
        let protected = versions.is_protected(model, reader, &read);
        let origins = if several.complete {
            several.candidates.iter().map(|&origin| txn_of(origin)).collect()
        } else {
            all_origins(versions, reader, read.op, read.key)
        };
        if history.op(read.op).kind == OpKind::ReadList {
            return Err(Obstacle::RepeatedElement);
        }
        let optional = |writer: &&Option<TxnId>| writer.is_some_and(|txn| !index.is_counted(txn));
        if let Some(Some(writer)) = origins.iter().find(optional) {
            return Err(Obstacle::UnobservedWriter { txn: history.readable_name(*writer) });
        }
        refused_origins += if is_refused { origins.len() } else { 0 };
        if refused_origins > REFUSED_ORIGINS_MAX {
            return Err(Obstacle::RefusedOrigins);
        }
        let (op, key) = (read.op, read.key);
        reads.push(Repeated { read: several.read, reader, op, key, protected, origins });
    }
    Ok(reads)
}

/// Whether some refused compare-and-sets do not tell what they found.
pub(crate) fn has_refused(history: &History, index: &Index) -> bool {
    let is_refused = |read| history.op(index.read(read).op).kind == OpKind::ReadOther;
    index.several().iter().any(|several| is_refused(several.read))
}

/// Whether in an order every refused compare-and-set finds something else than it expected.
pub(crate) fn refused_fit(history: &History, index: &Index, order: &Satisfied) -> bool {
    let mut held: Vec<Value> = history.keys().map(|key| history.initial(key)).collect();
    let is_refused = |op: OpId| history.op(op).kind == OpKind::ReadOther;
    let fits = |held: &[Value], txn| {
        let mut reads = index.reads_of(txn).filter(|read| is_refused(read.op));
        reads.all(|read| held[read.key.index()] != history.op(read.op).value)
    };
    let install = |held: &mut [Value], txn| {
        let writes = history.ops_of(txn).map(|op| history.op(op)).filter(|op| op.kind.is_write());
        writes.for_each(|write| held[write.key.index()] = write.value);
    };
    match order {
        Satisfied::Order(txns) => txns.iter().all(|&txn| {
            let is_right = fits(&held, txn);
            install(&mut held, txn);
            is_right
        }),
        Satisfied::Events(events) => events.iter().all(|event: &Node| {
            let is_right = !event.is_begin() || fits(&held, event.txn());
            if !event.is_begin() {
                install(&mut held, event.txn());
            }
            is_right
        }),
        Satisfied::Implied(_) | Satisfied::Definition | Satisfied::Interpretation => false,
    }
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
