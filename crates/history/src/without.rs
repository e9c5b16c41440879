//! A history without one of its sources of order, for asking what the others tell.

use crate::history::{History, Session};
use crate::snapshot::SnapshotColumns;

impl History {
    /// The same history without the version orders and snapshots that a database gave.
    #[must_use]
    pub fn without_version_orders(mut self) -> History {
        self.columns.orders.versions = Vec::new();
        self.columns.snapshots = SnapshotColumns::default();
        self
    }

    /// The same history without client-side times.
    #[must_use]
    pub fn without_times(mut self) -> History {
        let columns = &mut self.columns;
        for times in [
            &mut columns.invoked,
            &mut columns.completed,
            &mut columns.begun,
            &mut columns.committing,
            &mut columns.op_invoked,
            &mut columns.op_completed,
        ] {
            *times = Vec::new();
        }
        self
    }

    /// The same history with every transaction in a session of its own.
    #[must_use]
    pub fn without_sessions(mut self) -> History {
        let session = |txn| self.columns.sessions[self.session_of(txn).index()].clone();
        let sessions: Vec<Session> = self.txns().map(session).collect();
        self.columns.session_txns = (0..=sessions.len() as u32).collect();
        self.columns.sessions = sessions;
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::TxnId;
    use crate::format::parse_text;

    #[test]
    fn transactions_keep_their_ids_without_sessions_and_times() {
        let text = "A @1..2: w(x,1)\nA @3..4: r(x,1)\nB @1..5: w(x,2)\n";
        let history = parse_text(text).expect("a history");
        assert!(history.has_times() && history.session_count() == 2);
        let reduced = history.without_sessions().without_times();
        assert!(!reduced.has_times() && !reduced.has_op_times());
        assert_eq!(reduced.session_count(), 3);
        let sessions: Vec<u32> = reduced.txns().map(|txn| reduced.session_of(txn).0).collect();
        assert_eq!(sessions, [0, 1, 2]);
        assert_eq!(reduced.op_range(TxnId(2)), 2..3);
    }
}
