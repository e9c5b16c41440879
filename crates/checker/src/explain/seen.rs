//! Cycles told by what was seen, where more was seen than the smallest part shows.
//!
//! Two transactions on a cycle may both write a key, and then one of them has to see the other.
//! If it read what the other wrote, that read is as good an argument as any for it, but the
//! smallest part may have another and lack the read: what is a long fork then looks like a cycle
//! of things that were missed.

use super::{Explanation, Start, seeds};
use crate::anomaly::{AnomalyKind, Evidence};
use crate::evidence::{Cycle, Edge, EdgeKind, INITIAL};
use crate::naming;
use isolde_history::{ExternalRead, History, Index, OpId, Origin};

/// The same part with the reads of the whole history that make its cycle an anomaly which says
/// more, if any do.
pub(super) fn by_reads((history, index): (&History, &Index), found: &Explanation) -> Option<Start> {
    let Evidence::Cycle(cycle) = &found.anomaly.evidence else { return None };
    if !is_general(found.anomaly.kind) {
        return None;
    }
    let edges: Vec<Edge> = cycle.edges.iter().map(|edge| seen(index, edge)).collect();
    let reads = edges.iter().filter(|edge| edge.kind() == EdgeKind::Wr);
    let kept: Vec<OpId> = reads.filter_map(Edge::read).collect();
    if is_general(naming::of_event_cycle(history, found.shown_at, Cycle { edges }).kind) {
        return None;
    }
    let mut selection = found.rests_on.clone();
    selection.ops.extend(seeds::supported(history, index, &kept).ops);
    selection.ops.sort_unstable();
    selection.ops.dedup();
    selection.close(history, index);
    Some(Start { selection, kept })
}

/// Whether a name says no more than that there is a cycle.
pub(super) fn is_general(kind: AnomalyKind) -> bool {
    matches!(
        kind,
        AnomalyKind::AntiDependencyCycle
            | AnomalyKind::SessionAntiDependencyCycle
            | AnomalyKind::RealTimeAntiDependencyCycle
    )
}

/// The edge by a read of what the earlier transaction wrote, if there is one.
fn seen(index: &Index, edge: &Edge) -> Edge {
    let of = |read: &ExternalRead| read.origin == Origin::Txn(edge.before);
    let read = if edge.after == INITIAL { None } else { index.reads_of(edge.after).find(of) };
    read.map_or_else(
        || edge.clone(),
        |read| Edge::reads_from(edge.before, edge.after, read.op, read.key),
    )
}
