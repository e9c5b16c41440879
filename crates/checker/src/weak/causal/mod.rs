//! Causal consistency: who sees an effect sees its causes.
//!
//! **Definition.** `other` is visible to a reader if it happens before it:
//! `(session order ∪ reads-from)⁺` [Biswas19, Def. 2.4; transactional causal
//! consistency].
//!
//! **Method.** One walk in an order that contains happens-before (`../happens_before.rs`).
//! What happens before a transaction is a clock with an entry for each session
//! (`clocks.rs`), or, where sessions are many and short, a row of bits, window by window
//! (`windows.rs`). Only the last writers visible to a reader are forced: what happens
//! before them is ordered before them already.

mod clocks;
#[cfg(test)]
mod tests;
mod windows;

use super::happens_before::merge_chain;
use super::{Facts, Forced, Halt, Rule};
use crate::anomaly::AnomalyKind;
use crate::evidence::Edge;
use crate::level::Level;
use hashbrown::HashMap;
use isolde_history::{Candidates, Origin, TxnId};
use std::collections::VecDeque;

pub(super) const RULE: Rule = Rule {
    level: Level::Causal,
    reads_from: true,
    session_order: true,
    candidates: Candidates::Final,
    broken: AnomalyKind::CausalityViolation,
    forced,
    visible,
};

/// Clocks of so many sessions are never worth a look at windows.
const SESSIONS_OF_CLOCKS: usize = 128;

/// A clock's entry takes as much as the bits of so many transactions.
const BITS_OF_ENTRY: usize = 32;

fn forced(facts: &Facts<'_>) -> Result<Vec<Forced>, Halt> {
    let (sessions, txns) = (facts.history.session_count(), facts.history.txn_count());
    if sessions <= SESSIONS_OF_CLOCKS || BITS_OF_ENTRY * sessions <= txns {
        clocks::forced(facts)
    } else {
        windows::forced(facts)
    }
}

/// A shortest chain of reads and session steps from the forced transaction to the
/// reader, searched backwards from the reader.
fn visible(facts: &Facts<'_>, forced: Forced) -> Vec<Edge> {
    let reader = facts.reader(forced);
    let target = forced.before;
    let target_session = facts.history.session_of(target);
    let mut toward: HashMap<TxnId, Edge> = HashMap::new();
    let mut queue = VecDeque::from([reader]);
    // Per session, the earliest transaction reached: from there on along the
    // session nothing new is found.
    let mut reached: HashMap<u32, TxnId> = HashMap::new();
    while let Some(txn) = queue.pop_front() {
        let session = facts.history.session_of(txn);
        if session == target_session && target <= txn {
            let mut chain = Vec::new();
            if target != txn {
                chain.push(Edge::session(target, txn));
            }
            let mut at = txn;
            while at != reader {
                let edge = toward[&at].clone();
                at = edge.after;
                chain.push(edge);
            }
            return merge_chain(chain);
        }
        let mut arrive = |edge: Edge, queue: &mut VecDeque<TxnId>| {
            if edge.before != reader && !toward.contains_key(&edge.before) {
                queue.push_back(edge.before);
                toward.insert(edge.before, edge);
            }
        };
        for read in facts.index.reads_of(txn) {
            if let Origin::Txn(writer) = read.origin {
                arrive(Edge::reads_from(writer, txn, read.op, read.key), &mut queue);
            }
        }
        // Everything earlier in the session is one step away; what it read, two.
        let known = reached.get(&session.0).copied();
        for earlier in facts.earlier_in_session(txn) {
            if known.is_some_and(|known| earlier >= known) {
                continue;
            }
            arrive(Edge::session(earlier, txn), &mut queue);
        }
        let start = facts.history.session_range(session).start;
        reached.insert(session.0, TxnId(start));
    }
    Vec::new()
}
