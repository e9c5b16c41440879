//! Whether a level may use the steps of an argument.
//!
//! An argument against a level holds for every level that implies it. For any other level each
//! step has to be one that this level means: session order and real time only where they are
//! part of it, and an anti-dependency only where it orders the two transactions.

use super::Explanation;
use super::conflicts::writes;
use crate::anomaly::{Anomaly, Evidence};
use crate::evidence::{Edge, Reason};
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
    let edges = all_edges(anomaly);
    let is_meant = |edge: &&Edge| match edge.reason {
        Reason::Session => level.has_session_order(),
        Reason::RealTime => level.has_real_time(),
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
    let missed = edges.iter().filter_map(|edge| missed(edge));
    edges.iter().all(is_meant)
        && missed.into_iter().all(orders)
        && (level != Level::ParallelSnapshotIsolation || has_few_missed(anomaly))
}

/// Who missed whose version of which key, if an edge says so.
fn missed(edge: &Edge) -> Option<(TxnId, TxnId, KeyId)> {
    match edge.reason {
        Reason::AntiDependency { key, .. } => Some((edge.before, edge.after, key)),
        Reason::Overwritten { reader, key, .. } => Some((reader, edge.before, key)),
        Reason::Assumed { key, first, second } if edge.before != first => {
            Some((edge.before, second, key))
        }
        _ => None,
    }
}

/// Whether no cycle, told or tried, has more than one anti-dependency: what parallel snapshot
/// isolation forbids.
fn has_few_missed(anomaly: &Anomaly) -> bool {
    let is_missed =
        |edge: &&Edge| !matches!(edge.reason, Reason::Overwritten { .. }) && missed(edge).is_some();
    let count = |edges: &[Edge]| edges.iter().filter(is_missed).count();
    let is_few = |edge: &&Edge| match &edge.reason {
        Reason::AntiDependency { because, .. } | Reason::WritersApart { because, .. } => {
            count(because) <= 1
        }
        Reason::Overwritten { visible, .. } => count(visible) == 0,
        _ => true,
    };
    let cycles: Vec<&[Edge]> = match &anomaly.evidence {
        Evidence::Operations { .. } => Vec::new(),
        Evidence::Cycle(cycle) => vec![&cycle.edges],
        Evidence::Cases(cases) => cases.cycles.iter().map(|cycle| &cycle.edges[..]).collect(),
    };
    cycles.into_iter().all(|edges| count(edges) <= 1) && all_edges(anomaly).iter().all(is_few)
}

/// Who was read from by whom, as the steps say.
pub(super) fn saw_directly(anomaly: &Anomaly) -> HashSet<(TxnId, TxnId)> {
    let edges = all_edges(anomaly).into_iter();
    let reads = edges.filter(|edge| matches!(edge.reason, Reason::ReadsFrom { .. }));
    reads.map(|edge| (edge.before, edge.after)).collect()
}

/// The edges of the cycles of an anomaly.
pub(super) fn edges_mut(anomaly: &mut Anomaly) -> Vec<&mut Edge> {
    match &mut anomaly.evidence {
        Evidence::Operations { .. } => Vec::new(),
        Evidence::Cycle(cycle) => cycle.edges.iter_mut().collect(),
        Evidence::Cases(cases) => {
            cases.cycles.iter_mut().flat_map(|cycle| &mut cycle.edges).collect()
        }
    }
}

/// The same with all that they follow from.
pub(super) fn all_edges(anomaly: &Anomaly) -> Vec<&Edge> {
    let mut all: Vec<&Edge> = match &anomaly.evidence {
        Evidence::Operations { .. } => Vec::new(),
        Evidence::Cycle(cycle) => cycle.edges.iter().collect(),
        Evidence::Cases(cases) => cases.cycles.iter().flat_map(|cycle| &cycle.edges).collect(),
    };
    let mut next = 0;
    while next < all.len() {
        match &all[next].reason {
            Reason::AntiDependency { because, .. } | Reason::WritersApart { because, .. } => {
                all.extend(because);
            }
            Reason::Overwritten { visible, .. } => all.extend(visible),
            _ => {}
        }
        next += 1;
    }
    all
}
