//! One sentence for each part of a scenario.

use super::build::premises;
use crate::prose::{Prose, explain};
use isolde::{Anomaly, Cycle, Edge, Evidence, INITIAL, Reason};
use isolde_history::{KeyId, OpId, TxnId};

/// What happened, in everyday words.
pub(super) fn summary(prose: &Prose<'_>, anomaly: &Anomaly) -> String {
    let row = crate::names::row_of(anomaly.kind);
    match &anomaly.evidence {
        Evidence::Operations { .. } => {
            explain(prose, anomaly).lines().map(str::trim).collect::<Vec<_>>().join("; ")
        }
        Evidence::Cycle(cycle) => format!("{}: {}", row.everyday, conclusion(prose, cycle)),
        Evidence::Cases(_) => "no order of versions explains the reads".to_owned(),
    }
}

/// The contradiction that a cycle is.
pub(super) fn conclusion(prose: &Prose<'_>, cycle: &Cycle) -> String {
    if cycle.edges.iter().any(|edge| edge.before == INITIAL) {
        return "no order explains that".to_owned();
    }
    let chain: Vec<String> = cycle.edges.iter().map(|edge| prose.txn(edge.before)).collect();
    let first = &chain[0];
    match chain.len() {
        1 => format!("{first} would have to come before itself"),
        _ => format!("{} before {first}: no order exists", chain.join(" before ")),
    }
}

/// What the assumptions of a case are.
pub(super) fn assumption(prose: &Prose<'_>, cycle: &Cycle) -> String {
    let mut assumptions: Vec<String> = Vec::new();
    let mut open: Vec<&Edge> = cycle.edges.iter().rev().collect();
    while let Some(edge) = open.pop() {
        open.extend(premises(&edge.reason).iter().rev());
        let assumed = match edge.reason {
            Reason::Assumed { key, first, second } => earlier(prose, key, first, second),
            Reason::Supposed { first, second } => {
                format!("{} comes before {}", prose.txn(first), prose.txn(second))
            }
            _ => continue,
        };
        if !assumptions.contains(&assumed) {
            assumptions.push(assumed);
        }
    }
    assumptions.join(", and ")
}

/// That one version comes before another.
fn earlier(prose: &Prose<'_>, key: KeyId, first: TxnId, second: TxnId) -> String {
    format!(
        "the {} of {} comes before that of {}",
        prose.key(key),
        prose.txn(first),
        prose.txn(second)
    )
}

/// Why an edge holds, given its premises.
pub(super) fn because(prose: &Prose<'_>, edge: &Edge) -> String {
    let (before, after) = (prose.txn(edge.before), prose.txn(edge.after));
    let content = |op: OpId, key: KeyId| prose.content(op, key);
    match &edge.reason {
        Reason::InitialFirst => "the initial state precedes everything".to_owned(),
        Reason::Session => format!("{before} ran before {after} in the same session"),
        Reason::RealTime => format!("{before} had completed when {after} was invoked"),
        Reason::ReadsFrom { read, key } => {
            format!("{after} read {}, which {before} wrote", content(*read, *key))
        }
        Reason::Version(step) => prose.version(step),
        Reason::AntiDependency { read, key, .. } => format!(
            "{before} read {}, which {after} replaced{}",
            content(*read, *key),
            prose.written(edge.after, *key)
        ),
        Reason::FirstVersion { read, key } => format!(
            "{before} read {}, the initial value, and wrote it: so its version comes before that \
             of {after}",
            content(*read, *key)
        ),
        Reason::WritersApart { key, .. } => {
            format!("both {before} and {after} write {}, and {before} comes first", prose.key(*key))
        }
        Reason::Overwritten { reader, read, key, .. } if edge.after == INITIAL => format!(
            "{} had to see {before}, which writes {}, yet read {}, its initial value",
            prose.txn(*reader),
            prose.key(*key),
            content(*read, *key)
        ),
        Reason::Overwritten { reader, read, key, .. } => format!(
            "{} had to see {before}, which writes {}, yet read {} from {after}: so {before} was \
             overwritten by {after}",
            prose.txn(*reader),
            prose.key(*key),
            content(*read, *key)
        ),
        Reason::Assumed { key, first, second } if edge.before == *first => {
            format!("suppose that {}", earlier(prose, *key, *first, *second))
        }
        Reason::Assumed { key, first, second } => format!(
            "suppose that {}: {before} read it from {}, so {before} comes before {after}",
            earlier(prose, *key, *first, *second),
            prose.txn(*first)
        ),
        Reason::Supposed { first, second } => {
            format!("suppose that {} comes before {}", prose.txn(*first), prose.txn(*second))
        }
    }
}
