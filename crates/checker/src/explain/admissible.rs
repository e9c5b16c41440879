//! Whether a level may use the steps of an argument.
//!
//! An argument against a level holds for every level that implies it. For any other level each
//! step has to be one that this level means: session order and real time only where they are
//! part of it, and an anti-dependency only where it orders the two transactions.

use super::Explanation;
use super::conflicts::writes;
use crate::anomaly::{Anomaly, Evidence};
use crate::evidence::{Edge, EdgeKind};
use crate::level::Level;
use crate::strong;
use crate::weak::RULES;
use hashbrown::HashSet;
use isolde_history::{History, KeyId, TxnId};

impl Level {
    /// Whether session order is part of the level.
    pub fn has_session_order(self) -> bool {
        self == Level::Linearizable
            || strong::keeps_sessions(self)
            || RULES.iter().any(|rule| rule.level == self && rule.session_order)
    }

    /// Whether real time is part of the level.
    pub fn has_real_time(self) -> bool {
        self == Level::Linearizable || strong::needs_times(self)
    }
}

impl Explanation {
    /// Whether the argument is one against this level, too.
    pub fn holds_for(&self, history: &History, level: Level) -> bool {
        let is_implied = level == self.shown_at || level.weaker_than().contains(&self.shown_at);
        // The session guarantees and prefix consistency each have their own idea of what a
        // reader must see.
        let is_of_orders = matches!(level, Level::CursorStability | Level::UpdateAtomic)
            || level >= Level::ParallelSnapshotIsolation;
        is_implied
            || self.rules_out.contains(&level)
                && level.forbids(self.anomaly.kind)
                && (is_of_orders
                    || !matches!(self.anomaly.evidence, Evidence::Cycle(_) | Evidence::Cases(_)))
                && is_admissible(history, level, &self.anomaly)
    }
}

/// Whether every step of an argument is one that a level means.
pub(super) fn is_admissible(history: &History, level: Level, anomaly: &Anomaly) -> bool {
    let edges = anomaly.evidence.all_edges();
    let is_meant = |edge: &&Edge| match edge.kind() {
        EdgeKind::Session => level.has_session_order(),
        EdgeKind::RealTime => level.has_real_time(),
        _ => true,
    };
    let saw = saw_directly(anomaly);
    let orders = |(reader, other, key): (TxnId, TxnId, KeyId)| match level {
        Level::CursorStability => writes(history, reader, key),
        Level::UpdateAtomic => {
            let both_write = |key| writes(history, reader, key) && writes(history, other, key);
            saw.contains(&(other, reader)) || history.keys().any(both_write)
        }
        _ => true,
    };
    let missed = edges.iter().filter_map(|edge| missed(history, edge));
    edges.iter().all(is_meant)
        && missed.into_iter().all(orders)
        && (level != Level::ParallelSnapshotIsolation || has_few_missed(anomaly))
}

/// Who missed whose version of which key, if an edge says so.
fn missed(history: &History, edge: &Edge) -> Option<(TxnId, TxnId, KeyId)> {
    match edge.kind() {
        EdgeKind::Rw => Some((edge.before, edge.after, edge.key()?)),
        _ if edge.is_overwriting() => {
            Some((history.txn_of(edge.read()?), edge.before, edge.key()?))
        }
        _ => None,
    }
}

/// Whether no cycle, told or tried, has more than one anti-dependency: what parallel snapshot
/// isolation forbids.
fn has_few_missed(anomaly: &Anomaly) -> bool {
    let count = |edges: &[Edge]| edges.iter().filter(|edge| edge.kind() == EdgeKind::Rw).count();
    let is_few = |edge: &&Edge| count(edge.premises()) <= usize::from(!edge.is_overwriting());
    anomaly.evidence.cycles().iter().all(|cycle| count(&cycle.edges) <= 1)
        && anomaly.evidence.all_edges().iter().all(is_few)
}

/// Who was read from by whom, as the steps say.
pub(super) fn saw_directly(anomaly: &Anomaly) -> HashSet<(TxnId, TxnId)> {
    let edges = anomaly.evidence.all_edges().into_iter();
    let reads = edges.filter(|edge| edge.kind() == EdgeKind::Wr);
    reads.map(|edge| (edge.before, edge.after)).collect()
}
