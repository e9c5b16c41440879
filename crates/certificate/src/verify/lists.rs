//! Whether the lists that were read of a key agree with each other.
//!
//! Levels that allow wrong reads take no order from lists that contradict each other, so a
//! proof may take one only if they do not, whichever transactions count.

use super::facts::{Facts, Reader, Seen};
use super::versions;
use isolde_history::{KeyId, OpId, OpKind, Outcome, TxnId, Value};
use std::collections::{HashMap, HashSet};

/// Refuses lists that contradict each other.
pub(super) fn check_agreement(facts: &Facts<'_>, key: KeyId) -> Result<(), String> {
    let agree = agree(facts, key, &HashSet::new())?
        // Rarely is it transactions that never count that are in the way.
        || agree(facts, key, &never_counting(facts))?;
    if agree {
        return Ok(());
    }
    Err("lists of the key contradict each other, and the level takes no order from them".into())
}

fn agree(facts: &Facts<'_>, key: KeyId, left_out: &HashSet<TxnId>) -> Result<bool, String> {
    let history = facts.history;
    let mut lists = Vec::new();
    let mut reader = Reader::default();
    let may_count = |txn: &TxnId| facts.may_count(*txn) && !left_out.contains(txn);
    for txn in history.txns().filter(may_count) {
        reader.visit(history, txn, |read| {
            if let (true, Seen::List(Some(others))) = (read.key == key, read.seen) {
                lists.push(others);
            }
        });
    }
    let longest = lists.iter().copied().max_by_key(|list| list.len()).unwrap_or_default();
    let mut sequence = Vec::new();
    for &element in longest {
        let mut appends = facts.appends_of(key, element);
        match (appends.next(), appends.next()) {
            (None, _) => {}
            (Some(only), None) => sequence.push(only),
            _ => return Err("an element was appended more than once".into()),
        }
    }
    let shown: HashSet<OpId> = sequence.iter().copied().collect();
    sequence.extend(facts.writes_of(key).filter(|append| !shown.contains(append)));
    let agree = lists.iter().all(|list| longest.starts_with(list));
    Ok(agree && versions::keeps_programs(facts, sequence, left_out))
}

/// Transactions of unknown outcome of which nobody else read what they wrote, if all reads
/// tell by values what was read.
pub(super) fn never_counting(facts: &Facts<'_>) -> HashSet<TxnId> {
    let history = facts.history;
    let is_open = |txn: &TxnId| history.outcome(*txn) == Outcome::Unknown;
    let mut unread: HashSet<TxnId> = history.txns().filter(is_open).collect();
    let mut writers: HashMap<(KeyId, Value), Vec<TxnId>> = HashMap::new();
    for &txn in &unread {
        for op in history.ops_of(txn).map(|op| history.op(op)).filter(|op| op.kind.is_write()) {
            writers.entry((op.key, op.value)).or_default().push(txn);
        }
    }
    for reader in history.txns().filter(|&txn| facts.may_count(txn)) {
        let mut read = |key: KeyId, value: Value| {
            for writer in writers.get(&(key, value)).into_iter().flatten() {
                if *writer != reader {
                    unread.remove(writer);
                }
            }
        };
        for id in history.ops_of(reader) {
            let op = history.op(id);
            match op.kind {
                OpKind::Read => read(op.key, op.value),
                OpKind::ReadList => {
                    history.list(id).iter().for_each(|&element| read(op.key, element));
                }
                kind if kind.is_write() => {}
                _ => return HashSet::new(),
            }
        }
    }
    unread
}
