//! The transactions of a finding, fetched back from whoever has them, as a history of their own.

use crate::access::{Name, name};
use crate::event::TxnNumber;
use crate::parts::{Loaded, Pieces, own_places};
use crate::share::share;
use hashbrown::{HashMap, HashSet};
use isolde_history::{
    Datum, History, HistoryBuilder, Interval, KeyId, OpId, OpKind, Outcome, SessionId, Time, TxnId,
    TxnTimes, Value,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use timely::worker::Worker;

/// A datum that can be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Sent {
    Nil,
    Unknown,
    Int(i128),
    Text(String),
    Keyword(String),
    Other(String),
}

impl Sent {
    fn new(datum: Datum<'_>) -> Sent {
        match datum {
            Datum::Nil => Sent::Nil,
            Datum::Unknown => Sent::Unknown,
            Datum::Int(number) => Sent::Int(number),
            Datum::Text(text) => Sent::Text(text.to_owned()),
            Datum::Keyword(word) => Sent::Keyword(word.to_owned()),
            Datum::Other(notation) => Sent::Other(notation.to_owned()),
        }
    }

    fn datum(&self) -> Datum<'_> {
        match self {
            Sent::Nil => Datum::Nil,
            Sent::Unknown => Datum::Unknown,
            Sent::Int(number) => Datum::Int(*number),
            Sent::Text(text) => Datum::Text(text),
            Sent::Keyword(word) => Datum::Keyword(word),
            Sent::Other(notation) => Datum::Other(notation),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SentOp {
    kind: u8,
    key: Sent,
    value: Sent,
    initial: Sent,
    list: Vec<Sent>,
    position: u32,
    times: (Time, Time),
}

/// A whole transaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Fetched {
    number: TxnNumber,
    session: u32,
    session_label: Sent,
    label: Sent,
    outcome: u8,
    /// Begin and commit, each from and to.
    times: [Time; 4],
    ops: Vec<SentOp>,
}

/// What is asked of all workers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Wanted {
    pub(crate) txns: Vec<TxnNumber>,
    /// Who wrote these values to these keys.
    pub(crate) writes: Vec<(Name, Name)>,
    /// All that overlaps this time.
    pub(crate) during: Option<(Time, Time)>,
}

/// The transactions that are wanted, and those they read from with what they wrote alone.
/// Everybody gets them.
pub(crate) fn fetch(worker: &mut Worker, pieces: &Pieces, wanted: &Wanted) -> Vec<Fetched> {
    let mut all = fetch_once(worker, pieces, wanted);
    let has: HashSet<TxnNumber> = all.iter().map(|it| it.number).collect();
    let reads = all.iter().flat_map(|it| &it.ops).flat_map(SentOp::seen);
    let mut writes: Vec<(Name, Name)> = reads.collect();
    writes.sort_unstable();
    writes.dedup();
    let support = fetch_once(worker, pieces, &Wanted { writes, ..Wanted::default() });
    for mut it in support.into_iter().filter(|it| !has.contains(&it.number)) {
        // What it saw would want writers of its own.
        it.ops.retain(|op| op.kind().is_write());
        all.push(it);
    }
    all.sort_by_key(|it| (it.session, it.number));
    all
}

fn fetch_once(worker: &mut Worker, pieces: &Pieces, wanted: &Wanted) -> Vec<Fetched> {
    let txns: HashSet<TxnNumber> = wanted.txns.iter().copied().collect();
    let writes: HashSet<(Name, Name)> = wanted.writes.iter().copied().collect();
    let mut own = Vec::new();
    for place in own_places(worker, pieces) {
        // What cannot be read was told before.
        let Ok(loaded) = pieces.load(place) else { continue };
        let history = &*loaded.history;
        // Names of values that are no numbers cost more than everything else here.
        for &txn in &loaded.txns {
            let is_wanted = txns.contains(&loaded.number(txn))
                || wanted.during.is_some_and(|during| overlaps(history, txn, during))
                || !writes.is_empty() && wrote_any(history, txn, &writes);
            if is_wanted {
                own.push(Fetched::new(&loaded, txn));
            }
        }
    }
    share(worker, own)
}

fn overlaps(history: &History, txn: TxnId, (from, to): (Time, Time)) -> bool {
    let times = history.txn_times(txn);
    history.outcome(txn) != Outcome::Aborted
        && times.begin.invoked <= to
        && times.commit.completed >= from
}

fn wrote_any(history: &History, txn: TxnId, writes: &HashSet<(Name, Name)>) -> bool {
    let of = |op: OpId| {
        let it = history.op(op);
        let key = name(history.datum(history.key_name(it.key)));
        (key, name(history.datum(it.value)))
    };
    let mut ops = history.ops_of(txn).filter(|&op| history.op(op).kind.is_write());
    ops.any(|op| writes.contains(&of(op)))
}

impl SentOp {
    fn kind(&self) -> OpKind {
        OpKind::ALL[usize::from(self.kind)]
    }

    /// The keys and values it saw.
    fn seen(&self) -> Vec<(Name, Name)> {
        let key = name(self.key.datum());
        match self.kind() {
            OpKind::Read => vec![(key, name(self.value.datum()))],
            OpKind::ReadList => self.list.iter().map(|it| (key, name(it.datum()))).collect(),
            _ => Vec::new(),
        }
    }
}

impl Fetched {
    fn new(loaded: &Loaded, txn: TxnId) -> Fetched {
        let history = &*loaded.history;
        let sent = |value: Value| Sent::new(history.datum(value));
        let session = history.session_of(txn);
        let times = history.txn_times(txn);
        let op = |op: OpId| {
            let it = history.op(op);
            let is_list = it.kind == OpKind::ReadList;
            let has_key = it.kind.has_key();
            let key = |of: fn(&History, KeyId) -> Value| {
                if has_key { sent(of(history, it.key)) } else { Sent::Nil }
            };
            let during = history.op_interval(op);
            SentOp {
                kind: it.kind as u8,
                key: key(History::key_name),
                value: if is_list || !has_key { Sent::Nil } else { sent(it.value) },
                initial: key(History::initial),
                list: if is_list {
                    history.list(op).iter().map(|&it| sent(it)).collect()
                } else {
                    Vec::new()
                },
                position: history.position(op),
                times: (during.invoked, during.completed),
            }
        };
        Fetched {
            number: loaded.number(txn),
            session: session.0,
            session_label: sent(history.session_label(session)),
            label: sent(history.txn_label(txn)),
            outcome: history.outcome(txn) as u8,
            times: [
                times.begin.invoked,
                times.begin.completed,
                times.commit.invoked,
                times.commit.completed,
            ],
            ops: history.ops_of(txn).map(op).collect(),
        }
    }
}

/// What was fetched for several findings, each transaction once and as whole as it is there.
pub(crate) fn together(mut fetched: Vec<Fetched>) -> Vec<Fetched> {
    fetched.sort_by_key(|it| (it.session, it.number, std::cmp::Reverse(it.ops.len())));
    fetched.dedup_by_key(|it| it.number);
    fetched
}

/// Some transactions of a history, in the order of their numbers, as one with the same sessions.
pub(crate) fn cut(history: &Arc<History>, txns: &[TxnId]) -> History {
    let loaded = Loaded::new(Arc::clone(history), Vec::new());
    let mut builder = HistoryBuilder::new();
    let default = history.datum(history.initial_default());
    let default = builder.values().intern_datum(default);
    builder.initial_default(default);
    builder.position_unit(history.position_unit());
    let mut sessions = HashMap::new();
    for session in history.sessions() {
        let label = builder.values().intern_datum(history.datum(history.session_label(session)));
        sessions.insert(session.0, builder.new_session(label));
    }
    for &txn in txns {
        let it = Fetched::new(&loaded, txn);
        add_txn(&mut builder, sessions[&it.session], &it, history.has_op_times());
    }
    builder.finish("part").expect("a part is no larger than the whole")
}

/// These transactions as a history.
pub(crate) fn part(fetched: &[Fetched]) -> History {
    let mut builder = HistoryBuilder::new();
    let mut sessions = HashMap::new();
    let has_op_times = fetched.iter().flat_map(|it| &it.ops).any(|op| op.times.1 != Time::MAX);
    for it in fetched {
        let session = *sessions.entry(it.session).or_insert_with(|| {
            let label = builder.values().intern_datum(it.session_label.datum());
            builder.new_session(label)
        });
        add_txn(&mut builder, session, it, has_op_times);
    }
    builder.finish("part").expect("a part is no larger than the whole")
}

fn add_txn(builder: &mut HistoryBuilder, session: SessionId, it: &Fetched, has_op_times: bool) {
    let txn = builder.begin(session);
    let outcome = match it.outcome {
        0 => Outcome::Committed,
        1 => Outcome::Aborted,
        _ => Outcome::Unknown,
    };
    builder.outcome(txn, outcome);
    if it.label != Sent::Nil {
        let label = builder.values().intern_datum(it.label.datum());
        builder.label(txn, label);
    }
    let [begin, begun, committing, committed] = it.times;
    let interval = |invoked, completed| Interval { invoked, completed };
    if (begin, begun) == (committing, committed) {
        builder.interval(txn, interval(begin, committed));
    } else {
        let (begin, commit) = (interval(begin, begun), interval(committing, committed));
        builder.times(txn, TxnTimes { begin, commit });
    }
    for op in &it.ops {
        add(builder, op, has_op_times);
    }
}

fn add(builder: &mut HistoryBuilder, op: &SentOp, has_times: bool) {
    builder.position(op.position);
    let key = builder.values().intern_datum(op.key.datum());
    let key = builder.key(key);
    let initial = builder.values().intern_datum(op.initial.datum());
    builder.initial(key, initial);
    if op.kind() == OpKind::ReadList {
        let list: Vec<Value> =
            op.list.iter().map(|it| builder.values().intern_datum(it.datum())).collect();
        builder.read_list(key, &list);
    } else {
        let value = builder.values().intern_datum(op.value.datum());
        builder.op(op.kind(), key, value);
    }
    if has_times {
        let (invoked, completed) = op.times;
        builder.op_interval(Interval { invoked, completed });
    }
}
