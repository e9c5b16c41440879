//! The recorded history: sessions of transactions of operations, in columns.
//!
//! Transactions are numbered session by session in session order, operations
//! transaction by transaction in program order, so that a session is a range of
//! transactions and a transaction a range of operations. Everything is a flat
//! array of 32-bit ids; nothing is chased through pointers. A [`History`] is
//! made by a [`HistoryBuilder`](crate::HistoryBuilder) and never changes.

pub use crate::database_order::{GivenOrders, VersionChain};
pub use crate::operation::{KeyId, Op, OpId, OpKind, Outcome, SessionId, TxnId};
use crate::predicate::Predicate;
use crate::snapshot::SnapshotColumns;
use crate::value::{Datum, Value, Values};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// A point in time in nanoseconds from an origin of the recorder's choice.
pub type Time = i64;

/// The time of something that never ended, or whose time was not recorded.
pub const NEVER: Time = Time::MAX;
/// The time of something whose beginning was not recorded.
pub const ALWAYS: Time = Time::MIN;

/// When an operation or event may have taken effect: from `invoked` to `completed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// When the client sent it; [`ALWAYS`] if not recorded.
    pub invoked: Time,
    /// When the client got the answer; [`NEVER`] if it did not or was not recorded.
    pub completed: Time,
}

impl Interval {
    /// Nothing is known.
    pub const UNKNOWN: Interval = Interval { invoked: ALWAYS, completed: NEVER };
}

/// When a transaction began and committed, as narrowly as the client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxnTimes {
    /// Where its begin event lies.
    pub begin: Interval,
    /// Where its commit event lies.
    pub commit: Interval,
}

/// A database's own timestamp: a physical and a logical part, ordered in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// The physical part.
    pub physical: u64,
    /// The logical part.
    pub logical: u64,
}

/// Start and commit timestamps that the database gave a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// Of its snapshot.
    pub start: Timestamp,
    /// Of its commit.
    pub commit: Timestamp,
}

/// Something that happened beside the transactions: a fault, a note of the harness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, if recorded.
    pub time: Option<Time>,
    /// Where in the source.
    pub position: u32,
    /// What, in the source's notation.
    pub text: String,
}

/// What an importer noticed about the source that the model has no place for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// What it is about, in kebab case: `reused-process`, `missing-writer`.
    pub kind: Cow<'static, str>,
    /// Where in the source; 0 if nowhere in particular.
    pub position: u32,
    /// One sentence, lower case, no full stop.
    pub text: String,
}

/// What positions in the source count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum PositionUnit {
    /// Lines of a text, from 1.
    #[default]
    Line = 0,
    /// Records of a binary file, from 1, per file.
    Record = 1,
    /// The `:index` of an operation.
    Index = 2,
}

impl PositionUnit {
    /// What one of them is called.
    pub const fn name(self) -> &'static str {
        match self {
            PositionUnit::Line => "line",
            PositionUnit::Record => "record",
            PositionUnit::Index => "index",
        }
    }
}

/// One session's own data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) label: Value,
    pub(crate) endpoint: Value,
    /// The file it was recorded in, where a history is a directory.
    pub(crate) origin: Value,
}

/// Columns that only some histories have are empty when absent.
#[derive(Clone, Default)]
pub(crate) struct Columns {
    pub(crate) values: Values,
    pub(crate) keys: Vec<Value>,
    pub(crate) initial_default: Option<Value>,
    /// Sorted by key.
    pub(crate) initial: Vec<(KeyId, Value)>,

    pub(crate) sessions: Vec<Session>,
    /// Invariant: `sessions + 1` ascending offsets into transactions.
    pub(crate) session_txns: Vec<u32>,

    /// Invariant: `transactions + 1` ascending offsets into operations.
    pub(crate) txn_ops: Vec<u32>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) unlogged: Vec<bool>,
    pub(crate) labels: Vec<Value>,
    pub(crate) errors: Vec<Value>,
    pub(crate) invoked: Vec<Time>,
    pub(crate) completed: Vec<Time>,
    pub(crate) begun: Vec<Time>,
    pub(crate) committing: Vec<Time>,
    pub(crate) timestamps: Vec<Option<Timestamps>>,

    pub(crate) kinds: Vec<OpKind>,
    pub(crate) op_keys: Vec<KeyId>,
    pub(crate) op_values: Vec<Value>,
    /// 0 where the source has no place for it.
    pub(crate) positions: Vec<u32>,
    pub(crate) op_invoked: Vec<Time>,
    pub(crate) op_completed: Vec<Time>,

    /// Each list read's elements as a range of `elements`. List reads of one key
    /// that are prefixes of one another share their elements.
    pub(crate) lists: Vec<(u32, u32)>,
    pub(crate) elements: Vec<Value>,
    pub(crate) predicates: Vec<Predicate>,
    /// Column contents of written rows, sorted by operation: `(op, column, content)`.
    pub(crate) rows: Vec<(OpId, Value, Value)>,
    pub(crate) snapshots: SnapshotColumns,

    pub(crate) orders: GivenOrders,
    /// What was asked at positions of the source, ascending.
    pub(crate) statements: Vec<(u32, Value)>,
    pub(crate) events: Vec<Event>,
    pub(crate) remarks: Vec<Remark>,
    pub(crate) unit: PositionUnit,
}

/// A recorded history.
pub struct History {
    pub(crate) columns: Columns,
}

impl History {
    /// The table that resolves [`Value`]s.
    pub fn values(&self) -> &Values {
        &self.columns.values
    }

    /// What `value` stands for.
    pub fn datum(&self, value: Value) -> Datum<'_> {
        self.columns.values.datum(value)
    }

    /// How many sessions there are.
    pub fn session_count(&self) -> usize {
        self.columns.sessions.len()
    }

    /// How many transactions there are, whatever their outcome.
    pub fn txn_count(&self) -> usize {
        self.columns.outcomes.len()
    }

    /// How many operations there are.
    pub fn op_count(&self) -> usize {
        self.columns.kinds.len()
    }

    /// How many keys there are.
    pub fn key_count(&self) -> usize {
        self.columns.keys.len()
    }

    /// All sessions.
    pub fn sessions(
        &self,
    ) -> impl DoubleEndedIterator<Item = SessionId> + ExactSizeIterator + use<> {
        (0..self.session_count() as u32).map(SessionId)
    }

    /// All transactions, those at the same place of their sessions near each other. What
    /// neighbours in time have to do with lies together in memory mostly, so that a walk in this
    /// order finds it in a cache, however long the history is.
    pub fn txns_interleaved(&self) -> impl Iterator<Item = TxnId> + '_ {
        self.parts_interleaved().flatten().map(TxnId)
    }

    /// The same as ranges of neighbours in their sessions.
    pub(crate) fn parts_interleaved(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        const ROUND: usize = 1 << 14;
        let rounds_max = self.txn_count() / self.session_count().max(1);
        let rounds = (self.txn_count() / ROUND).clamp(1, rounds_max.max(1)) as u64;
        (0..rounds).flat_map(move |round| {
            self.sessions().map(move |session| {
                let range = self.session_range(session);
                let part = |round| range.start + (range.len() as u64 * round / rounds) as u32;
                part(round)..part(round + 1)
            })
        })
    }

    /// All transactions, session by session in session order.
    pub fn txns(&self) -> impl DoubleEndedIterator<Item = TxnId> + ExactSizeIterator + use<> {
        (0..self.txn_count() as u32).map(TxnId)
    }

    /// All keys.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = KeyId> + ExactSizeIterator + use<> {
        (0..self.key_count() as u32).map(KeyId)
    }

    /// The transactions of a session, as a range of ids.
    #[inline]
    pub fn session_range(&self, session: SessionId) -> Range<u32> {
        let offsets = &self.columns.session_txns;
        offsets[session.index()]..offsets[session.index() + 1]
    }

    /// The transactions of a session in session order.
    pub fn txns_of(
        &self,
        session: SessionId,
    ) -> impl DoubleEndedIterator<Item = TxnId> + ExactSizeIterator + use<> {
        self.session_range(session).map(TxnId)
    }

    /// The session of a transaction.
    pub fn session_of(&self, txn: TxnId) -> SessionId {
        let offsets = &self.columns.session_txns;
        SessionId(offsets.partition_point(|&start| start <= txn.0) as u32 - 1)
    }

    /// The operations of a transaction, as a range of ids.
    #[inline]
    pub fn op_range(&self, txn: TxnId) -> Range<u32> {
        let offsets = &self.columns.txn_ops;
        offsets[txn.index()]..offsets[txn.index() + 1]
    }

    /// The operations of a transaction in program order.
    pub fn ops_of(
        &self,
        txn: TxnId,
    ) -> impl DoubleEndedIterator<Item = OpId> + ExactSizeIterator + use<> {
        self.op_range(txn).map(OpId)
    }

    /// The transaction of an operation.
    pub fn txn_of(&self, op: OpId) -> TxnId {
        TxnId(self.columns.txn_ops.partition_point(|&start| start <= op.0) as u32 - 1)
    }

    /// One operation.
    #[inline]
    pub fn op(&self, op: OpId) -> Op {
        let index = op.index();
        Op {
            kind: self.columns.kinds[index],
            key: self.columns.op_keys[index],
            value: self.columns.op_values[index],
        }
    }

    /// The column of kinds, by operation.
    pub fn op_kinds(&self) -> &[OpKind] {
        &self.columns.kinds
    }

    /// The column of keys, by operation.
    pub fn op_keys(&self) -> &[KeyId] {
        &self.columns.op_keys
    }

    /// The column of values, by operation; see [`Op::value`].
    pub fn op_values(&self) -> &[Value] {
        &self.columns.op_values
    }

    /// How a transaction ended.
    #[inline]
    pub fn outcome(&self, txn: TxnId) -> Outcome {
        self.columns.outcomes[txn.index()]
    }

    /// The column of outcomes, by transaction.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.columns.outcomes
    }

    /// The elements a list read saw.
    ///
    /// # Panics
    /// If `op` is not a list read.
    pub fn list(&self, op: OpId) -> &[Value] {
        let op = self.op(op);
        assert_eq!(op.kind, OpKind::ReadList, "only list reads have elements");
        let (start, length) = self.columns.lists[op.value.bits() as usize];
        &self.columns.elements[start as usize..(start + length) as usize]
    }

    /// Whether there are list reads.
    pub fn has_lists(&self) -> bool {
        !self.columns.lists.is_empty()
    }

    /// Whether there are predicate operations.
    pub fn has_predicates(&self) -> bool {
        !self.columns.predicates.is_empty()
    }

    /// Where a list read's elements lie in memory: reads that start at the same
    /// place are prefixes of one another.
    pub(crate) fn list_span(&self, op: OpId) -> (u32, u32) {
        self.columns.lists[self.op(op).value.bits() as usize]
    }

    /// The condition and rows of a predicate operation.
    ///
    /// # Panics
    /// If `op` is not one.
    pub fn predicate(&self, op: OpId) -> &Predicate {
        let op = self.op(op);
        assert!(!op.kind.has_key(), "only predicate operations have a condition");
        &self.columns.predicates[op.value.bits() as usize]
    }

    /// The columns of the row that a write installed, where the source tells them.
    pub fn row(&self, op: OpId) -> impl Iterator<Item = (Value, Value)> {
        let rows = &self.columns.rows;
        let start = rows.partition_point(|row| row.0 < op);
        rows[start..].iter().take_while(move |row| row.0 == op).map(|row| (row.1, row.2))
    }

    /// Whether any write has row contents.
    pub fn has_rows(&self) -> bool {
        !self.columns.rows.is_empty()
    }

    /// The name of a key.
    pub fn key_name(&self, key: KeyId) -> Value {
        self.columns.keys[key.index()]
    }

    /// The value of a key before anybody wrote it.
    pub fn initial(&self, key: KeyId) -> Value {
        let declared = &self.columns.initial;
        match declared.binary_search_by_key(&key, |entry| entry.0) {
            Ok(index) => declared[index].1,
            Err(_) => self.initial_default(),
        }
    }

    /// The initial value of every key that declares none of its own.
    pub fn initial_default(&self) -> Value {
        self.columns.initial_default.unwrap_or(Value::NIL)
    }

    /// Whether the initial value of such keys is known and not only taken to be none.
    pub fn has_initial_default(&self) -> bool {
        self.columns.initial_default.is_some()
    }

    /// Keys that declare an initial value of their own, in order of their ids.
    pub fn declared_initial(&self) -> &[(KeyId, Value)] {
        &self.columns.initial
    }

    /// The label of a session in its source.
    pub fn session_label(&self, session: SessionId) -> Value {
        self.columns.sessions[session.index()].label
    }

    /// The server a session talked to; nil if not recorded.
    pub fn endpoint(&self, session: SessionId) -> Value {
        self.columns.sessions[session.index()].endpoint
    }

    /// The file a session was recorded in, where a history is a directory; else nil.
    pub fn origin(&self, session: SessionId) -> Value {
        self.columns.sessions[session.index()].origin
    }

    /// The label of a transaction in its source; nil if it has none.
    pub fn txn_label(&self, txn: TxnId) -> Value {
        self.columns.labels.get(txn.index()).copied().unwrap_or(Value::NIL)
    }

    /// What the client was told when the transaction failed; nil if nothing.
    pub fn error(&self, txn: TxnId) -> Value {
        self.columns.errors.get(txn.index()).copied().unwrap_or(Value::NIL)
    }

    /// How to call a transaction in a message: its label if it has one, else its
    /// session's label and, if the session has several, its place in the session.
    pub fn txn_name(&self, txn: TxnId) -> String {
        let session = self.session_of(txn);
        let range = self.session_range(session);
        txn_name(
            self.datum(self.txn_label(txn)),
            self.datum(self.session_label(session)),
            (range.len() > 1).then_some(txn.0 - range.start + 1),
        )
    }

    /// How to call a transaction in a text for people: its name, or its number if neither it
    /// nor its session has a label. Files name transactions by [`History::txn_name`].
    pub fn readable_name(&self, txn: TxnId) -> String {
        let session = self.session_label(self.session_of(txn));
        if self.txn_label(txn) == Value::NIL && session == Value::NIL {
            return format!("#{}", txn.0 + 1);
        }
        self.txn_name(txn)
    }

    /// Whether transactions have client-side times.
    pub fn has_times(&self) -> bool {
        !self.columns.invoked.is_empty()
    }

    /// From the first invocation of a transaction to its last completion.
    pub fn txn_interval(&self, txn: TxnId) -> Interval {
        let column = |times: &[Time], missing| times.get(txn.index()).copied().unwrap_or(missing);
        Interval {
            invoked: column(&self.columns.invoked, ALWAYS),
            completed: column(&self.columns.completed, NEVER),
        }
    }

    /// Where a transaction's begin and commit lie. Where only its whole interval
    /// is known, both lie somewhere in it.
    ///
    /// Nothing ends here before it began: where a client's clock was set back on the way,
    /// the end is taken to be the beginning, or the transaction would have to come before
    /// itself. [`History::txn_interval`] has what was recorded.
    pub fn txn_times(&self, txn: TxnId) -> TxnTimes {
        let whole = self.txn_interval(txn);
        let inner = |times: &[Time], missing| match times.get(txn.index()) {
            Some(&time) if time != NEVER && time != ALWAYS => time,
            _ => missing,
        };
        let begun = inner(&self.columns.begun, whole.completed);
        let committing = inner(&self.columns.committing, whole.invoked);
        TxnTimes {
            begin: Interval { invoked: whole.invoked, completed: begun.max(whole.invoked) },
            commit: Interval {
                invoked: committing,
                completed: whole.completed.max(committing).max(whole.invoked),
            },
        }
    }

    /// Whether any transaction tells its begin and commit apart.
    pub fn has_inner_times(&self) -> bool {
        !self.columns.begun.is_empty()
    }

    /// Whether operations have client-side times of their own.
    pub fn has_op_times(&self) -> bool {
        !self.columns.op_invoked.is_empty()
    }

    /// When an operation ran.
    pub fn op_interval(&self, op: OpId) -> Interval {
        if self.columns.op_invoked.is_empty() {
            return Interval::UNKNOWN;
        }
        Interval {
            invoked: self.columns.op_invoked[op.index()],
            completed: self.columns.op_completed[op.index()],
        }
    }

    /// Timestamps the database gave a transaction.
    pub fn timestamps(&self, txn: TxnId) -> Option<Timestamps> {
        self.columns.timestamps.get(txn.index()).copied().flatten()
    }

    /// Orders the database revealed.
    pub fn orders(&self) -> &GivenOrders {
        &self.columns.orders
    }

    /// Where an operation stands in its source, in [`History::position_unit`]s.
    pub fn position(&self, op: OpId) -> u32 {
        self.columns.positions.get(op.index()).copied().unwrap_or(0)
    }

    /// What positions count.
    pub fn position_unit(&self) -> PositionUnit {
        self.columns.unit
    }

    /// Faults and other events beside the transactions.
    pub fn events(&self) -> &[Event] {
        &self.columns.events
    }

    /// What the importer noticed.
    pub fn remarks(&self) -> &[Remark] {
        &self.columns.remarks
    }

    /// Bytes of memory that the history holds.
    pub fn memory(&self) -> usize {
        fn of<T>(column: &Vec<T>) -> usize {
            column.capacity() * size_of::<T>()
        }
        let columns = &self.columns;
        columns.values.memory()
            + of(&columns.keys)
            + of(&columns.initial)
            + of(&columns.sessions)
            + of(&columns.session_txns)
            + of(&columns.txn_ops)
            + of(&columns.outcomes)
            + of(&columns.unlogged)
            + of(&columns.labels)
            + of(&columns.errors)
            + of(&columns.invoked)
            + of(&columns.completed)
            + of(&columns.begun)
            + of(&columns.committing)
            + of(&columns.timestamps)
            + of(&columns.kinds)
            + of(&columns.op_keys)
            + of(&columns.op_values)
            + of(&columns.positions)
            + of(&columns.op_invoked)
            + of(&columns.op_completed)
            + of(&columns.lists)
            + of(&columns.elements)
            + of(&columns.rows)
            + columns.snapshots.memory()
            + columns.predicates.iter().map(Predicate::memory).sum::<usize>()
    }
}

/// See [`History::txn_name`]; `place` is that in a session of several.
pub(crate) fn txn_name(label: Datum<'_>, session: Datum<'_>, place: Option<u32>) -> String {
    match label {
        Datum::Nil => {}
        Datum::Int(number) => return format!("T{number}"),
        label => return label.to_string(),
    }
    let session = match session {
        Datum::Int(number) => format!("S{number}"),
        label => label.to_string(),
    };
    match place {
        Some(place) => format!("{session}.{place}"),
        None => session,
    }
}

impl fmt::Debug for History {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("History")
            .field("sessions", &self.session_count())
            .field("transactions", &self.txn_count())
            .field("operations", &self.op_count())
            .field("keys", &self.key_count())
            .finish_non_exhaustive()
    }
}
