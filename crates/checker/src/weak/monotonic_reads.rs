//! Monotonic reads: a session does not forget what it saw.
//!
//! **Definition.** `other` is visible to a reader if an earlier transaction of its
//! session read from `other` [Terry94, with transactions as writes: who saw one key
//! of a transaction saw the transaction]. The per-key reading of [Bailis13] allows
//! `A: r(x,1)`, `A: r(y,nil)` after `B: w(x,1) w(y,1)`; this one does not.
//!
//! **Method.** Walk each session with the visible writers of every key. Once a
//! transaction has read a key, the writers visible before are ordered before the
//! one it read from, which takes their place: each is handled once per session. Of
//! what a writer wrote, only the keys that the session reads matter: O(n·√n) steps.

use super::asked_keys::AskedKeys;
use super::{Facts, Forced, Halt, Rule};
use crate::anomaly::AnomalyKind;
use crate::evidence::Edge;
use crate::level::Level;
use hashbrown::{HashMap, HashSet};
use isolde_history::{Candidates, KeyId, Origin, ReadId, SessionId, TxnId};

pub(super) const RULE: Rule = Rule {
    level: Level::MonotonicReads,
    reads_from: true,
    session_order: true,
    candidates: Candidates::Any,
    broken: AnomalyKind::NonMonotonicRead,
    forced,
    visible,
};

fn forced(facts: &Facts<'_>) -> Result<Vec<Forced>, Halt> {
    facts.by_session(|| (), |(), session, forced| of_session(facts, session, forced))
}

fn of_session(facts: &Facts<'_>, session: SessionId, forced: &mut Vec<Forced>) {
    let asked = AskedKeys::new(
        facts
            .history
            .txns_of(session)
            .flat_map(|txn| facts.index.reads_of(txn))
            .map(|read| read.key),
    );
    let mut seen: HashSet<TxnId> = HashSet::new();
    let mut visible: HashMap<KeyId, Vec<TxnId>> = HashMap::new();
    for reader in facts.history.txns_of(session) {
        let reads = facts.index.read_range(reader).map(ReadId);
        for read in reads.clone() {
            let external = facts.index.read(read);
            let Some(after) = Facts::writer(external.origin) else { continue };
            for &before in visible.get(&external.key).into_iter().flatten() {
                if before != after {
                    forced.push(Forced { before, after, read });
                }
            }
        }
        // Only now: the writers a transaction reads from are visible to later ones.
        for external in facts.index.reads_of(reader) {
            if Facts::writer(external.origin).is_some() {
                visible.remove(&external.key);
            }
        }
        for external in facts.index.reads_of(reader) {
            let Origin::Txn(writer) = external.origin else { continue };
            if seen.insert(writer) {
                asked.written_by(facts, writer, |key| {
                    visible.entry(key).or_default().push(writer);
                });
                continue;
            }
            let at_key = visible.entry(external.key).or_default();
            if !at_key.contains(&writer) {
                at_key.push(writer);
            }
        }
    }
}

fn visible(facts: &Facts<'_>, forced: Forced) -> Vec<Edge> {
    let reader = facts.reader(forced);
    facts
        .earlier_in_session(reader)
        .find_map(|earlier| {
            let read = facts.reads_from(earlier, forced.before)?;
            Some(vec![read, Edge::session(earlier, reader)])
        })
        .unwrap_or_default()
}
