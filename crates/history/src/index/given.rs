//! Version orders that came with the history.
//!
//! Writes of transactions that do not count are passed over; a value that several
//! operations wrote tells nothing. A chain that contradicts a transaction's own
//! program, or puts the initial version behind a write, is a conflict and gives no
//! steps.

use super::writes::Writes;
use super::{VersionConflict, VersionEvidence, VersionStep};
use crate::history::{History, OpId, TxnId, VersionChain};
use hashbrown::HashMap;

pub(super) fn orders(
    history: &History,
    writes: &Writes,
    counted: &[bool],
    steps: &mut Vec<VersionStep>,
    conflicts: &mut Vec<VersionConflict>,
) {
    for chain in &history.orders().versions {
        match chain_steps(history, writes, counted, chain) {
            Ok(found) => steps.extend(found),
            Err(conflict) => conflicts.push(conflict),
        }
    }
}

fn chain_steps(
    history: &History,
    writes: &Writes,
    counted: &[bool],
    chain: &VersionChain,
) -> Result<Vec<VersionStep>, VersionConflict> {
    let (key, evidence) = (chain.key, VersionEvidence::Given);
    let mut steps = Vec::new();
    let mut last: Option<TxnId> = None;
    let mut first_write: Option<OpId> = None;
    let mut latest_of: HashMap<TxnId, OpId> = HashMap::new();
    for &value in &chain.values {
        let version = match *writes.with_value(key, value) {
            [only] if value != history.initial(key) => only,
            [] if value == history.initial(key) => match first_write {
                Some(write) => return Err(VersionConflict::LateInitial { write }),
                None => continue,
            },
            _ => continue,
        };
        let (txn, op) = (version.txn, version.op());
        first_write = first_write.or(Some(op));
        if !counted[txn.index()] {
            continue;
        }
        if let Some(&later) = latest_of.get(&txn)
            && op < later
        {
            return Err(VersionConflict::Program { read: None, earlier: op, later });
        }
        latest_of.insert(txn, op);
        if let Some(before) = last
            && before != txn
        {
            steps.push(VersionStep { before, after: txn, key, evidence });
        }
        last = Some(txn);
    }
    Ok(steps)
}
