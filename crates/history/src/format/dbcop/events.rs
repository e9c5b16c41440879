//! Histories of dbcop's current formats on their way to the builder.
//!
//! A read of version 0 means the initial state only if nobody writes version 0 of
//! that variable, so everything is read before anything is built.

use crate::builder::HistoryBuilder;
use crate::history::{OpKind, Outcome};
use crate::value::Value;
use hashbrown::HashSet;

/// One event.
pub(super) struct Event {
    pub(super) write: bool,
    pub(super) variable: Value,
    /// `None` is a variable that was not initialised.
    pub(super) version: Option<u64>,
    /// Line or record.
    pub(super) position: u32,
}

/// Sessions of transactions of events.
#[derive(Default)]
pub(super) struct Events {
    all: Vec<Event>,
    /// Where each transaction ends in `all`, and whether it committed.
    txns: Vec<(usize, bool)>,
    /// Where each session ends in `txns`.
    sessions: Vec<usize>,
}

impl Events {
    pub(super) fn event(&mut self, event: Event) {
        self.all.push(event);
    }

    /// How many events there are so far.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn end_txn(&mut self, committed: bool) {
        self.txns.push((self.all.len(), committed));
    }

    pub(super) fn end_session(&mut self) {
        self.sessions.push(self.txns.len());
    }

    pub(super) fn build(self, builder: &mut HistoryBuilder) {
        let zeros: HashSet<Value> = self
            .all
            .iter()
            .filter(|event| event.write && event.version == Some(0))
            .map(|event| event.variable)
            .collect();
        let mut events = self.all.into_iter();
        let mut txns = self.txns.into_iter();
        let (mut event_start, mut txn_start) = (0, 0);
        for (index, session_end) in self.sessions.into_iter().enumerate() {
            let label = builder.values().unsigned(index as u64 + 1);
            let session = builder.session(label);
            for (txn_end, committed) in txns.by_ref().take(session_end - txn_start) {
                let txn = builder.begin(session);
                if !committed {
                    builder.outcome(txn, Outcome::Aborted);
                }
                for event in events.by_ref().take(txn_end - event_start) {
                    builder.position(event.position);
                    let value = match event.version {
                        None => Value::NIL,
                        Some(0) if !zeros.contains(&event.variable) => Value::NIL,
                        Some(version) => builder.values().unsigned(version),
                    };
                    let kind = if event.write { OpKind::Write } else { OpKind::Read };
                    let key = builder.key(event.variable);
                    builder.op(kind, key, value);
                }
                event_start = txn_end;
            }
            txn_start = session_end;
        }
    }
}
