//! Building a history: any order in, session order out.
//!
//! Sources interleave sessions, and some interleave the operations of several
//! transactions. The builder takes operations as they come, in runs that each
//! belong to one transaction, and [`HistoryBuilder::finish`] sorts them by session,
//! transaction and program order, which every later stage relies on.

use crate::database_order::settle_numbers;
use crate::error::{ReadError, memory_size};
use crate::history::{
    self, ALWAYS, Columns, Event, History, Interval, KeyId, NEVER, OpId, OpKind, Outcome,
    PositionUnit, Remark, Session, SessionId, Time, Timestamps, TxnId, TxnTimes, VersionChain,
};
use crate::lists::Lists;
use crate::predicate::Predicate;
use crate::snapshot::{self, NO_NUMBER, NO_SNAPSHOT, Snapshot};
use crate::value::{Value, Values};
use hashbrown::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

mod columns;
mod contradictions;
mod unlogged;
pub(crate) use columns::set;
use columns::{counting_sort, gather, offsets, pad, permute};
pub use contradictions::{CONTRADICTING_ORDERS, REPEATED_NUMBER};

/// A transaction under construction. Its number is its order of appearance, not
/// the [`TxnId`] it will have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DraftTxn(u32);

impl DraftTxn {
    pub(crate) fn index(self) -> u32 {
        self.0
    }
}

/// Collects a history. See the module's documentation.
#[derive(Default)]
pub struct HistoryBuilder {
    pub(crate) columns: Columns,
    /// Keys whose name is a natural number below [`DENSE_KEYS_MAX`].
    dense_keys: Vec<u32>,
    sparse_keys: HashMap<Value, KeyId>,
    session_ids: HashMap<Value, SessionId>,
    txn_sessions: Vec<SessionId>,
    /// `(transaction, first operation)` of each run of operations.
    runs: Vec<(u32, u32)>,
    lists: Lists,
    total: Option<Vec<DraftTxn>>,
    /// Where each chain of versions stands.
    chain_positions: Vec<u32>,
    /// Where each snapshot is in the table.
    pub(crate) snapshot_places: HashMap<Snapshot, u32>,
    position: u32,
    memory_max: Option<usize>,
    is_memory_full: Option<fn() -> bool>,
    /// Whether the columns came sorted and complete.
    adopted: bool,
    default_declared: bool,
    complete_log: bool,
    refused: Option<String>,
    /// Whether `refused` is set, for the source that is being read.
    is_refused: Arc<AtomicBool>,
}

const DENSE_KEYS_MAX: u32 = 1 << 20;
/// The key of operations that have none.
pub(crate) const NO_KEY: u32 = u32::MAX;
/// Ids at the top stand for the initial transaction and other absent things.
pub(crate) const TXNS_MAX: usize = u32::MAX as usize - 16;
/// The index keeps a flag beside the number of an operation.
pub(crate) const OPS_MAX: usize = (1 << 31) - 16;
/// Operations of one transaction between two looks at the memory they take.
const OPS_PER_LOOK: usize = 1 << 16;

impl HistoryBuilder {
    /// An empty history.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty history that refuses to grow beyond about `bytes` of memory:
    /// [`HistoryBuilder::finish`] then fails, and what comes meanwhile is ignored.
    pub fn with_memory_max(bytes: Option<usize>) -> Self {
        HistoryBuilder { memory_max: bytes, ..Self::default() }
    }

    /// The same, and refuses to grow once this is true.
    pub(crate) fn refusing_when(mut self, is_memory_full: Option<fn() -> bool>) -> Self {
        self.is_memory_full = is_memory_full;
        self
    }

    /// The table for interning keys, values and labels.
    pub fn values(&mut self) -> &mut Values {
        &mut self.columns.values
    }

    /// The key of this name.
    #[inline]
    pub fn key(&mut self, name: Value) -> KeyId {
        match self.dense_keys.get(name.bits() as usize) {
            Some(&id) if id != NO_KEY => KeyId(id),
            _ => self.new_or_sparse_key(name),
        }
    }

    /// Apart, so that the usual case is short where it is used.
    #[cold]
    fn new_or_sparse_key(&mut self, name: Value) -> KeyId {
        let bits = name.bits();
        if bits < DENSE_KEYS_MAX {
            let id = self.columns.keys.len() as u32;
            if self.dense_keys.len() <= bits as usize {
                self.dense_keys.resize(bits as usize + 1, NO_KEY);
            }
            self.dense_keys[bits as usize] = id;
            self.columns.keys.push(name);
            return KeyId(id);
        }
        let keys = &mut self.columns.keys;
        *self.sparse_keys.entry(name).or_insert_with(|| {
            keys.push(name);
            KeyId(keys.len() as u32 - 1)
        })
    }

    /// Every key that declares no initial value of its own starts with this one.
    pub fn initial_default(&mut self, value: Value) {
        self.columns.initial_default = Some(value);
    }

    /// Like [`HistoryBuilder::initial_default`], because the source says so and not
    /// merely its format: no option changes it.
    pub(crate) fn declare_initial_default(&mut self, value: Value) {
        self.initial_default(value);
        self.default_declared = true;
    }

    /// The value that the source itself declares for every key.
    pub(crate) fn declared_initial_default(&self) -> Option<Value> {
        self.columns.initial_default.filter(|_| self.default_declared)
    }

    /// `key` starts with this value. The last declaration counts.
    pub fn initial(&mut self, key: KeyId, value: Value) {
        self.columns.initial.push((key, value));
    }

    /// The session with this label, created at first mention.
    pub fn session(&mut self, label: Value) -> SessionId {
        if let Some(&session) = self.session_ids.get(&label) {
            return session;
        }
        let session = self.new_session(label);
        self.session_ids.insert(label, session);
        session
    }

    /// A new session, even if another has the same label.
    pub fn new_session(&mut self, label: Value) -> SessionId {
        let session = Session { label, endpoint: Value::NIL, origin: Value::NIL };
        self.columns.sessions.push(session);
        SessionId(self.columns.sessions.len() as u32 - 1)
    }

    /// The server that `session` talks to.
    pub fn endpoint(&mut self, session: SessionId, endpoint: Value) {
        self.columns.sessions[session.index()].endpoint = endpoint;
    }

    /// The file that `session` was recorded in.
    pub fn origin(&mut self, session: SessionId, file: Value) {
        self.columns.sessions[session.index()].origin = file;
    }

    /// Begins the next transaction of `session`, committed until said otherwise.
    /// Operations belong to it until the next `begin` or `resume`.
    pub fn begin(&mut self, session: SessionId) -> DraftTxn {
        self.refuse_if_too_large();
        if self.refused.is_some() && !self.txn_sessions.is_empty() {
            return DraftTxn(self.txn_sessions.len() as u32 - 1);
        }
        let txn = self.txn_sessions.len() as u32;
        self.txn_sessions.push(session);
        self.columns.outcomes.push(Outcome::Committed);
        self.runs.push((txn, self.columns.kinds.len() as u32));
        DraftTxn(txn)
    }

    /// Operations belong to `txn` again, after those it already has.
    pub fn resume(&mut self, txn: DraftTxn) {
        if self.runs.last().is_none_or(|run| run.0 != txn.0) {
            self.runs.push((txn.0, self.columns.kinds.len() as u32));
        }
    }

    /// How `txn` ended.
    pub fn outcome(&mut self, txn: DraftTxn, outcome: Outcome) {
        self.columns.outcomes[txn.0 as usize] = outcome;
    }

    /// What `txn` is called in its source.
    pub fn label(&mut self, txn: DraftTxn, label: Value) {
        set(&mut self.columns.labels, txn.0, label, Value::NIL);
    }

    /// What the client of `txn` was told when it failed.
    pub fn error(&mut self, txn: DraftTxn, error: Value) {
        set(&mut self.columns.errors, txn.0, error, Value::NIL);
    }

    /// First invocation and last completion of `txn`.
    pub fn interval(&mut self, txn: DraftTxn, interval: Interval) {
        set(&mut self.columns.invoked, txn.0, interval.invoked, ALWAYS);
        set(&mut self.columns.completed, txn.0, interval.completed, NEVER);
    }

    /// Begin and commit of `txn` apart.
    pub fn times(&mut self, txn: DraftTxn, times: TxnTimes) {
        let whole = Interval { invoked: times.begin.invoked, completed: times.commit.completed };
        self.interval(txn, whole);
        set(&mut self.columns.begun, txn.0, times.begin.completed, NEVER);
        set(&mut self.columns.committing, txn.0, times.commit.invoked, ALWAYS);
    }

    /// Timestamps the database gave `txn`.
    pub fn timestamps(&mut self, txn: DraftTxn, timestamps: Timestamps) {
        set(&mut self.columns.timestamps, txn.0, Some(timestamps), None);
    }

    /// Where in the source the following operations stand.
    #[inline]
    pub fn position(&mut self, position: u32) {
        self.position = position;
    }

    /// What positions count.
    pub fn position_unit(&mut self, unit: PositionUnit) {
        self.columns.unit = unit;
    }

    /// Adds an operation on one key: anything but a list read or a predicate.
    #[inline]
    pub fn op(&mut self, kind: OpKind, key: KeyId, value: Value) {
        debug_assert!(kind.has_key() && kind != OpKind::ReadList, "these have calls of their own");
        self.push(kind, key, value);
    }

    /// Adds operations of the current transaction, of which the kinds alone are known
    /// yet. [`HistoryBuilder::op_columns`] must follow before any other operation.
    #[inline]
    pub(crate) fn op_kinds(&mut self, kinds: impl ExactSizeIterator<Item = OpKind>) {
        self.columns.kinds.extend(kinds);
    }

    /// The rest of all operations added by [`HistoryBuilder::op_kinds`]: their keys, and
    /// the natural numbers that are their values. Positions count on from the last one set.
    pub(crate) fn op_columns(&mut self, keys: &[KeyId], numbers: impl Iterator<Item = u64>) {
        let Columns { values, op_keys, op_values, positions, kinds, .. } = &mut self.columns;
        op_keys.extend_from_slice(keys);
        op_values.extend(numbers.map(|number| values.unsigned(number)));
        if self.position != 0 || !positions.is_empty() {
            positions.resize(op_keys.len() - keys.len(), 0);
            positions.extend((self.position..).take(keys.len()));
        }
        assert!(kinds.len() == op_keys.len() || self.refused.is_some(), "every kind has a key");
        self.refuse_if_over_memory();
        self.refuse_if_too_many_ops();
    }

    /// Adds a read of a list.
    pub fn read_list(&mut self, key: KeyId, elements: &[Value]) {
        if self.refused.is_some() {
            return;
        }
        let number = self.lists.read(key, elements);
        self.push(OpKind::ReadList, key, Value::from_bits(number));
    }

    /// Adds a read of a list of `count` natural numbers, given as text with one space
    /// between two.
    pub(crate) fn read_list_text(&mut self, key: KeyId, text: &[u8], count: u32) {
        if self.refused.is_some() {
            return;
        }
        let number = self.lists.read_text(key, text, count, &mut self.columns.values);
        self.push(OpKind::ReadList, key, Value::from_bits(number));
    }

    /// Adds a predicate operation: [`OpKind::PredicateRead`] or
    /// [`OpKind::PredicateUpdate`].
    pub fn predicate(&mut self, kind: OpKind, predicate: Predicate) {
        assert!(!kind.has_key(), "operations on one key have calls of their own");
        if self.refused.is_some() {
            return;
        }
        self.columns.predicates.push(predicate);
        let index = Value::from_bits(self.columns.predicates.len() as u32 - 1);
        self.push(kind, KeyId(NO_KEY), index);
    }

    /// A column of the row that the last operation wrote.
    pub fn row_column(&mut self, column: Value, content: Value) {
        if let Some(last) = self.columns.kinds.len().checked_sub(1) {
            self.columns.rows.push((OpId(last as u32), column, content));
        }
    }

    /// When the last operation ran.
    pub fn op_interval(&mut self, interval: Interval) {
        if let Some(last) = self.columns.kinds.len().checked_sub(1) {
            set(&mut self.columns.op_invoked, last as u32, interval.invoked, ALWAYS);
            set(&mut self.columns.op_completed, last as u32, interval.completed, NEVER);
        }
    }

    /// Part of a key's version order.
    pub fn version_chain(&mut self, chain: VersionChain) {
        self.columns.orders.versions.push(chain);
        self.chain_positions.push(self.position);
    }

    /// Gives each number of a version that no transaction has to the next one that has: some
    /// databases number versions, and a transaction by its last.
    pub(crate) fn settle_numbers(&mut self) {
        settle_numbers(&mut self.columns.orders.versions, &self.columns.snapshots);
    }

    /// The order in which the database serialized transactions.
    pub fn total_order(&mut self, order: Vec<DraftTxn>) {
        self.total = Some(order);
    }

    /// What was asked by the operations at the current position.
    pub(crate) fn statement(&mut self, statement: Value) {
        self.columns.statements.push((self.position, statement));
    }

    /// A fault or another event beside the transactions, at the current position.
    pub fn event(&mut self, time: Option<Time>, text: String) {
        self.columns.events.push(Event { time, position: self.position, text });
    }

    /// Something noticed about the source, at the current position.
    pub fn remark(&mut self, kind: &'static str, text: String) {
        self.columns.remarks.push(Remark { kind: kind.into(), position: self.position, text });
    }

    /// Takes over the columns of a whole history, in place of anything so far.
    /// They must have all invariants of [`Columns`]; nothing can be added to them.
    pub(crate) fn adopt(&mut self, columns: Columns) {
        self.default_declared = columns.initial_default.is_some();
        self.columns = columns;
        self.adopted = true;
    }

    /// How much memory the history may take.
    pub(crate) fn memory_max(&self) -> Option<usize> {
        self.memory_max
    }

    /// Every transaction so far with the name that [`History::txn_name`] will
    /// give it, in order of appearance.
    pub(crate) fn draft_names(&self) -> impl Iterator<Item = (DraftTxn, String)> {
        let columns = &self.columns;
        let mut counts = vec![0u32; columns.sessions.len()];
        for session in &self.txn_sessions {
            counts[session.index()] += 1;
        }
        let mut places = vec![0u32; columns.sessions.len()];
        (0..).zip(&self.txn_sessions).map(move |(txn, session)| {
            let label = columns.labels.get(txn as usize).copied();
            places[session.index()] += 1;
            let place = (counts[session.index()] > 1).then_some(places[session.index()]);
            let name = history::txn_name(
                columns.values.datum(label.unwrap_or(Value::NIL)),
                columns.values.datum(columns.sessions[session.index()].label),
                place,
            );
            (DraftTxn(txn), name)
        })
    }

    /// Who wrote each value of each key so far; of several, the last one.
    pub(crate) fn writers(&self) -> HashMap<(KeyId, Value), DraftTxn> {
        let columns = &self.columns;
        let mut writers = HashMap::new();
        for (place, &(txn, start)) in self.runs.iter().enumerate() {
            let end = self.runs.get(place + 1).map_or(columns.kinds.len(), |run| run.1 as usize);
            for op in start as usize..end {
                if columns.kinds[op].is_write() {
                    let write = (columns.op_keys[op], columns.op_values[op]);
                    writers.insert(write, DraftTxn(txn));
                }
            }
        }
        writers
    }

    /// How many transactions there are so far.
    pub fn txn_count(&self) -> usize {
        self.txn_sessions.len()
    }

    /// The history, sorted and complete. Fails if it is larger than 32-bit ids or
    /// the given memory allow.
    pub fn finish(mut self, file: &str) -> Result<History, ReadError> {
        self.refuse_if_too_large();
        if let Some(reason) = self.refused {
            return Err(ReadError::new(file, reason)
                .hint("give more with --memory, or check a part of the history"));
        }
        if !self.adopted {
            self.lay_out_lists();
            self.sort_by_session();
        }
        let columns = &mut self.columns;
        if self.complete_log {
            unlogged::leave_out(columns);
        }
        // Stable, so that of several declarations for one key the last one is last.
        columns.initial.sort_by_key(|entry| entry.0);
        columns.initial.reverse();
        columns.initial.dedup_by_key(|entry| entry.0);
        columns.initial.reverse();
        let default = columns.initial_default.unwrap_or(Value::NIL);
        columns.initial.retain(|entry| entry.1 != default);
        contradictions::leave_out_contradicting_orders(columns, &self.chain_positions);
        contradictions::leave_out_repeated_numbers(columns);
        Ok(History { columns: self.columns })
    }

    #[inline]
    fn push(&mut self, kind: OpKind, key: KeyId, value: Value) {
        if self.refused.is_some() {
            return;
        }
        assert!(!self.runs.is_empty(), "an operation belongs to a transaction");
        self.columns.kinds.push(kind);
        self.columns.op_keys.push(key);
        self.columns.op_values.push(value);
        if self.position != 0 {
            set(&mut self.columns.positions, self.columns.kinds.len() as u32 - 1, self.position, 0);
        }
        if self.columns.kinds.len().is_multiple_of(OPS_PER_LOOK) {
            self.refuse_if_over_memory();
        }
        self.refuse_if_too_many_ops();
    }

    #[inline]
    fn refuse_if_too_many_ops(&mut self) {
        if self.columns.kinds.len() >= OPS_MAX {
            self.refuse("expected at most 2^31 - 16 operations, found more".into());
        }
    }

    fn refuse_if_too_large(&mut self) {
        if self.txn_sessions.len() >= TXNS_MAX {
            self.refuse("expected at most 2^32 - 16 transactions, found more".into());
        }
        // Looking costs as much as a transaction does: once in a while is enough.
        if self.txn_sessions.len().is_multiple_of(1024) {
            self.refuse_if_over_memory();
        }
    }

    fn refuse(&mut self, reason: String) {
        self.refused = Some(reason);
        self.is_refused.store(true, Ordering::Relaxed);
    }

    /// Set once the history is refused: nothing more need be read.
    pub(crate) fn refusal(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_refused)
    }

    fn refuse_if_over_memory(&mut self) {
        if let Some(bytes) = self.memory_max
            && (self.memory() > bytes || self.is_memory_full.is_some_and(|is_full| is_full()))
        {
            let (txns, size) = (self.txn_sessions.len(), memory_size(bytes));
            self.refuse(format!(
                "expected a history that fits in {size}, \
                 found one that does not after {txns} transactions"
            ));
        }
    }

    fn memory(&self) -> usize {
        let ops = self.columns.kinds.capacity();
        let op_times = self.columns.op_invoked.capacity() + self.columns.op_completed.capacity();
        ops * 13
            + op_times * 8
            + self.columns.values.memory()
            + self.lists.memory()
            + self.txn_sessions.capacity() * 64
            + self.columns.rows.capacity() * 12
            + self.columns.predicates.len() * 112
            + 2 * self.columns.snapshots.memory()
    }

    fn lay_out_lists(&mut self) {
        let lists = std::mem::take(&mut self.lists);
        (self.columns.elements, self.columns.lists) = lists.laid_out();
    }

    fn sort_by_session(&mut self) {
        let columns = &mut self.columns;
        let txns = self.txn_sessions.len();
        let op_count = columns.kinds.len() as u32;
        columns.session_txns = offsets(columns.sessions.len(), &self.txn_sessions, |s| s.index());
        let order = counting_sort(&columns.session_txns, &self.txn_sessions, |s| s.index());

        let run_starts = offsets(txns, &self.runs, |run| run.0 as usize);
        let run_order = counting_sort(&run_starts, &self.runs, |run| run.0 as usize);
        let mut ranges: Vec<(u32, u32)> = Vec::with_capacity(self.runs.len());
        columns.txn_ops = Vec::with_capacity(txns + 1);
        columns.txn_ops.push(0);
        let mut op = 0;
        for &txn in &order {
            let runs = run_starts[txn as usize]..run_starts[txn as usize + 1];
            for &run in &run_order[runs.start as usize..runs.end as usize] {
                let start = self.runs[run as usize].1;
                let end = self.runs.get(run as usize + 1).map_or(op_count, |next| next.1);
                ranges.push((start, end));
                op += end - start;
            }
            columns.txn_ops.push(op);
        }
        self.runs = Vec::new();
        self.txn_sessions = Vec::new();

        if !columns.rows.is_empty() || !columns.snapshots.of_ops.is_empty() {
            let mut moved = vec![0u32; op_count as usize];
            let finals = ranges.iter().flat_map(|&(start, end)| start..end);
            for (new, old) in finals.enumerate() {
                moved[old as usize] = new as u32;
            }
            for row in &mut columns.rows {
                row.0 = OpId(moved[row.0.index()]);
            }
            columns.rows.sort_by_key(|row| row.0);
            snapshot::move_ops(columns, &moved);
        }
        pad(&mut columns.positions, op_count as usize, 0);
        pad(&mut columns.op_invoked, op_count as usize, ALWAYS);
        pad(&mut columns.op_completed, op_count as usize, NEVER);
        // Every operation is in exactly one range, so sorted means in place already.
        if !ranges.is_sorted() {
            gather(&mut columns.kinds, &ranges);
            gather(&mut columns.op_keys, &ranges);
            gather(&mut columns.op_values, &ranges);
            gather(&mut columns.positions, &ranges);
            gather(&mut columns.op_invoked, &ranges);
            gather(&mut columns.op_completed, &ranges);
        }

        permute_txns(columns, &order);
        columns.kinds.shrink_to_fit();
        columns.op_keys.shrink_to_fit();
        columns.op_values.shrink_to_fit();
        columns.positions.shrink_to_fit();

        if let Some(total) = self.total.take() {
            let mut finals = vec![0u32; txns];
            for (new, &old) in order.iter().enumerate() {
                finals[old as usize] = new as u32;
            }
            let total = total.into_iter().map(|txn| TxnId(finals[txn.0 as usize])).collect();
            columns.orders.total = Some(total);
        }
    }
}

/// Puts what is known of each transaction in this order.
fn permute_txns(columns: &mut Columns, order: &[u32]) {
    permute(&mut columns.outcomes, order, Outcome::Committed);
    permute(&mut columns.unlogged, order, false);
    permute(&mut columns.labels, order, Value::NIL);
    permute(&mut columns.errors, order, Value::NIL);
    permute(&mut columns.invoked, order, ALWAYS);
    permute(&mut columns.completed, order, NEVER);
    permute(&mut columns.begun, order, NEVER);
    permute(&mut columns.committing, order, ALWAYS);
    permute(&mut columns.timestamps, order, None);
    permute(&mut columns.snapshots.numbers, order, NO_NUMBER);
    permute(&mut columns.snapshots.of_txns, order, NO_SNAPSHOT);
}

#[cfg(test)]
mod tests;
