//! A first order for a level that allows some of what serializability forbids: serial, but
//! for a few readers.
//!
//! Where most writes are blind, an order of commits is far from what readers saw unless it
//! was searched for, and the search of the weaker level, whose choices say little each,
//! does not get there. That of serializability does. It is asked for an order; the readers
//! that it blames are left out, as the weaker level may allow what they read, and it is
//! asked again.

use super::Options;
use super::decision::Decision;
use super::model::Model;
use super::repeated::Repeated;
use super::versions::Versions;
use crate::anomaly::Evidence;
use crate::check::Limits;
use crate::level::Level;
use crate::verdict::{Edge, Reason, Satisfied, Verdict};
use hashbrown::HashSet;
use isolde_history::TxnId;

/// Orders that are asked for.
const ROUNDS_MAX: usize = 64;

/// Such an order, if there is one near at hand.
pub(super) fn serial(
    versions: &Versions<'_>,
    repeated: &[Repeated],
    options: Options,
    limits: &Limits<'_>,
) -> Option<Vec<TxnId>> {
    if versions.history.has_predicates() || !versions.divergences.is_empty() {
        return None;
    }
    let model = Model::of(Level::Serializable)?;
    // Of these searches nobody is told: they are a part of another.
    let limits = &Limits { observe: &|_| {}, ..*limits };
    let mut left_out = HashSet::new();
    for _ in 0..ROUNDS_MAX {
        let versions = versions.without_reads_of(&left_out);
        let mut decision = Decision::new(model, &versions, repeated, options, limits).briefly();
        let violated = match decision.run() {
            Verdict::Satisfied(Satisfied::Order(order)) => return Some(order),
            Verdict::Violated(violated) => violated,
            _ => return None,
        };
        let before = left_out.len();
        for anomaly in &violated.anomalies {
            match &anomaly.evidence {
                Evidence::Cycle(cycle) => blame(&cycle.edges, &mut left_out),
                Evidence::Cases(cases) => {
                    cases.cycles.iter().for_each(|cycle| blame(&cycle.edges, &mut left_out));
                }
                Evidence::Operations { .. } => {}
            }
        }
        if left_out.len() == before {
            return None;
        }
    }
    None
}

/// Those who read what was replaced.
fn blame(edges: &[Edge], blamed: &mut HashSet<TxnId>) {
    for edge in edges {
        match &edge.reason {
            Reason::AntiDependency { because, .. } => {
                blamed.insert(edge.before);
                blame(because, blamed);
            }
            Reason::WritersApart { because, .. } => blame(because, blamed),
            Reason::Overwritten { reader, visible, .. } => {
                blamed.insert(*reader);
                blame(visible, blamed);
            }
            Reason::Assumed { first, .. } if *first != edge.before => {
                blamed.insert(edge.before);
            }
            _ => {}
        }
    }
}
