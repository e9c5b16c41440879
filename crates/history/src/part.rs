//! A part of a history: some operations, and what is needed for them to mean the same.
//!
//! **What must stay true.** If the whole history satisfies a level, every part does. So a part
//! that violates a level shows why the whole does. An order that explains the whole explains a
//! part whose reads keep all their possible writers: what a read saw was the last write before
//! it, and that one is there still. For this
//!
//! - a read stays only if every write of its value to its key stays, and so does the write of
//!   its own transaction before it;
//! - a read that saw some other value stays only with all writes of its key;
//! - an element whose append goes is taken out of all lists, as if it had never been appended;
//! - a row that was read by condition goes with its write;
//! - an entry of a given order that might come to stand for another write goes;
//! - of a key that loses a write of who may count, that is in the part no more, or of which
//!   it no longer shows that it is a list, no condition tells anything but through rows it
//!   returned: if a version of it may meet the condition, the key is listed with a version
//!   never learned, and an aggregate that it may have a share in has a result never learned.
//!
//! Lists that contradict each other are the exception. They refute most levels by themselves,
//! but the session guarantees tolerate them and take no order from them; a part without the
//! contradiction has an order again.

use crate::builder::{DraftTxn, HistoryBuilder};
use crate::database_order::Named;
use crate::history::{
    History, Interval, KeyId, OpId, OpKind, SessionId, TxnId, TxnTimes, VersionChain,
};
use crate::index::Index;
use crate::predicate::{Condition, Predicate, PredicateRow};
use crate::selection::{Selection, telling, writes_of};
use crate::value::{Datum, Value};
use hashbrown::{HashMap, HashSet};

/// A part of a history, with what its ids were there.
pub struct Part {
    /// The part as a history of its own.
    pub history: History,
    /// By transaction of the part.
    pub txns: Vec<TxnId>,
    /// By operation of the part.
    pub ops: Vec<OpId>,
    /// By key of the part.
    pub keys: Vec<KeyId>,
}

impl Part {
    /// The part of `history` that `selection` keeps, which must be closed.
    pub fn new(history: &History, index: &Index, selection: &Selection) -> Part {
        let mut maker = Maker {
            history,
            index,
            selection,
            builder: HistoryBuilder::new(),
            drafts: HashMap::new(),
            keys: Vec::new(),
            txns: Vec::new(),
            thinned: Vec::new(),
            thinned_by: ThinnedBy::default(),
        };
        maker.find_thinned();
        maker.operations();
        maker.orders();
        let Maker { builder, keys, txns, .. } = maker;
        let part = builder.finish("part").expect("no larger than the whole");
        Part { history: part, txns, ops: selection.ops.clone(), keys }
    }
}

struct Maker<'a> {
    history: &'a History,
    index: &'a Index,
    selection: &'a Selection,
    builder: HistoryBuilder,
    drafts: HashMap<TxnId, DraftTxn>,
    keys: Vec<KeyId>,
    txns: Vec<TxnId>,
    /// Keys that lose a write, ascending; empty if there are no conditions.
    thinned: Vec<Thinned>,
    thinned_by: ThinnedBy,
}

/// A key that loses a write.
#[derive(Clone, Copy)]
struct Thinned {
    key: KeyId,
    /// Whether the part has an operation on it.
    is_mentioned: bool,
}

/// Keys that lose a write by numbers, so that a condition need not look at each of them; none
/// if not all are numbers.
#[derive(Default)]
struct ThinnedBy {
    name: Option<Vec<(i128, Thinned)>>,
    /// One entry for each version.
    value: Option<Vec<(i128, Thinned)>>,
}

impl ThinnedBy {
    fn new(history: &History, index: &Index, thinned: &[Thinned]) -> ThinnedBy {
        let number = |value: Value| match history.datum(value) {
            Datum::Int(number) => Some(number),
            _ => None,
        };
        let names = thinned.iter().map(|&it| Some((number(history.key_name(it.key))?, it)));
        let values = thinned.iter().flat_map(|&it| {
            let written = index.versions_of(history, it.key).iter().map(|version| version.value);
            let all = written.chain([history.initial(it.key)]);
            // Rows that do not exist meet no condition.
            let existing = all.filter(|&value| value != Value::NIL);
            existing.map(move |value| Some((number(value)?, it)))
        });
        let sorted = |mut entries: Vec<(i128, Thinned)>| {
            entries.sort_unstable_by_key(|entry| (entry.0, entry.1.key));
            entries
        };
        ThinnedBy {
            name: names.collect::<Option<_>>().map(sorted),
            value: values.collect::<Option<_>>().map(sorted),
        }
    }
}

impl Maker<'_> {
    fn find_thinned(&mut self) {
        let history = self.history;
        if !history.has_predicates() {
            return;
        }
        let mut mentioned = vec![false; history.key_count()];
        for &op in &self.selection.ops {
            if history.op(op).kind.has_key() {
                mentioned[history.op(op).key.index()] = true;
            } else {
                for row in &history.predicate(op).rows {
                    mentioned[row.key.index()] = true;
                }
            }
        }
        let mut thinned = vec![false; history.key_count()];
        for op in telling(history).filter(|&op| !self.selection.has(op)) {
            thinned[history.op(op).key.index()] = true;
        }
        // Keys that are not in the part at all lose their initial version.
        let is_lost = |key: &KeyId| {
            !mentioned[key.index()]
                && self.selection.initial.binary_search(key).is_err()
                && history.initial(*key) != Value::NIL
        };
        self.thinned = history
            .keys()
            .filter(|key| thinned[key.index()] || is_lost(key))
            .map(|key| Thinned { key, is_mentioned: mentioned[key.index()] })
            .collect();
        self.thinned_by = ThinnedBy::new(history, self.index, &self.thinned);
    }

    /// Keys that lose a write and may have a share in what a condition finds, some that have
    /// none among them where looking at all is dear; ascending.
    fn thinned_for(&self, condition: &Condition) -> Vec<Thinned> {
        let (entries, low, high) = match condition {
            Condition::KeyRange { low, high } => (&self.thinned_by.name, *low, *high),
            Condition::ValueRange { low, high } => (&self.thinned_by.value, *low, *high),
            Condition::Equals(value) => (&self.thinned_by.value, *value, *value),
            _ => (&None, Value::NIL, Value::NIL),
        };
        let bound = |value: Value, none: i128| match self.history.datum(value) {
            Datum::Int(number) => Some(number),
            Datum::Nil if !matches!(condition, Condition::Equals(_)) => Some(none),
            _ => None,
        };
        let bounds = bound(low, i128::MIN).zip(bound(high, i128::MAX));
        let (Some(entries), Some((low, high))) = (entries, bounds) else {
            return self.thinned.clone();
        };
        let start = entries.partition_point(|entry| entry.0 < low);
        let within = entries[start..].iter().take_while(|entry| entry.0 <= high);
        let mut found: Vec<Thinned> = within.map(|entry| entry.1).collect();
        found.sort_unstable_by_key(|it| it.key);
        found.dedup_by_key(|it| it.key);
        found
    }

    /// Whether a key that loses a write may have a share in what a condition finds.
    fn may_lose_a_share(&self, condition: &Condition) -> bool {
        self.thinned_for(condition).iter().any(|it| {
            let versions = self
                .index
                .versions_of(self.history, it.key)
                .iter()
                .map(|version| Some(version.op()));
            let mut all = std::iter::once(None).chain(versions);
            all.any(|write| self.history.meets(condition, it.key, write) != Some(false))
        })
    }

    fn value(&mut self, value: Value) -> Value {
        self.builder.values().intern_datum(self.history.datum(value))
    }

    fn key(&mut self, key: KeyId) -> KeyId {
        let name = self.value(self.history.key_name(key));
        let new = self.builder.key(name);
        if new.index() == self.keys.len() {
            self.keys.push(key);
            let initial = self.value(self.history.initial(key));
            self.builder.initial(new, initial);
        }
        new
    }

    fn operations(&mut self) {
        let default = self.value(self.history.initial_default());
        self.builder.initial_default(default);
        self.builder.position_unit(self.history.position_unit());
        let mut session: Option<(SessionId, SessionId)> = None;
        for txn in self.selection.txns(self.history) {
            let old = self.history.session_of(txn);
            let goes_on = session.is_some_and(|(known, _)| known == old)
                && self.selection.apart.binary_search(&txn).is_err();
            let new = match session {
                Some((_, new)) if goes_on => new,
                _ => self.session(old),
            };
            session = Some((old, new));
            self.txn(txn, new);
        }
        for &key in &self.selection.initial {
            self.key(key);
        }
    }

    fn session(&mut self, old: SessionId) -> SessionId {
        let label = self.value(self.history.session_label(old));
        let new = self.builder.new_session(label);
        let endpoint = self.value(self.history.endpoint(old));
        self.builder.endpoint(new, endpoint);
        let origin = self.value(self.history.origin(old));
        self.builder.origin(new, origin);
        new
    }

    /// The name of a transaction as a label. A name for people may have quotes around that of
    /// its session, which would become a part of it.
    fn name(&mut self, txn: TxnId) -> Value {
        let history = self.history;
        let session = history.session_of(txn);
        let range = history.session_range(session);
        match history.datum(history.session_label(session)) {
            Datum::Text(label) if range.len() > 1 => {
                let name = format!("{label}.{}", txn.0 - range.start + 1);
                self.builder.values().text(&name)
            }
            Datum::Text(label) => self.builder.values().text(label),
            _ => self.builder.values().text(&history.txn_name(txn)),
        }
    }

    fn txn(&mut self, txn: TxnId, session: SessionId) {
        let history = self.history;
        let draft = self.builder.begin(session);
        self.drafts.insert(txn, draft);
        self.txns.push(txn);
        self.builder.outcome(draft, history.outcome(txn));
        if history.is_unlogged(txn) {
            self.builder.unlogged(draft);
        }
        // Its place in its session would change, and with it its name.
        let label = match history.txn_label(txn) {
            Value::NIL => self.name(txn),
            label => self.value(label),
        };
        self.builder.label(draft, label);
        if history.error(txn) != Value::NIL {
            let error = self.value(history.error(txn));
            self.builder.error(draft, error);
        }
        if let Some(timestamps) = history.timestamps(txn) {
            self.builder.timestamps(draft, timestamps);
        }
        if let Some(number) = history.number(txn) {
            self.builder.number(draft, number);
        }
        if let Some(snapshot) = history.txn_snapshot(txn) {
            self.builder.txn_snapshot(draft, snapshot.clone());
        }
        if history.has_times() {
            let timeless = self.selection.timeless.binary_search(&txn).is_ok();
            let unknown = TxnTimes { begin: Interval::UNKNOWN, commit: Interval::UNKNOWN };
            match history.has_inner_times() {
                _ if timeless => self.builder.interval(draft, unknown.begin),
                true => self.builder.times(draft, history.txn_times(txn)),
                false => self.builder.interval(draft, history.txn_interval(txn)),
            }
        }
        let ops = &self.selection.ops;
        let range = history.op_range(txn);
        let (start, end) = (
            ops.partition_point(|op| op.0 < range.start),
            ops.partition_point(|op| op.0 < range.end),
        );
        for &op in &ops[start..end] {
            self.op(op);
        }
    }

    fn op(&mut self, op: OpId) {
        let history = self.history;
        let it = history.op(op);
        self.builder.position(history.position(op));
        match it.kind {
            OpKind::ReadList => {
                let key = self.key(it.key);
                let kept: Vec<Value> = (history.list(op).iter())
                    .filter(|&&element| {
                        self.selection.has_all_writes((self.history, self.index), it.key, element)
                    })
                    .copied()
                    .collect();
                let kept: Vec<Value> =
                    kept.into_iter().map(|element| self.value(element)).collect();
                self.builder.read_list(key, &kept);
            }
            OpKind::PredicateRead | OpKind::PredicateUpdate => {
                let predicate = self.predicate(op);
                let is_read = self.is_torn(op) || self.loses_its_list(op, &predicate);
                let kind = if is_read { OpKind::PredicateRead } else { it.kind };
                self.builder.predicate(kind, predicate);
            }
            _ => {
                let (key, value) = (self.key(it.key), self.value(it.value));
                self.builder.op(it.kind, key, value);
                let columns: Vec<(Value, Value)> = history.row(op).collect();
                for (column, content) in columns {
                    let (column, content) = (self.value(column), self.value(content));
                    self.builder.row_column(column, content);
                }
            }
        }
        if history.has_op_times() {
            self.builder.op_interval(history.op_interval(op));
        }
        if let Some(snapshot) = history.op_snapshot(op) {
            self.builder.op_snapshot(snapshot.clone());
        }
    }

    /// Whether a write that is no part of an update by condition comes to stand directly
    /// behind it. Then it is told as a read with the rows that it replaced.
    fn is_torn(&self, op: OpId) -> bool {
        let history = self.history;
        let end = op.0 + 1 + history.replaced(op).count() as u32;
        let ops = &self.selection.ops;
        let behind = ops[ops.partition_point(|&kept| kept <= op)..].iter();
        let mut behind = behind.skip_while(|kept| kept.0 < end);
        let is_in_txn = |kept: &&OpId| kept.0 < history.op_range(history.txn_of(op)).end;
        behind.next().filter(is_in_txn).is_some_and(|&kept| {
            kept.0 > end && matches!(history.op(kept).kind, OpKind::Write | OpKind::Delete)
        })
    }

    /// Whether an update listed rows of which none is left. It would seem to have listed none,
    /// and every write directly behind it, of whatever row, to be its own.
    fn loses_its_list(&self, op: OpId, left: &Predicate) -> bool {
        let lists = |predicate: &Predicate| predicate.rows.iter().any(|row| row.matched);
        lists(self.history.predicate(op)) && !lists(left)
    }

    fn predicate(&mut self, op: OpId) -> Predicate {
        let mut whole = self.history.predicate(op).clone();
        if self.is_torn(op) {
            let replaced = self.history.replaced(op);
            let row = |key| PredicateRow { key, value: Value::UNKNOWN, matched: true };
            whole.rows.extend(replaced.map(row));
        }
        let condition = match whole.condition {
            Condition::Equals(value) => Condition::Equals(self.value(value)),
            Condition::ValueRange { low, high } => {
                Condition::ValueRange { low: self.value(low), high: self.value(high) }
            }
            Condition::KeyRange { low, high } => {
                Condition::KeyRange { low: self.value(low), high: self.value(high) }
            }
            Condition::ColumnRange { column, low, high } => Condition::ColumnRange {
                column: self.value(column),
                low: self.value(low),
                high: self.value(high),
            },
            Condition::Notation(notation) => Condition::Notation(self.value(notation)),
            other @ (Condition::All | Condition::Modulo { .. }) => other,
        };
        let mut rows = whole.rows;
        rows.retain(|row| {
            self.selection.has_all_writes((self.history, self.index), row.key, row.value)
                && self.selection.has_own_write_before(self.history, op, row.key)
        });
        let is_thinned = |key: KeyId| self.thinned.binary_search_by_key(&key, |it| it.key).is_ok();
        let is_read = |row: &PredicateRow| row.matched && row.value != Value::UNKNOWN;
        rows.retain(|row| is_read(row) || !is_thinned(row.key));
        let listed: HashSet<KeyId> = rows.iter().map(|row| row.key).collect();
        // Of a key no version of which meets the condition, it was right to return none.
        let lost = self.thinned_for(&self.history.predicate(op).condition);
        let mentioned = lost.iter().filter(|it| it.is_mentioned);
        let others = mentioned.map(|it| it.key).filter(|key| !listed.contains(key));
        rows.extend(others.map(|key| PredicateRow { key, value: Value::UNKNOWN, matched: false }));
        let mut aggregate = whole.aggregate;
        if let Some(aggregate) = &mut aggregate {
            let loses = self.may_lose_a_share(&self.history.predicate(op).condition);
            aggregate.result = if loses { Value::UNKNOWN } else { self.value(aggregate.result) };
        }
        for row in &mut rows {
            (row.key, row.value) = (self.key(row.key), self.value(row.value));
        }
        Predicate { condition, rows, aggregate }
    }

    fn orders(&mut self) {
        let history = self.history;
        let orders = history.orders();
        let places: HashMap<KeyId, usize> =
            self.keys.iter().enumerate().map(|(place, &key)| (key, place)).collect();
        for chain in &orders.versions {
            let Some(&place) = places.get(&chain.key) else { continue };
            let writes_of = |value| writes_of((history, self.index), chain.key, value).collect();
            let named = chain.named(history, &writes_of);
            let keeps_all = self
                .index
                .versions_of(self.history, chain.key)
                .iter()
                .all(|it| self.selection.has(it.op()));
            let is_kept = |place: usize| {
                let value = chain.values[place];
                let written = writes_of(value);
                written.iter().all(|&op| self.selection.has(op))
                    && stays_named(history, (chain, &named), (value, &written), keeps_all)
            };
            let kept = chain.keeping(is_kept);
            let values = kept.values.iter().map(|&value| self.value(value)).collect();
            let key = KeyId(place as u32);
            self.builder.version_chain(VersionChain { key, values, ..kept });
        }
        if let Some(total) = &orders.total {
            let order = total.iter().filter_map(|txn| self.drafts.get(txn).copied()).collect();
            self.builder.total_order(order);
        }
    }
}

/// Whether the entries of a value, which these operations wrote, stand for the same in a part that
/// keeps the writes of the value, and of the key or not. What was open might seem to be told where
/// less is known, and what the entry before told, another one that comes to stand there tells
/// otherwise.
fn stays_named(
    history: &History,
    (chain, named): (&VersionChain, &[Named]),
    (value, written): (Value, &[OpId]),
    keeps_all: bool,
) -> bool {
    let is_initial = history.initial(chain.key) == value;
    match written.len() {
        0 => return is_initial,
        1 if !is_initial => return true,
        _ => {}
    }
    let mut entries = (0..named.len()).filter(|&place| chain.values[place] == value);
    entries.all(|place| match named[place] {
        Named::Write(op) => {
            let number = history.number(history.txn_of(op));
            keeps_all || (number.is_some() && number == chain.number(place))
        }
        Named::Initial => true,
        Named::Open | Named::Nobody => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{parse_text, to_text};

    #[test]
    fn names_with_quotes_stay_what_they_are() {
        let history =
            parse_text("\"]]>\": w(x,1)\n\"a b\": w(x,2)\n\"a b\": r(x,1)\n").expect("a text");
        let part = Part::new(&history, &Index::new(&history), &Selection::all(&history)).history;
        let text = "# isolde-history 1\n\"]]>\"/\"]]>\": w(x,1)\n\
                    \"a b\"/\"a b.1\": w(x,2)\n\"a b\"/\"a b.2\": r(x,1)\n";
        assert_eq!(to_text(&part), text);
        let again = Part::new(&part, &Index::new(&part), &Selection::all(&part)).history;
        assert_eq!(to_text(&again), text);
    }
}
