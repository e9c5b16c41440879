//! What the values of Jepsen's operations mean.
//!
//! A value is a transaction of small operations, an operation on a register, a
//! result of a key-value store, or something only its test understands. Three
//! things cannot be told from one operation alone: whether `nil` is an absent
//! register or an empty list, whether `:read` reads a register or a bank, and
//! whether a store appends. Transactions that depend on such a thing wait until
//! some other one settles it, or the source ends.

use super::meaning::{Draft, Function, Meaning, RefusedSet, meaning};
use super::{Kept, Step, View};
use crate::builder::{DraftTxn, HistoryBuilder};
use crate::error::{Place, ReadError};
use crate::format::form::{Form, Node};
use crate::history::{Interval, KeyId, OpKind, Outcome};
use crate::predicate::{Condition, Predicate, PredicateRow};
use crate::value::Value;
use std::collections::VecDeque;

/// What `nil` is, or what a function does, as far as it is settled.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Unsettled,
    Register,
    /// A list where reads are concerned, a call where functions are.
    Other,
}

impl Kind {
    fn settle(&mut self, kind: Kind) {
        if *self == Kind::Unsettled {
            *self = kind;
        }
    }
}

/// Turns values into operations of a builder.
pub(crate) struct Understanding {
    file: String,
    refused_set: RefusedSet,
    /// What `nil` is to a read in a transaction.
    reads: Kind,
    /// What `:read`, `:write` and `:cas` are.
    functions: Kind,
    /// What `:get` and `:put` are: calls as soon as there is one `:append`.
    store: Kind,
    has_store: bool,
    waiting: VecDeque<(Draft, Kept)>,
    orders: Vec<(DraftTxn, Interval)>,
    /// Per key, what its writes and results showed it to be.
    key_kinds: Vec<Kind>,
    elements: Vec<Value>,
}

impl Understanding {
    pub(crate) fn new(file: &str, refused_set: RefusedSet) -> Self {
        Understanding {
            file: file.to_owned(),
            refused_set,
            reads: Kind::Unsettled,
            functions: Kind::Unsettled,
            store: Kind::Unsettled,
            has_store: false,
            waiting: VecDeque::new(),
            orders: Vec::new(),
            key_kinds: Vec::new(),
            elements: Vec::new(),
        }
    }

    /// Adds a transaction, now or when it can be understood.
    pub(crate) fn take(
        &mut self,
        builder: &mut HistoryBuilder,
        draft: Draft,
        view: View<'_>,
    ) -> Result<(), ReadError> {
        let meaning = meaning(&draft, view);
        self.learn(meaning, view);
        if self.waiting.is_empty() && !self.must_wait(meaning) {
            return self.emit(builder, &draft, view, meaning);
        }
        self.waiting.push_back((draft, Kept::new(view)));
        self.emit_waiting(builder)
    }

    /// Adds what still waits. `order_is_time` says that the order of records is
    /// all that is known about time.
    pub(crate) fn finish(
        &mut self,
        builder: &mut HistoryBuilder,
        order_is_time: bool,
    ) -> Result<(), ReadError> {
        self.reads.settle(Kind::Register);
        self.functions.settle(Kind::Register);
        self.store.settle(Kind::Register);
        self.emit_waiting(builder)?;
        if self.has_store && self.store == Kind::Register {
            let empty = builder.values().text("");
            builder.initial_default(empty);
        }
        if order_is_time {
            for &(txn, interval) in &self.orders {
                builder.interval(txn, interval);
            }
        }
        Ok(())
    }

    /// Settles what this operation shows. The first that shows something counts.
    #[inline]
    fn learn(&mut self, meaning: Meaning, view: View<'_>) {
        match meaning {
            Meaning::Txn if self.reads == Kind::Unsettled => {
                for mop in view.value().members() {
                    self.reads.settle(shown_by(mop));
                }
            }
            Meaning::Register(Function::Read) => {
                let value = view.value();
                let is_pair = value.is_sequence() && value.members().count() == 2;
                if matches!(value.node(), Node::Open(..)) && !is_pair {
                    self.functions.settle(Kind::Other);
                }
            }
            Meaning::Register(_) => self.functions.settle(Kind::Register),
            Meaning::Store(Function::Append) => self.store.settle(Kind::Other),
            Meaning::Call => self.functions.settle(Kind::Other),
            Meaning::Txn | Meaning::Store(_) | Meaning::Init => {}
        }
    }

    #[inline]
    fn must_wait(&self, meaning: Meaning) -> bool {
        let depends_on = match meaning {
            Meaning::Txn => self.reads,
            Meaning::Register(_) => self.functions,
            Meaning::Store(_) => self.store,
            Meaning::Init | Meaning::Call => return false,
        };
        depends_on == Kind::Unsettled
    }

    fn emit_waiting(&mut self, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
        while let Some((draft, kept)) = self.waiting.front() {
            let meaning = meaning(draft, kept.view());
            if self.must_wait(meaning) {
                break;
            }
            if let Some((draft, kept)) = self.waiting.pop_front() {
                self.emit(builder, &draft, kept.view(), meaning)?;
            }
        }
        Ok(())
    }

    fn emit(
        &mut self,
        builder: &mut HistoryBuilder,
        draft: &Draft,
        view: View<'_>,
        meaning: Meaning,
    ) -> Result<(), ReadError> {
        builder.position(draft.line);
        if meaning == Meaning::Init {
            declare_initial(builder, view.value());
            return Ok(());
        }
        let txn = builder.begin(draft.session);
        match draft.step {
            Step::Ok => {}
            Step::Fail => builder.outcome(txn, Outcome::Aborted),
            Step::Info | Step::Invoke => builder.outcome(txn, Outcome::Unknown),
        }
        if draft.label != Value::NIL {
            builder.label(txn, draft.label);
        }
        if draft.error != Value::NIL {
            builder.error(txn, draft.error);
        }
        if draft.interval != Interval::UNKNOWN {
            builder.interval(txn, draft.interval);
        }
        match draft.order {
            Some(order) => self.orders.push((txn, order)),
            None => self.orders.clear(),
        }
        match meaning {
            Meaning::Txn => self.txn(builder, draft, view.value()),
            Meaning::Register(function) if self.functions == Kind::Register => {
                self.register(builder, (draft, txn), view.value(), function)
            }
            Meaning::Store(function) => {
                self.store(builder, draft, view, function);
                Ok(())
            }
            Meaning::Register(_) | Meaning::Call | Meaning::Init => {
                call(builder, draft, view.value());
                Ok(())
            }
        }
    }

    fn txn(
        &mut self,
        builder: &mut HistoryBuilder,
        draft: &Draft,
        value: Form<'_>,
    ) -> Result<(), ReadError> {
        for mop in value.members() {
            let mut parts = mop.members();
            let word = parts.next().and_then(Form::word).unwrap_or_default();
            let (first, second, rest) = (parts.next(), parts.next(), parts.next());
            let is_done = draft.step == Step::Ok;
            match (word, first, second, rest) {
                (b"append", Some(key), Some(element), None) => {
                    let (key, kind) = self.key(builder, key);
                    *kind = Kind::Other;
                    let element = element.value(builder.values());
                    builder.op(OpKind::Append, key, element);
                }
                (b"r" | b"read", Some(key), value, None) if value.is_some() || !is_done => {
                    if let Some(value) = value.filter(|_| is_done) {
                        self.read(builder, key, value);
                    } else {
                        let (key, _) = self.key(builder, key);
                        builder.op(OpKind::Read, key, Value::UNKNOWN);
                    }
                }
                (b"w" | b"write", Some(key), Some(value), None) => {
                    self.write(builder, OpKind::Write, key, value);
                }
                (b"insert", Some(key), Some(value), None) => {
                    self.write(builder, OpKind::Insert, key, value);
                }
                (b"delete", Some(key), None, None) => {
                    let (key, _) = self.key(builder, key);
                    builder.op(OpKind::Delete, key, Value::NIL);
                }
                (b"rp", Some(condition), Some(rows), None) if is_done => {
                    let predicate = predicate(builder, condition, rows);
                    builder.predicate(OpKind::PredicateRead, predicate);
                }
                _ => self.other_mop(builder, draft, mop, word)?,
            }
        }
        Ok(())
    }

    /// A small operation that is none of the known ones is a call; a known one of
    /// the wrong length is a mistake.
    fn other_mop(
        &self,
        builder: &mut HistoryBuilder,
        draft: &Draft,
        mop: Form<'_>,
        word: &[u8],
    ) -> Result<(), ReadError> {
        let expected = match word {
            b"append" => "`[:append key element]`",
            b"r" | b"read" => "`[:r key value]`",
            b"w" | b"write" => "`[:w key value]`",
            b"insert" => "`[:insert key value]`",
            b"delete" => "`[:delete key]`",
            b"rp" if draft.step == Step::Ok => "`[:rp condition {key value}]`",
            b"" => "an operation like `[:r key value]`",
            _ => {
                let name = builder.values().keyword(&String::from_utf8_lossy(word));
                let key = builder.key(name);
                let value = builder.values().other(&mop.notation());
                builder.op(OpKind::Call, key, value);
                return Ok(());
            }
        };
        Err(self.error(draft, expected, mop))
    }

    /// The key of this name, and what is known about it.
    #[inline]
    fn key(&mut self, builder: &mut HistoryBuilder, name: Form<'_>) -> (KeyId, &mut Kind) {
        let name = name.value(builder.values());
        let key = builder.key(name);
        if self.key_kinds.len() <= key.index() {
            self.key_kinds.resize(key.index() + 1, Kind::Unsettled);
        }
        (key, &mut self.key_kinds[key.index()])
    }

    #[inline]
    fn write(
        &mut self,
        builder: &mut HistoryBuilder,
        kind: OpKind,
        key: Form<'_>,
        value: Form<'_>,
    ) {
        let (key, known) = self.key(builder, key);
        known.settle(Kind::Register);
        let value = value.value(builder.values());
        builder.op(kind, key, value);
    }

    #[inline]
    fn read(&mut self, builder: &mut HistoryBuilder, key: Form<'_>, value: Form<'_>) {
        let reads = self.reads;
        let (key, known) = self.key(builder, key);
        // In a history of both, a key is what its own operations show.
        let is_list = match *known {
            Kind::Unsettled => reads == Kind::Other,
            Kind::Register => false,
            Kind::Other => true,
        };
        if is_list && value.is_nil() {
            builder.read_list(key, &[]);
        } else if is_list && let Some((text, count)) = value.numbers() {
            *known = Kind::Other;
            builder.read_list_text(key, text, count);
        } else if is_list && value.is_sequence() {
            *known = Kind::Other;
            self.elements.clear();
            value.member_values(builder.values(), &mut self.elements);
            builder.read_list(key, &self.elements);
        } else {
            if !value.is_nil() {
                known.settle(Kind::Register);
            }
            let value = value.value(builder.values());
            builder.op(OpKind::Read, key, value);
        }
    }

    fn register(
        &mut self,
        builder: &mut HistoryBuilder,
        (draft, txn): (&Draft, DraftTxn),
        value: Form<'_>,
        function: Function,
    ) -> Result<(), ReadError> {
        let is_done = draft.step == Step::Ok;
        let (name, value) = match (pair(value), function) {
            (Some((key, inner)), Function::CompareAndSet) if pair(inner).is_some() => {
                (Some(key), inner)
            }
            (Some((key, inner)), Function::Read | Function::Write) => (Some(key), inner),
            _ => (None, value),
        };
        let name = match name {
            Some(name) => name.value(builder.values()),
            None => builder.values().keyword("register"),
        };
        let key = builder.key(name);
        match function {
            Function::Read if is_done => {
                let value = value.value(builder.values());
                builder.op(OpKind::Read, key, value);
            }
            Function::Read => builder.op(OpKind::Read, key, Value::UNKNOWN),
            Function::CompareAndSet => {
                let Some((old, new)) = pair(value) else {
                    if value.is_nil() && !is_done {
                        return Ok(());
                    }
                    return Err(self.error(draft, "`[old new]` or `[key [old new]]`", value));
                };
                let old = old.value(builder.values());
                let new = new.value(builder.values());
                let is_refused = draft.step == Step::Fail
                    && draft.error == Value::NIL
                    && self.refused_set == RefusedSet::AnotherValue;
                if is_refused {
                    builder.outcome(txn, Outcome::Committed);
                    builder.op(OpKind::ReadOther, key, old);
                    return Ok(());
                }
                // If one of unknown outcome took effect, it saw what it asked for:
                // without this, a history of etcd that is not linearizable is.
                if draft.step != Step::Fail {
                    builder.op(OpKind::Read, key, old);
                }
                builder.op(OpKind::Write, key, new);
            }
            _ => {
                let value = value.value(builder.values());
                builder.op(OpKind::Write, key, value);
            }
        }
        Ok(())
    }

    fn store(
        &mut self,
        builder: &mut HistoryBuilder,
        draft: &Draft,
        view: View<'_>,
        function: Function,
    ) {
        self.has_store = true;
        let name = view.key().value(builder.values());
        let is_done = draft.step == Step::Ok;
        match function {
            Function::Get | Function::Put if self.store == Kind::Register => {
                let key = builder.key(name);
                let value = view.value().value(builder.values());
                match function {
                    Function::Put => builder.op(OpKind::Write, key, value),
                    _ if is_done => builder.op(OpKind::Read, key, value),
                    _ => builder.op(OpKind::Read, key, Value::UNKNOWN),
                }
            }
            _ => {
                let notation = format!("[{} {}]", view.key().notation(), view.value().notation());
                let name = function.name(builder.values());
                let key = builder.key(name);
                let value = builder.values().other(&notation);
                builder.op(OpKind::Call, key, value);
            }
        }
    }

    fn error(&self, draft: &Draft, expected: &str, found: Form<'_>) -> ReadError {
        let place = Place::Line(u64::from(draft.line));
        ReadError::expected(&self.file, place, expected, found.notation().as_bytes())
    }
}

/// What an operation of a transaction shows about `nil`.
fn shown_by(mop: Form<'_>) -> Kind {
    let mut parts = mop.members();
    let word = parts.next().and_then(Form::word).unwrap_or_default();
    let value = parts.nth(1);
    match (word, value) {
        (b"append", _) => Kind::Other,
        (b"w" | b"write" | b"insert" | b"delete" | b"rp", _) => Kind::Register,
        (_, Some(value)) if value.is_sequence() => Kind::Other,
        (_, Some(value)) if !value.is_nil() => Kind::Register,
        _ => Kind::Unsettled,
    }
}

/// The members of a sequence of two.
fn pair(form: Form<'_>) -> Option<(Form<'_>, Form<'_>)> {
    let mut members = form.members();
    let pair = (members.next()?, members.next()?);
    (form.is_sequence() && members.next().is_none()).then_some(pair)
}

fn declare_initial(builder: &mut HistoryBuilder, map: Form<'_>) {
    let mut members = map.members();
    while let (Some(name), Some(value)) = (members.next(), members.next()) {
        let name = name.value(builder.values());
        let value = value.value(builder.values());
        let key = builder.key(name);
        builder.initial(key, value);
    }
}

fn predicate(builder: &mut HistoryBuilder, condition: Form<'_>, rows: Form<'_>) -> Predicate {
    let condition = match (condition.word(), pair(condition)) {
        (Some(b"true"), _) => Condition::All,
        (_, Some((name, value))) if name.word() == Some(b"=") => {
            Condition::Equals(value.value(builder.values()))
        }
        _ => modulo(condition)
            .unwrap_or_else(|| Condition::Notation(condition.value(builder.values()))),
    };
    let mut returned = Vec::new();
    let mut members = rows.members();
    while let (Some(name), Some(value)) = (members.next(), members.next()) {
        let name = name.value(builder.values());
        returned.push(PredicateRow {
            value: value.value(builder.values()),
            key: builder.key(name),
            matched: true,
        });
    }
    Predicate { condition, rows: returned, aggregate: None }
}

fn modulo(condition: Form<'_>) -> Option<Condition> {
    let mut parts = condition.members();
    let is_modulo = parts.next()?.word() == Some(b"mod");
    let mut number = || match parts.next()?.node() {
        Node::Int(number) => u64::try_from(number).ok(),
        _ => None,
    };
    let (modulus, remainder) = (number()?, number()?);
    (is_modulo && modulus > 0).then_some(Condition::Modulo { modulus, remainder })
}

fn call(builder: &mut HistoryBuilder, draft: &Draft, value: Form<'_>) {
    let name = match draft.function {
        Some(function) => function.name(builder.values()),
        None => builder.values().keyword("call"),
    };
    let key = builder.key(name);
    let value = value.value(builder.values());
    builder.op(OpKind::Call, key, value);
}
