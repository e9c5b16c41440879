//! A first order for a level that allows some of what serializability and snapshot isolation
//! forbid: theirs, but for a few readers.
//!
//! Where most writes are blind, an order of commits is far from what readers saw unless it
//! was searched for, and the search of the weaker level, whose choices say little each,
//! does not get there. That of serializability does. It is asked for an order; the readers
//! that it blames are left out, as the weaker level may allow what they read, and it is
//! asked again. Where it blames ever more, snapshot isolation is asked likewise: it takes
//! longer, and write skews, of which there may be one in every hundred transactions, are
//! nothing to it.

use crate::evidence::EdgeKind;
use crate::level::Level;
use crate::limits::Limits;
use crate::strong::Options;
use crate::strong::decision::Decision;
use crate::strong::model::Model;
use crate::strong::repeated::Repeated;
use crate::strong::versions::Versions;
use crate::verdict::{Satisfied, Verdict, Violated};
use hashbrown::HashSet;
use isolde_certificate::Node;
use isolde_history::{History, TxnId};

/// Levels that are asked, and for how many orders.
const ASKED: [(Level, usize); 2] = [(Level::SnapshotIsolation, 64), (Level::Serializable, 64)];

/// The order of commits of such an order, if there is one near at hand. Each level is asked for
/// at most so many.
pub(in crate::strong) fn order(
    versions: &Versions<'_>,
    repeated: &[Repeated],
    (options, limits): (Options, &Limits<'_>),
    orders_max: usize,
) -> Option<Vec<TxnId>> {
    if versions.history.has_predicates() || !versions.divergences.is_empty() {
        return None;
    }
    // Of these searches nobody is told: they are a part of another.
    let limits = &Limits { observe: &|_| {}, ..*limits };
    ASKED.iter().find_map(|&(level, rounds_max)| {
        let model = Model::of(level)?;
        let mut left_out = HashSet::new();
        for _ in 0..rounds_max.min(orders_max) {
            let versions = versions.without_reads_of(&left_out);
            let mut decision = Decision::new(model, &versions, repeated, options, limits).briefly();
            let violated = match decision.run() {
                Verdict::Satisfied(Satisfied::Order(order)) => return Some(order),
                Verdict::Satisfied(Satisfied::Events(events)) => return Some(commits(&events)),
                Verdict::Violated(violated) => violated,
                _ => return None,
            };
            if !blame_all(versions.history, &violated, &mut left_out) {
                return None;
            }
        }
        None
    })
}

/// The commits of an order of begins and commits.
fn commits(events: &[Node]) -> Vec<TxnId> {
    let commits = events.iter().filter(|event| !event.is_begin());
    commits.map(|event| event.txn()).collect()
}

/// Whether anyone is blamed who was not before: those who read what was replaced.
fn blame_all(history: &History, violated: &Violated, left_out: &mut HashSet<TxnId>) -> bool {
    let before = left_out.len();
    for edge in violated.anomalies.iter().flat_map(|anomaly| anomaly.evidence.all_edges()) {
        if edge.kind() == EdgeKind::Rw {
            left_out.insert(edge.before);
        } else if edge.is_overwriting() {
            left_out.extend(edge.read().map(|read| history.txn_of(read)));
        }
    }
    left_out.len() > before
}
