//! Read your writes: a session sees what it wrote.
//!
//! **Definition.** `other` is visible to a reader if it comes earlier in the
//! reader's session [Terry94], in the form of this family.
//!
//! **Method.** Walk each session with the last writer of every key: earlier ones
//! precede it by session order. Linear.

use super::session_state::LastWriters;
use super::{Facts, Forced, Halt, Rule};
use crate::anomaly::AnomalyKind;
use crate::evidence::Edge;
use crate::level::Level;
use isolde_history::{Candidates, ReadId, TxnId};

pub(super) const RULE: Rule = Rule {
    level: Level::ReadYourWrites,
    reads_from: true,
    session_order: true,
    candidates: Candidates::Any,
    broken: AnomalyKind::MissedOwnWrite,
    forced,
    visible,
};

fn forced(facts: &Facts<'_>) -> Result<Vec<Forced>, Halt> {
    let walk = |last: &mut LastWriters, session, forced: &mut Vec<Forced>| {
        last.enter(facts, session);
        for txn in facts.history.txns_of(session) {
            of_reader(facts, last, txn, forced);
            last.wrote(facts, txn);
        }
    };
    facts.by_session(|| LastWriters::new(facts), walk)
}

/// Orders forced by what the reader's own session wrote before.
#[inline]
pub(super) fn of_reader(
    facts: &Facts<'_>,
    last: &LastWriters,
    reader: TxnId,
    forced: &mut Vec<Forced>,
) {
    for read in facts.index.read_range(reader).map(ReadId) {
        let external = facts.index.read(read);
        if let (Some(before), Some(after)) =
            (last.get(external.key), Facts::writer(external.origin))
            && before != after
        {
            forced.push(Forced { before, after, read });
        }
    }
}

fn visible(facts: &Facts<'_>, forced: Forced) -> Vec<Edge> {
    vec![Edge::session(forced.before, facts.reader(forced))]
}
