//! A commit order by walking all sessions together.
//!
//! A session goes on until its next transaction has predecessors that are not in
//! the order yet; it then waits for all of them. Every predecessor is looked at
//! twice at most, and what is asked of it, whether it is in the order, is one bit,
//! so that a million transactions fit in a cache.

use super::Facts;
use super::order::Predecessors;
use isolde_history::{SessionId, TxnId};

pub(super) struct Walk<'a> {
    facts: &'a Facts<'a>,
    predecessors: &'a Predecessors<'a>,
    order: Vec<TxnId>,
    /// A bit for every transaction in the order.
    placed: Vec<u64>,
    /// Per session, its next transaction and how often it waits for others.
    next: Vec<u32>,
    missing: Vec<u32>,
    /// Per transaction, the first of `waits` that is for it, or [`NONE`].
    waited_for: Vec<u32>,
    waits: Vec<Wait>,
    /// The first of `waits` that is over.
    unused: u32,
}

/// A session that waits for a transaction, and the next one that does.
#[derive(Clone, Copy)]
struct Wait {
    session: SessionId,
    next: u32,
}

const NONE: u32 = u32::MAX;

impl<'a> Walk<'a> {
    pub(super) fn new(facts: &'a Facts<'a>, predecessors: &'a Predecessors<'a>) -> Self {
        let (txns, sessions) = (facts.history.txn_count(), facts.history.sessions());
        Walk {
            facts,
            predecessors,
            order: Vec::with_capacity(facts.index.counted_txns()),
            placed: vec![0; txns.div_ceil(64)],
            missing: vec![0; sessions.len()],
            next: sessions.map(|session| facts.history.session_range(session).start).collect(),
            waited_for: vec![NONE; txns],
            waits: Vec::new(),
            unused: NONE,
        }
    }

    /// All counted transactions in order; `None` if some wait for each other.
    pub(super) fn finish(mut self) -> Option<Vec<TxnId>> {
        let mut ready: Vec<SessionId> = self.facts.history.sessions().rev().collect();
        while let Some(session) = ready.pop() {
            let end = self.facts.history.session_range(session).end;
            while self.next[session.index()] < end {
                let txn = TxnId(self.next[session.index()]);
                if self.facts.index.is_counted(txn) {
                    if self.waits_for_others(session, txn) {
                        break;
                    }
                    self.place(txn, &mut ready);
                }
                self.next[session.index()] += 1;
            }
        }
        (self.order.len() == self.facts.index.counted_txns()).then_some(self.order)
    }

    fn waits_for_others(&mut self, session: SessionId, txn: TxnId) -> bool {
        let Walk { predecessors, placed, waited_for, waits, unused, .. } = self;
        let mut missing = 0;
        predecessors.of(txn, |before| {
            if is_set(placed, before) {
                return;
            }
            let wait = Wait { session, next: waited_for[before.index()] };
            waited_for[before.index()] = if *unused == NONE {
                waits.push(wait);
                waits.len() as u32 - 1
            } else {
                let reused = *unused;
                *unused = waits[reused as usize].next;
                waits[reused as usize] = wait;
                reused
            };
            missing += 1;
        });
        self.missing[session.index()] = missing;
        missing > 0
    }

    /// Adds a transaction to the order. Sessions for which it was the last one
    /// missing are ready again.
    fn place(&mut self, txn: TxnId, ready: &mut Vec<SessionId>) {
        self.placed[txn.index() / 64] |= 1 << (txn.index() % 64);
        self.order.push(txn);
        let mut at = self.waited_for[txn.index()];
        while at != NONE {
            let Wait { session, next } = self.waits[at as usize];
            self.waits[at as usize].next = self.unused;
            self.unused = at;
            at = next;
            self.missing[session.index()] -= 1;
            if self.missing[session.index()] == 0 {
                ready.push(session);
            }
        }
    }
}

#[inline]
fn is_set(bits: &[u64], txn: TxnId) -> bool {
    bits[txn.index() / 64] >> (txn.index() % 64) & 1 == 1
}
