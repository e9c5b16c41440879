//! Writes follow reads: who sees a write sees what its session had read before it.
//!
//! **Definition.** `other` is visible to a reader that reads from a transaction
//! before which, in the same session, a transaction read from `other` [Terry94], in
//! the form of this family.
//!
//! **Method.** Session by session. Readers ask a session "what had you seen before
//! `source` that writes this key"; the questions are sorted by `source` and answered
//! in one walk over the session that keeps, per key that is asked for and session, the
//! last writer seen: earlier ones precede it by session order.

use super::asked_keys::AskedKeys;
use super::monotonic_writes::latest_sources;
use super::{Facts, Forced, Halt, Rule, session_edge};
use crate::anomaly::AnomalyKind;
use crate::level::Level;
use crate::verdict::Edge;
use hashbrown::{HashMap, HashSet};
use isolde_history::{Candidates, KeyId, Origin, ReadId, SessionId, TxnId};

pub(super) const RULE: Rule = Rule {
    level: Level::WritesFollowReads,
    reads_from: true,
    session_order: true,
    candidates: Candidates::Any,
    broken: AnomalyKind::WriteWithoutItsReads,
    forced,
    visible,
};

/// What had the session of `source` seen before it, for this read?
struct Question {
    source: TxnId,
    read: ReadId,
}

fn forced(facts: &Facts<'_>) -> Result<Vec<Forced>, Halt> {
    let mut questions: Vec<Vec<Question>> = Vec::new();
    questions.resize_with(facts.history.session_count(), Vec::new);
    for reader in facts.history.txns() {
        for (session, source) in latest_sources(facts, reader) {
            for read in facts.index.read_range(reader).map(ReadId) {
                if Facts::writer(facts.index.read(read).origin).is_some() {
                    questions[session.index()].push(Question { source, read });
                }
            }
        }
    }
    for questions in &mut questions {
        questions.sort_by_key(|question| question.source);
    }
    facts.by_session(
        || (),
        |(), session, forced| answer(facts, session, &questions[session.index()], forced),
    )
}

fn answer(facts: &Facts<'_>, session: SessionId, questions: &[Question], forced: &mut Vec<Forced>) {
    let asked = AskedKeys::new(questions.iter().map(|asked| facts.index.read(asked.read).key));
    let mut seen: HashSet<TxnId> = HashSet::new();
    // Per key, at most one writer a session.
    let mut visible: HashMap<KeyId, Vec<(SessionId, TxnId)>> = HashMap::new();
    let mut open = questions;
    for txn in facts.history.txns_of(session) {
        let count = open.partition_point(|question| question.source <= txn);
        for question in &open[..count] {
            let external = facts.index.read(question.read);
            let after = Facts::writer(external.origin).expect("only such reads ask");
            let reader = facts.history.txn_of(external.op);
            for &(_, before) in visible.get(&external.key).into_iter().flatten() {
                if before != after && before != reader {
                    forced.push(Forced { before, after, read: question.read });
                }
            }
        }
        open = &open[count..];
        for external in facts.index.reads_of(txn) {
            let Origin::Txn(writer) = external.origin else { continue };
            if seen.insert(writer) {
                let of = facts.history.session_of(writer);
                asked.written_by(facts, writer, |key| {
                    let at_key = visible.entry(key).or_default();
                    match at_key.iter_mut().find(|entry| entry.0 == of) {
                        Some(entry) => entry.1 = entry.1.max(writer),
                        None => at_key.push((of, writer)),
                    }
                });
            }
        }
    }
}

fn visible(facts: &Facts<'_>, forced: Forced) -> Vec<Edge> {
    let reader = facts.reader(forced);
    latest_sources(facts, reader)
        .into_iter()
        .find_map(|(_, source)| {
            facts.earlier_in_session(source).find_map(|earlier| {
                let first = facts.reads_from(earlier, forced.before)?;
                let last = facts.reads_from(reader, source)?;
                Some(vec![first, session_edge(earlier, source), last])
            })
        })
        .unwrap_or_default()
}
