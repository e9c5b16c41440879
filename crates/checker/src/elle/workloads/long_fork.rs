//! `long-fork`: readers agree on the order in which keys were written.
//!
//! **Definition** [Jepsen's `long-fork`]. Every key is written at most once. Of two
//! transactions that read the same keys, one saw everything the other saw: otherwise
//! each missed a write that the other one saw, and no order of snapshots explains
//! both. That is what snapshot isolation forbids and parallel snapshot isolation
//! allows.
//!
//! **Method.** The reads of a group of keys are sorted by how many writes they saw; if
//! each saw all that the one before it saw, any two can be compared. Linear but for
//! sorting. Asked to be complete, snapshot isolation is decided beside it.

use super::{Finding, Misfit, Problem, Recorded};
use crate::check::Check;
use crate::elle::Valid;
use crate::level::Level;
use crate::verdict::Verdict;
use hashbrown::HashSet;
use isolde_history::{History, Index, KeyId, OpId, OpKind, Outcome, TxnId, Value};
use std::collections::BTreeMap;

/// What one transaction saw of its keys, in order of the keys.
struct Snapshot {
    op: OpId,
    seen: Vec<(KeyId, Value)>,
}

pub(super) fn check(recorded: &Recorded<'_>) -> Result<Finding, Misfit> {
    let history = recorded.history;
    let mut written: HashSet<KeyId> = HashSet::new();
    let mut groups: BTreeMap<Vec<KeyId>, Vec<Snapshot>> = BTreeMap::new();
    for txn in history.txns() {
        if let Some(key) = write_of(history, txn)? {
            if !written.insert(key) {
                let key = history.datum(history.key_name(key));
                return Ok(Finding::unknown(format!("key {key} is written several times")));
            }
        } else if history.outcome(txn) == Outcome::Committed
            && let Some(snapshot) = snapshot(history, txn)
        {
            let keys = snapshot.seen.iter().map(|&(key, _)| key).collect();
            groups.entry(keys).or_default().push(snapshot);
        }
    }
    if groups.is_empty() {
        return Ok(Finding::vacuous("nothing was ever read"));
    }
    let mut problems = Vec::new();
    for (keys, snapshots) in &mut groups {
        if let Some(size) = recorded.expectations.group_size.filter(|&size| size != keys.len()) {
            let found = keys.len();
            let reason = format!("every read should be of {size} keys, and one is of {found}");
            return Ok(Finding::unknown(reason));
        }
        snapshots.sort_by_key(|it| it.seen.iter().filter(|seen| seen.1 != Value::NIL).count());
        for pair in snapshots.windows(2) {
            match compare(&pair[0], &pair[1]) {
                Compared::Comparable => {}
                Compared::Forked(first, second) => {
                    problems.push(fork(history, (&pair[0], &pair[1]), (first, second)));
                }
                Compared::Differ(key) => {
                    let key = history.datum(history.key_name(key));
                    return Ok(Finding::unknown(format!("key {key} was seen with several values")));
                }
            }
        }
    }
    let reads = groups.values().map(Vec::len).sum();
    let finding = Finding::of(problems, vec![("reads", reads), ("groups", groups.len())]);
    Ok(if recorded.expectations.complete { with_isolation(recorded, finding) } else { finding })
}

/// The key of a transaction that is one write.
fn write_of(history: &History, txn: TxnId) -> Result<Option<KeyId>, Misfit> {
    let ops: Vec<OpId> = history.ops_of(txn).collect();
    let reads = |op: &OpId| history.op(*op).kind == OpKind::Read;
    match *ops {
        [op] if history.op(op).kind == OpKind::Write => Ok(Some(history.op(op).key)),
        _ => match ops.iter().find(|op| !reads(op)) {
            None => Ok(None),
            Some(&op) => Err(Misfit { op, expected: "one write, or reads only".into() }),
        },
    }
}

fn snapshot(history: &History, txn: TxnId) -> Option<Snapshot> {
    let first = history.ops_of(txn).next()?;
    let mut seen: Vec<(KeyId, Value)> =
        history.ops_of(txn).map(|op| history.op(op)).map(|op| (op.key, op.value)).collect();
    seen.sort_unstable();
    seen.dedup();
    Some(Snapshot { op: first, seen })
}

enum Compared {
    Comparable,
    /// A key that only the first saw, and one that only the second saw.
    Forked(KeyId, KeyId),
    /// Both saw a value of this key, and not the same.
    Differ(KeyId),
}

fn compare(one: &Snapshot, other: &Snapshot) -> Compared {
    let (mut only_one, mut only_other) = (None, None);
    for (&(key, first), &(_, second)) in one.seen.iter().zip(&other.seen) {
        match (first, second) {
            _ if first == second => {}
            (Value::NIL, _) => only_other = Some(key),
            (_, Value::NIL) => only_one = Some(key),
            _ => return Compared::Differ(key),
        }
    }
    match (only_one, only_other) {
        (Some(first), Some(second)) => Compared::Forked(first, second),
        _ => Compared::Comparable,
    }
}

fn fork(history: &History, pair: (&Snapshot, &Snapshot), keys: (KeyId, KeyId)) -> Problem {
    let name = |snapshot: &Snapshot| history.readable_name(history.txn_of(snapshot.op));
    let key = |key: KeyId| history.datum(history.key_name(key));
    let (first, second) = (key(keys.0), key(keys.1));
    let text = format!(
        "{} saw {first} written and {second} not, {} saw {second} written and {first} not",
        name(pair.0),
        name(pair.1)
    );
    Problem { name: "long-fork", ops: vec![pair.0.op, pair.1.op], text }
}

fn with_isolation(recorded: &Recorded<'_>, mut finding: Finding) -> Finding {
    let index = Index::new(recorded.history);
    let mut check = Check::new(recorded.history, &index, recorded.limits);
    match check.decide(Level::SnapshotIsolation) {
        Verdict::Violated(violated) => {
            finding.valid = Valid::False;
            finding.anomalies = violated.anomalies;
        }
        Verdict::Unknown(reason) if finding.valid == Valid::True => {
            finding.valid = Valid::Unknown(format!("snapshot isolation: {reason}"));
        }
        Verdict::Satisfied(_) | Verdict::Unknown(_) => {}
    }
    finding
}
