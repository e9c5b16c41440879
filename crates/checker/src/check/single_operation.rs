//! Single operations: what linearizability, strict serializability and strong snapshot
//! isolation say of each other.
//!
//! **Definition.** Linearizability is strict serializability of transactions that are one
//! operation each: both ask for one order that keeps real time and session order and in which
//! every read sees what was last written, and an operation of unknown outcome that nobody saw
//! may be left out of it. So either verdict is the other's.
//!
//! Strong snapshot isolation asks the same of them where no times tell begins and commits
//! apart. From a serial order, each commits as it begins. From an order of begins and commits,
//! let a read take effect at its begin and whatever writes at its commit: nobody else writes the
//! key between the begin and the commit of a writer, so what a compare-and-set saw at its
//! begin is still there. These instants keep session order and real time, because both lead
//! from commits to begins. (Of transactions with two keys that is not true: write skew.)
//!
//! Linearizability is searched object by object, so it decides what the search for an order
//! of transactions does not: many operations of unknown outcome that wrote repeated values.

use crate::anomaly::{Anomaly, AnomalyKind, Evidence};
use crate::check::Check;
use crate::level::Level;
use crate::linearizable::{self, Reading};
use crate::unknown::{Obstacle, Unknown};
use crate::verdict::{Satisfied, Verdict, Violated};
use isolde_certificate::Node;
use isolde_history::{History, OpKind, TxnId};

impl Check<'_> {
    /// A level that asks of single operations what linearizability does, by what is known or
    /// found of that; `None` if it is another level, if transactions are longer, or if that is
    /// not decided either.
    pub(crate) fn as_objects(&self, level: Level) -> Option<Verdict> {
        let is_same = match level {
            Level::StrictSerializable => true,
            Level::StrongSnapshotIsolation => happens_at_once(self.history),
            _ => false,
        };
        if !is_same || self.calls().is_some() {
            return None;
        }
        let known = self.verdicts.iter().find(|known| known.0 == Level::Linearizable);
        let verdict = match known {
            Some((_, known)) => known.clone(),
            None => linearizable::decide(self.ordered(), &self.limits(), self.reading())?,
        };
        match verdict {
            Verdict::Satisfied(Satisfied::Order(order)) => {
                Some(Verdict::Satisfied(in_order(level, order)))
            }
            Verdict::Violated(violated) if is_told_by_operations(&violated) => {
                Some(Verdict::Violated(violated))
            }
            _ => None,
        }
    }

    /// Strong snapshot isolation where strict serializability was shown and no times tell
    /// begins and commits apart: each transaction at once, in the serial order. (With such
    /// times neither level implies the other.)
    pub(crate) fn in_serial_order(&self, level: Level) -> Option<Satisfied> {
        if level != Level::StrongSnapshotIsolation || !happens_at_once(self.history) {
            return None;
        }
        let known = |level: Level| self.verdicts.iter().find(|known| known.0 == level);
        match &known(Level::StrictSerializable)?.1 {
            Verdict::Satisfied(Satisfied::Order(order)) => Some(in_order(level, order.clone())),
            Verdict::Satisfied(Satisfied::Implied(stronger)) => match &known(*stronger)?.1 {
                Verdict::Satisfied(Satisfied::Order(order)) => Some(in_order(level, order.clone())),
                _ => None,
            },
            _ => None,
        }
    }

    /// Linearizability of single operations on objects; `None` for all else.
    ///
    /// Where sessions contradict the times and there are many operations, it is asked
    /// as what it is for registers: strict serializability.
    pub(crate) fn linearizable(&mut self) -> Option<Verdict> {
        let verdict = linearizable::decide(self.ordered(), &self.limits(), self.reading())?;
        // What the database said of its versions may leave fewer orders to look at.
        let has_more = !self.history.orders().versions.is_empty();
        if has_more && matches!(verdict, Verdict::Unknown(_)) {
            return None;
        }
        let is_open = |reason: &Unknown| *reason == Unknown::Unsupported(Obstacle::OpenMerge);
        let has_calls = self.history.op_kinds().contains(&OpKind::Call);
        match &verdict {
            Verdict::Unknown(reason) if is_open(reason) && !has_calls => {
                Some(match self.decide(Level::StrictSerializable) {
                    Verdict::Unknown(_) => verdict,
                    decided => decided,
                })
            }
            _ => Some(verdict),
        }
    }

    fn reading(&self) -> Reading {
        Reading { drift: self.options.clock_drift, ..Reading::default() }
    }
}

/// Levels that an anomaly of objects and their times rules out together, from weak to strong.
pub(crate) fn ruled_out(history: &History, anomaly: &Anomaly) -> Vec<Level> {
    let is_of_objects = matches!(
        anomaly.kind,
        AnomalyKind::StaleRead
            | AnomalyKind::ReadBeforeWrite
            | AnomalyKind::CompareAndSetTwice
            | AnomalyKind::UnexplainedOperation
    );
    if !is_of_objects || history.op_kinds().contains(&OpKind::Call) {
        return Vec::new();
    }
    let snapshots = happens_at_once(history).then_some(Level::StrongSnapshotIsolation);
    snapshots.into_iter().chain([Level::StrictSerializable, Level::Linearizable]).collect()
}

/// Whether nothing tells begins and commits apart. Evidence that speaks of them is not looked
/// at here, so there must be none.
fn happens_at_once(history: &History) -> bool {
    !history.has_inner_times() && !history.has_predicates() && !history.has_evidence()
}

/// A serial order as what shows a level.
fn in_order(level: Level, order: Vec<TxnId>) -> Satisfied {
    if level != Level::StrongSnapshotIsolation {
        return Satisfied::Order(order);
    }
    let events = order.iter().flat_map(|&txn| [Node::begin(txn), Node::commit(txn)]);
    Satisfied::Events(events.collect())
}

/// Whether a violation is one of operations and their times, which every such level forbids. A
/// cycle and a proof are about the level that they were found for.
fn is_told_by_operations(violated: &Violated) -> bool {
    let by_operations =
        violated.anomalies.iter().all(|it| matches!(it.evidence, Evidence::Operations { .. }));
    violated.settled_by.is_none() && violated.proof.is_none() && by_operations
}
