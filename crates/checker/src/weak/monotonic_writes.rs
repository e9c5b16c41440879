//! Monotonic writes: who sees a write sees its session's earlier writes.
//!
//! **Definition.** `other` is visible to a reader that reads from a later
//! transaction of `other`'s session [Terry94], in the form of this family.
//!
//! **Method.** Per reader and session, the last transaction it reads from; per key
//! it reads, the last writer before that one in its session, by binary search.

use super::{Facts, Forced, Halt, Rule};
use crate::anomaly::AnomalyKind;
use crate::evidence::Edge;
use crate::level::Level;
use isolde_history::{Candidates, Origin, ReadId, SessionId, TxnId};

pub(super) const RULE: Rule = Rule {
    level: Level::MonotonicWrites,
    reads_from: true,
    session_order: true,
    candidates: Candidates::Any,
    broken: AnomalyKind::NonMonotonicWrite,
    forced,
    visible,
};

fn forced(facts: &Facts<'_>) -> Result<Vec<Forced>, Halt> {
    facts.by_txns(|txns, forced| {
        txns.map(TxnId).for_each(|reader| of_reader(facts, reader, forced));
    })
}

fn of_reader(facts: &Facts<'_>, reader: TxnId, forced: &mut Vec<Forced>) {
    let latest = latest_sources(facts, reader);
    for read in facts.index.read_range(reader).map(ReadId) {
        let external = facts.index.read(read);
        let Some(after) = Facts::writer(external.origin) else { continue };
        let writers = facts.index.writers_of(external.key);
        for &(session, source) in &latest {
            let start = facts.history.session_range(session).start;
            let count = writers.partition_point(|&writer| writer < source);
            if let Some(&before) = writers[..count].last()
                && before.0 >= start
                && before != after
                && before != reader
            {
                forced.push(Forced { before, after, read });
            }
        }
    }
}

/// Per session, the last transaction that `reader` reads from.
pub(super) fn latest_sources(facts: &Facts<'_>, reader: TxnId) -> Vec<(SessionId, TxnId)> {
    let mut latest: Vec<(SessionId, TxnId)> = facts
        .index
        .reads_of(reader)
        .filter_map(|read| match read.origin {
            Origin::Txn(writer) => Some((facts.history.session_of(writer), writer)),
            _ => None,
        })
        .collect();
    latest.sort_unstable();
    latest.reverse();
    latest.dedup_by_key(|entry| entry.0);
    latest
}

fn visible(facts: &Facts<'_>, forced: Forced) -> Vec<Edge> {
    let reader = facts.reader(forced);
    let session = facts.history.session_of(forced.before);
    latest_sources(facts, reader)
        .into_iter()
        .find(|entry| entry.0 == session)
        .and_then(|(_, source)| {
            let read = facts.reads_from(reader, source)?;
            Some(vec![Edge::session(forced.before, source), read])
        })
        .unwrap_or_default()
}
