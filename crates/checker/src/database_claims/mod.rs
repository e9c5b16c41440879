//! The serialization order that a database gave, held against the history.
//!
//! **Definition** [Enne]. Run one after another in the given order, every transaction reads
//! what was written last before it, and versions come in the order that is known of them.
//! If so the order shows serializability; if not, only the claim is refuted: another order
//! may explain the history, which the verdict on the level tells.
//!
//! **Method.** One pass over the order that keeps the last writer of each key, and, where there
//! are reads by condition, the rows that exist, ordered so that each of these looks only at
//! what it found.

mod conflicts;
mod state;
mod timestamps;

pub use conflicts::{Conflict, conflicts};
pub use timestamps::{Axiom, Clash, timestamps};

use hashbrown::{HashMap, HashSet};
use isolde_history::{
    ExternalRead, History, Index, KeyId, Misread, MisreadKind, OpId, OpKind, Origin, PredicateRow,
    ReadId, TxnId, Value, VersionStep,
};
use state::State;

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
    /// A transaction found something else by condition than what was there.
    Condition {
        /// The operation by condition.
        read: OpId,
        /// A row that it should have found or should not; none for an aggregate.
        key: Option<KeyId>,
        /// Who wrote the last version of that row by the order; none for the initial one.
        writer: Option<TxnId>,
    },
    /// A read that no order explains.
    Misread(Misread),
    /// The versions of a key are known to have come the other way round.
    Versions(VersionStep),
}

/// The first place where the given serialization order and the history part, if there is an
/// order; `Some(None)` if it explains every read.
pub fn replay(history: &History, index: &Index) -> Option<Option<Contradiction>> {
    let total = history.orders().total.as_deref()?;
    Some(Replayed::of(history, index, total).contradiction)
}

/// The given serialization order of all transactions that count, if it is sure to explain
/// everything that they saw: then it shows serializability without a search. Snapshots and lists
/// say more about conditions than a replay looks at.
pub(crate) fn shown(history: &History, index: &Index) -> Option<Vec<TxnId>> {
    let total = history.orders().total.as_deref()?;
    let is_list = |kind: &OpKind| matches!(kind, OpKind::Append | OpKind::ReadList);
    let has_more = history.has_snapshots() || history.op_kinds().iter().any(is_list);
    if history.has_predicates() && has_more {
        return None;
    }
    let replayed = Replayed::of(history, index, total);
    let counted = total.iter().copied().filter(|&txn| index.is_counted(txn));
    (replayed.contradiction.is_none() && replayed.tells_all).then(|| counted.collect())
}

/// What came of running all transactions in the given order.
struct Replayed {
    contradiction: Option<Contradiction>,
    /// Whether of every operation by condition it could be told what it should have found, and
    /// rows that were looked at and not returned have the values that are there.
    tells_all: bool,
}

impl Replayed {
    fn of(history: &History, index: &Index, total: &[TxnId]) -> Replayed {
        let parted = |contradiction| Replayed { contradiction, tells_all: false };
        let mut places = vec![usize::MAX; history.txn_count()];
        for (place, txn) in total.iter().enumerate() {
            places[txn.index()] = place;
        }
        let is_missing = |txn: &TxnId| index.is_counted(*txn) && places[txn.index()] == usize::MAX;
        if let Some(txn) = history.txns().find(is_missing) {
            return parted(Some(Contradiction::Missing(txn)));
        }
        let several: HashMap<ReadId, &[Origin]> =
            index.several().iter().map(|it| (it.read, it.candidates.as_slice())).collect();
        let wrong = first_misreads(history, index, |_| true);
        let mut last: Vec<Option<TxnId>> = vec![None; history.key_count()];
        let mut state = history.has_predicates().then(|| State::new(history));
        let mut tells_all = true;
        for &txn in total.iter().filter(|&&txn| index.is_counted(txn)) {
            if let Some(&wrong) = wrong.get(&txn) {
                return parted(Some(Contradiction::Misread(wrong)));
            }
            if let Some(wrong) = misread(index, txn, &several, &last) {
                return parted(Some(wrong));
            }
            match state.as_mut().map(|state| by_condition(history, state, txn)) {
                Some(Found::Otherwise(wrong)) => return parted(Some(wrong)),
                Some(Found::Untold) => tells_all = false,
                Some(Found::AsThere) | None => {}
            }
            for key in index.written_by(txn) {
                last[key.index()] = Some(txn);
            }
        }
        let is_reversed =
            |step: &&VersionStep| places[step.before.index()] > places[step.after.index()];
        let reversed = index.steps().iter().find(is_reversed).copied();
        Replayed { contradiction: reversed.map(Contradiction::Versions), tells_all }
    }
}

/// By transaction, its first read of these kinds that is wrong whatever the order is.
fn first_misreads(
    history: &History,
    index: &Index,
    is_meant: impl Fn(MisreadKind) -> bool,
) -> HashMap<TxnId, Misread> {
    let mut first: HashMap<TxnId, Misread> = HashMap::new();
    for &misread in index.misreads().iter().filter(|it| is_meant(it.kind)) {
        let known = first.entry(history.txn_of(misread.read)).or_insert(misread);
        *known = misread.min(*known);
    }
    first
}

/// The first read of a transaction that did not see the last version of its key.
fn misread(
    index: &Index,
    txn: TxnId,
    several: &HashMap<ReadId, &[Origin]>,
    last: &[Option<TxnId>],
) -> Option<Contradiction> {
    for read in index.read_range(txn).map(ReadId) {
        let ExternalRead { op, key, origin } = index.read(read);
        let expected = last[key.index()];
        let candidates = candidates_of(several, read, &origin);
        let wanted = expected.map_or(Origin::Initial, Origin::Txn);
        if let Some(first) = candidates.first()
            && !candidates.contains(&wanted)
        {
            let saw = if let Origin::Txn(writer) = *first { Some(writer) } else { None };
            return Some(Contradiction::Read { read: op, key, expected, saw });
        }
    }
    None
}

/// What a read may have seen.
fn candidates_of<'a>(
    several: &HashMap<ReadId, &'a [Origin]>,
    read: ReadId,
    origin: &'a Origin,
) -> &'a [Origin] {
    match origin {
        Origin::Several => several.get(&read).copied().unwrap_or_default(),
        // A value from nowhere is a misread, which was looked at before.
        Origin::Nobody => &[],
        one => std::slice::from_ref(one),
    }
}

/// What an operation by condition found, held against the rows that are there.
enum Found {
    /// That.
    AsThere,
    /// It cannot be told, or rows that were looked at and not returned are not those.
    Untold,
    /// Something else.
    Otherwise(Contradiction),
}

/// Runs a transaction: the first operation by condition that found something else than what is
/// there, the transaction's own writes included.
fn by_condition(history: &History, state: &mut State<'_>, txn: TxnId) -> Found {
    let mut found = Found::AsThere;
    for op in history.ops_of(txn) {
        let it = history.op(op);
        if it.kind.is_write() {
            state.put(it.key, Some(op));
        } else if !it.kind.has_key() {
            match found_by(history, state, op) {
                Found::AsThere => {}
                Found::Untold => found = Found::Untold,
                otherwise @ Found::Otherwise(_) => return otherwise,
            }
        }
    }
    found
}

fn found_by(history: &History, state: &State<'_>, op: OpId) -> Found {
    let predicate = history.predicate(op);
    let Some(rows) = state.rows(&predicate.condition) else { return Found::Untold };
    let is_there = |row: &PredicateRow| {
        row.matched || row.value == Value::UNKNOWN || state.value(row.key) == row.value
    };
    let told = if predicate.rows.iter().all(is_there) { Found::AsThere } else { Found::Untold };
    if predicate.aggregate.is_some() {
        let wrong = Contradiction::Condition { read: op, key: None, writer: None };
        return match state.agrees(predicate, &rows) {
            Some(true) => told,
            Some(false) => Found::Otherwise(wrong),
            None => Found::Untold,
        };
    }
    match first_difference(history, op, &rows) {
        None => told,
        Some(key) => {
            let writer = state.version(key).map(|write| history.txn_of(write));
            Found::Otherwise(Contradiction::Condition { read: op, key: Some(key), writer })
        }
    }
}

/// The first row that is there and was not found, or the other way round.
fn first_difference(history: &History, op: OpId, rows: &[KeyId]) -> Option<KeyId> {
    let told = &history.predicate(op).rows;
    let mut listed: Vec<KeyId> = told.iter().filter(|row| row.matched).map(|row| row.key).collect();
    listed.extend(history.replaced(op));
    listed.sort_unstable();
    listed.dedup();
    if listed == rows {
        return None;
    }
    let is_untold = |row: &&PredicateRow| !row.matched && row.value == Value::UNKNOWN;
    let untold: HashSet<KeyId> = told.iter().filter(is_untold).map(|row| row.key).collect();
    // Both ascend, so the first difference is where they part.
    let mut found = rows.iter().copied().filter(|key| !untold.contains(key));
    let mut listed = listed.into_iter();
    loop {
        let (there, said) = (found.next(), listed.next());
        if there != said {
            return there.into_iter().chain(said).min();
        }
        there?;
    }
}
