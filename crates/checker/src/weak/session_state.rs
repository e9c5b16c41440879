//! The last writer of each key in the session being walked.

use super::Facts;
use isolde_history::{KeyId, SessionId, TxnId};

/// One slot per key, reused from session to session: a slot counts only if its
/// transaction belongs to the current session, so nothing is ever cleared.
pub(super) struct LastWriters {
    slots: Vec<u32>,
    start: u32,
    end: u32,
}

impl LastWriters {
    pub(super) fn new(facts: &Facts<'_>) -> Self {
        LastWriters { slots: vec![u32::MAX; facts.history.key_count()], start: 0, end: 0 }
    }

    /// Starts a session with no writers.
    pub(super) fn enter(&mut self, facts: &Facts<'_>, session: SessionId) {
        let range = facts.history.session_range(session);
        (self.start, self.end) = (range.start, range.end);
        // Slots of an earlier visit to this very session would count.
        debug_assert!(self.slots.iter().all(|slot| !(self.start..self.end).contains(slot)));
    }

    #[inline]
    pub(super) fn get(&self, key: KeyId) -> Option<TxnId> {
        let slot = self.slots[key.index()];
        (self.start <= slot && slot < self.end).then_some(TxnId(slot))
    }

    /// Records the writes of a transaction of the session.
    #[inline]
    pub(super) fn wrote(&mut self, facts: &Facts<'_>, txn: TxnId) {
        for key in facts.index.written_by(txn) {
            self.slots[key.index()] = txn.0;
        }
    }
}
