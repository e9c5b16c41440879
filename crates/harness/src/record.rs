//! Writing down what the clients saw.

use crate::clock::Stamps;
use crate::parameters::{Parameters, Times, TxnKind};
use crate::plan::Action;
use crate::store::OpenTxn;
use isolde_history::{
    DraftTxn, History, HistoryBuilder, Interval, KeyId, OpKind, Outcome, ReadError, SessionId,
    Value,
};

/// The history in the making.
pub(crate) struct Recorder {
    builder: HistoryBuilder,
    sessions: Vec<SessionId>,
    lists: bool,
    times: Times,
    /// Committed elements of each list, in order.
    elements: Vec<Vec<Value>>,
}

impl Recorder {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let mut recorder = Recorder {
            builder: HistoryBuilder::new(),
            sessions: Vec::new(),
            lists: parameters.kind == TxnKind::ListAppend,
            times: parameters.times,
            elements: Vec::new(),
        };
        recorder.session(parameters.sessions - 1);
        recorder
    }

    /// Records the transaction that `txn` was.
    pub(crate) fn record(&mut self, txn: &OpenTxn, outcome: Outcome) {
        let draft = self.begin(txn.session, outcome);
        if self.times != Times::None
            && let Some(times) = txn.stamps.times()
        {
            self.builder.times(draft, times);
        }
        if self.lists && outcome == Outcome::Committed {
            for (key, value) in txn.writes() {
                let place = key as usize;
                if self.elements.len() <= place {
                    self.elements.resize_with(place + 1, Vec::new);
                }
                self.elements[place].push(number(value));
            }
        }
        for (place, done) in txn.done.iter().enumerate() {
            let key = self.key(done.key);
            match (self.lists, done.action) {
                (false, Action::Read) => self.builder.op(OpKind::Read, key, number(done.value)),
                (false, Action::Write) => self.builder.op(OpKind::Write, key, number(done.value)),
                (true, Action::Write) => self.builder.op(OpKind::Append, key, number(done.value)),
                // Elements that a refused transaction saw of itself were in no list.
                (true, Action::Read) if outcome != Outcome::Committed => continue,
                (true, Action::Read) => self.read_list(txn, place),
            }
            self.op_times(&txn.stamps, place);
        }
    }

    /// A list read: as much of the list as the store said, and what the transaction
    /// itself had appended by then.
    fn read_list(&mut self, txn: &OpenTxn, place: usize) {
        let done = txn.done[place];
        let committed = self.elements.get(done.key as usize).map_or(&[][..], Vec::as_slice);
        let own = (txn.done[..place].iter())
            .filter(|earlier| earlier.action == Action::Write && earlier.key == done.key)
            .map(|earlier| number(earlier.value));
        let mut seen = committed[..done.value as usize].to_vec();
        seen.extend(own);
        let key = self.key(done.key);
        self.builder.read_list(key, &seen);
    }

    fn op_times(&mut self, stamps: &Stamps, place: usize) {
        // The first request is the begin.
        if self.times == Times::Operations
            && let Some(&interval) = stamps.requests.get(place + 1)
        {
            self.builder.op_interval(interval);
        }
    }

    /// Begins a transaction of the session with this number.
    pub(crate) fn begin(&mut self, session: u32, outcome: Outcome) -> DraftTxn {
        let session = self.session(session);
        let draft = self.builder.begin(session);
        self.builder.outcome(draft, outcome);
        draft
    }

    /// Records one operation of an injected transaction. `versions` are the values
    /// of its key up to the one it reads or writes.
    pub(crate) fn inject(&mut self, action: Action, key: u32, versions: &[u32]) {
        let key = self.key(key);
        let values: Vec<Value> = versions.iter().map(|&value| number(value)).collect();
        let last = values.last().copied().unwrap_or(Value::NIL);
        match (self.lists, action) {
            (true, Action::Read) => self.builder.read_list(key, &values),
            (true, Action::Write) => self.builder.op(OpKind::Append, key, last),
            (false, Action::Read) => self.builder.op(OpKind::Read, key, last),
            (false, Action::Write) => self.builder.op(OpKind::Write, key, last),
        }
    }

    /// When an injected transaction ran, if times are noted.
    pub(crate) fn interval(&mut self, draft: DraftTxn, interval: Interval) {
        if self.times != Times::None {
            self.builder.interval(draft, interval);
        }
    }

    /// The history.
    pub(crate) fn finish(self) -> Result<History, ReadError> {
        self.builder.finish("generated")
    }

    fn session(&mut self, session: u32) -> SessionId {
        while self.sessions.len() <= session as usize {
            let label = number(self.sessions.len() as u32 + 1);
            self.sessions.push(self.builder.session(label));
        }
        self.sessions[session as usize]
    }

    fn key(&mut self, key: u32) -> KeyId {
        let name = Value::small(u64::from(key)).expect("keys are below 2^31");
        self.builder.key(name)
    }
}

/// A value of the stores, where 0 is nothing.
fn number(value: u32) -> Value {
    if value == 0 {
        return Value::NIL;
    }
    Value::small(u64::from(value)).expect("values are below 2^31")
}
