//! Anomalies of a part of a history as anomalies of the whole.

use crate::anomaly::{Anomaly, Cases, Evidence, NO_KEY, Seen, Way};
use crate::evidence::{Cycle, Edge, INITIAL, Reason};
use isolde_history::{KeyId, OpId, Part, TxnId};

/// The same anomaly with the ids of the whole history.
pub(super) fn to_whole(part: &Part, anomaly: Anomaly) -> Anomaly {
    let evidence = match anomaly.evidence {
        Evidence::Operations { key, ops } => Evidence::Operations {
            key: part.keys.get(key.index()).copied().unwrap_or(NO_KEY),
            ops: ops.into_iter().map(|op| part.ops[op.index()]).collect(),
        },
        Evidence::Cycle(cycle) => Evidence::Cycle(whole_cycle(part, &cycle)),
        Evidence::Cases(Cases { cycles, count, ways, seen }) => {
            let cycles = cycles.iter().map(|cycle| whole_cycle(part, cycle)).collect();
            let ways = ways.iter().map(|way| whole_way(part, way)).collect();
            let seen = seen.iter().map(|seen| whole_seen(part, seen)).collect();
            Evidence::Cases(Cases { cycles, count, ways, seen })
        }
    };
    let txns = anomaly.txns.into_iter().map(|txn| whole_txn(part, txn)).collect();
    Anomaly { kind: anomaly.kind, txns, evidence }
}

fn whole_txn(part: &Part, txn: TxnId) -> TxnId {
    if txn == INITIAL { INITIAL } else { part.txns[txn.index()] }
}

fn whole_seen(part: &Part, seen: &Seen) -> Seen {
    Seen {
        case: seen.case,
        read: part.ops[seen.read.index()],
        key: part.keys[seen.key.index()],
        writer: whole_txn(part, seen.writer),
    }
}

fn whole_way(part: &Part, way: &Way) -> Way {
    let txns = |txns: &[TxnId]| txns.iter().map(|&txn| whole_txn(part, txn)).collect();
    Way {
        added: way.added.iter().map(|op| part.ops[op.index()]).collect(),
        happened: txns(&way.happened),
        never_happened: txns(&way.never_happened),
    }
}

fn whole_cycle(part: &Part, cycle: &Cycle) -> Cycle {
    Cycle { edges: whole_edges(part, &cycle.edges) }
}

/// Reasons are nested as deep as a few transactions allow, so this may recurse.
fn whole_edges(part: &Part, edges: &[Edge]) -> Vec<Edge> {
    let edge = |edge: &Edge| Edge {
        before: whole_txn(part, edge.before),
        after: whole_txn(part, edge.after),
        reason: whole_reason(part, &edge.reason),
        conflict: edge.conflict.map(|key| part.keys[key.index()]),
    };
    edges.iter().map(edge).collect()
}

fn whole_reason(part: &Part, reason: &Reason) -> Reason {
    let txn = |txn: &TxnId| whole_txn(part, *txn);
    let op = |op: OpId| part.ops[op.index()];
    let key = |key: KeyId| part.keys[key.index()];
    match reason {
        Reason::Rule(rule) => Reason::Rule(rule.map(op, key, |path| whole_edges(part, path))),
        Reason::FirstVersion { read, key: of } => {
            Reason::FirstVersion { read: op(*read), key: key(*of) }
        }
        Reason::Assumed { key: of, first, second } => {
            Reason::Assumed { key: key(*of), first: txn(first), second: txn(second) }
        }
        Reason::Supposed { first, second } => {
            Reason::Supposed { first: txn(first), second: txn(second) }
        }
        Reason::AsTold => Reason::AsTold,
        Reason::Untold { steps } => Reason::Untold { steps: *steps },
    }
}
