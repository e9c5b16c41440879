//! Which transactions of a few sessions happen before every transaction.
//!
//! For all sessions at once this takes a clock for each transaction, with an entry for each
//! session. What is asked of any two transactions, at any time, finds no clock that could be
//! dropped: instead, a few sessions are looked at together, and then the next few.

use super::happens_before::HappensBefore;
use isolde_history::{Origin, SessionId, TxnId};
use std::ops::Range;

pub(super) struct Reach {
    sessions: Range<u32>,
    /// Per transaction, an entry for each of the sessions: its first transaction that neither
    /// happens before this one nor is it.
    entries: Vec<u32>,
}

impl Reach {
    /// What it takes in memory for so many transactions and sessions.
    pub(super) fn bytes(txns: usize, sessions: u32) -> usize {
        txns * sessions as usize * size_of::<u32>()
    }

    /// `order` has every counted transaction after all that happen before it.
    pub(super) fn new(
        happens_before: &HappensBefore<'_>,
        order: &[TxnId],
        sessions: Range<u32>,
    ) -> Reach {
        let facts = happens_before.facts;
        let starts: Vec<u32> = sessions
            .clone()
            .map(|session| facts.history.session_range(SessionId(session)).start)
            .collect();
        let width = starts.len();
        let mut entries = vec![0; width * facts.history.txn_count()];
        let row = |txn: TxnId| txn.index() * width..(txn.index() + 1) * width;
        let mut own = starts.clone();
        for &txn in order {
            match happens_before.previous_of(txn) {
                Some(previous) => own.copy_from_slice(&entries[row(previous)]),
                None => own.copy_from_slice(&starts),
            }
            for read in facts.index.reads_of(txn) {
                let Origin::Txn(writer) = read.origin else { continue };
                for (entry, &other) in own.iter_mut().zip(&entries[row(writer)]) {
                    *entry = (*entry).max(other);
                }
            }
            let session = facts.history.session_of(txn).0;
            if sessions.contains(&session) {
                own[(session - sessions.start) as usize] = txn.0 + 1;
            }
            entries[row(txn)].copy_from_slice(&own);
        }
        Reach { sessions, entries }
    }

    pub(super) fn has(&self, session: SessionId) -> bool {
        self.sessions.contains(&session.0)
    }

    /// Whether a transaction of one of the sessions happens before another, or is it.
    #[inline]
    pub(super) fn happens_before(&self, (of, before): (SessionId, TxnId), after: TxnId) -> bool {
        let place = (of.0 - self.sessions.start) as usize;
        before.0 < self.entries[after.index() * self.sessions.len() + place]
    }
}
