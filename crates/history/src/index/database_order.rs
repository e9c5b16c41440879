//! Version orders that came with the history.
//!
//! Writes of transactions that do not count are passed over, and so are entries of which
//! nothing tells who wrote them. A chain that contradicts a transaction's own
//! program is a conflict and gives no steps. One that puts the initial version behind a
//! write is a conflict too, but its writes are in order all the same.

use super::writes::Writes;
use super::{VersionConflict, VersionEvidence, VersionStep};
use crate::database_order::Named;
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
        match chain_steps(history, writes, counted, chain, conflicts) {
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
    conflicts: &mut Vec<VersionConflict>,
) -> Result<Vec<VersionStep>, VersionConflict> {
    let (key, evidence) = (chain.key, VersionEvidence::Given);
    let mut steps = Vec::new();
    let mut last: Option<TxnId> = None;
    let mut first_write: Option<OpId> = None;
    let mut late_initial = None;
    let mut latest_of: HashMap<TxnId, OpId> = HashMap::new();
    let writes_of =
        |value| writes.with_value(history, key, value).iter().map(|it| it.op()).collect();
    for named in chain.named(history, &writes_of) {
        let op = match named {
            Named::Write(op) => op,
            Named::Initial => {
                late_initial = first_write.map(|write| VersionConflict::LateInitial { write });
                continue;
            }
            Named::Open | Named::Nobody => continue,
        };
        let txn = history.txn_of(op);
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
    conflicts.extend(late_initial);
    Ok(steps)
}
