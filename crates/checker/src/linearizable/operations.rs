//! What a history's transactions do, each at once, to single objects.
//!
//! An object is a register, a text that a store puts, gets and appends to, or a
//! lock. A transaction is one operation on one object if it has one operation, or
//! reads a register and then writes it: a compare-and-set. A lock is a register that
//! `acquire` sets from free to held and `release` back.
//!
//! Transactions of unknown outcome may have taken effect, at any time since they
//! were sent; what they would have read imposes nothing. Reads whose result was
//! never learned impose nothing either, but have a place in real time and in their
//! session.

use hashbrown::HashMap;
use isolde_history::{
    Datum, History, Interval, KeyId, NEVER, Op, OpId, OpKind, Outcome, Time, Tree, TxnId, Value,
};

/// The content of an object. Of a register these are the bits of a value, of a store
/// the number of a text.
pub(super) type Content = u32;

/// What an operation does to its object, and what it saw of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Action {
    /// Nothing that matters.
    Nothing,
    /// It saw this.
    Read(Content),
    /// It saw something else than this.
    ReadOther(Content),
    /// It left this.
    Write(Content),
    /// It saw one thing and left another.
    Replace { old: Content, new: Content },
    /// It put this text at the end of what was there.
    Append(Content),
}

impl Action {
    /// What the operation saw.
    pub(super) fn seen(self) -> Option<Content> {
        match self {
            Action::Read(content) | Action::Replace { old: content, .. } => Some(content),
            _ => None,
        }
    }

    /// What it left, where that does not depend on what was there.
    pub(super) fn left(self) -> Option<Content> {
        match self {
            Action::Write(content) | Action::Replace { new: content, .. } => Some(content),
            _ => None,
        }
    }

    /// Whether the object stays as it is.
    pub(super) fn is_read(self) -> bool {
        matches!(self, Action::Nothing | Action::Read(_) | Action::ReadOther(_))
    }
}

/// A transaction as one operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) txn: TxnId,
    /// Its last operation in the history.
    pub(super) op: OpId,
    pub(super) object: usize,
    pub(super) action: Action,
    pub(super) invoked: Time,
    /// Never, if the outcome is not known. The bound on clock drift is added already.
    pub(super) completed: Time,
    /// Whether it certainly took effect.
    pub(super) is_certain: bool,
}

/// What an object is called, and what it holds at first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    pub(super) initial: Content,
    /// Where messages say the operations are.
    pub(super) key: KeyId,
}

/// What a read that returned nil saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NilReads {
    /// The register was absent.
    #[default]
    Absent,
    /// The client does not know: Knossos's reading.
    NotKnown,
}

/// Everything that took or may have taken effect.
#[derive(Default)]
pub(super) struct Operations {
    pub(super) all: Vec<Operation>,
    pub(super) objects: Vec<Object>,
    pub(super) texts: Texts,
    by_name: HashMap<Name, usize>,
}

#[derive(PartialEq, Eq, Hash)]
enum Name {
    Register(KeyId),
    Store(String),
    Lock,
}

impl Operations {
    /// The operations of a history in which every transaction is one; `None` if one
    /// is not, or is of another kind.
    pub(super) fn of(history: &History, nil_reads: NilReads, drift: Time) -> Option<Operations> {
        let mut operations = Operations::default();
        for txn in history.txns() {
            let outcome = history.outcome(txn);
            if outcome == Outcome::Aborted {
                continue;
            }
            let ops: Vec<OpId> = history.ops_of(txn).collect();
            let (object, action) = match *ops {
                [] => (None, Action::Nothing),
                [op] => operations.single(history, op, nil_reads)?,
                [read, write] => operations.replacement(history, read, write)?,
                _ => return None,
            };
            let is_certain = outcome == Outcome::Committed;
            if !is_certain && action.is_read() {
                continue;
            }
            let Interval { invoked, completed } = history.txn_interval(txn);
            let ends = is_certain && completed != NEVER;
            operations.all.push(Operation {
                txn,
                op: ops.last().copied().unwrap_or(OpId(u32::MAX)),
                object: object.unwrap_or(usize::MAX),
                action,
                invoked,
                completed: if ends { completed.max(invoked).saturating_add(drift) } else { NEVER },
                is_certain,
            });
        }
        Some(operations)
    }

    fn single(
        &mut self,
        history: &History,
        op: OpId,
        nil_reads: NilReads,
    ) -> Option<(Option<usize>, Action)> {
        let Op { kind, key, value } = history.op(op);
        let content = value.bits();
        let action = match kind {
            OpKind::Read if value == Value::UNKNOWN => return Some((None, Action::Nothing)),
            OpKind::Read if value == Value::NIL && nil_reads == NilReads::NotKnown => {
                return Some((None, Action::Nothing));
            }
            OpKind::Read => Action::Read(content),
            OpKind::ReadOther => Action::ReadOther(content),
            OpKind::Write | OpKind::Insert | OpKind::Delete if value != Value::UNKNOWN => {
                Action::Write(content)
            }
            OpKind::Call => return self.call(history, op),
            _ => return None,
        };
        Some((Some(self.register(history, key)?), action))
    }

    fn replacement(
        &mut self,
        history: &History,
        read: OpId,
        write: OpId,
    ) -> Option<(Option<usize>, Action)> {
        let (seen, left) = (history.op(read), history.op(write));
        let is_one = seen.kind == OpKind::Read
            && matches!(left.kind, OpKind::Write | OpKind::Insert | OpKind::Delete)
            && seen.key == left.key
            && left.value != Value::UNKNOWN;
        if !is_one {
            return None;
        }
        let new = left.value.bits();
        let action = match seen.value {
            Value::UNKNOWN => Action::Write(new),
            old => Action::Replace { old: old.bits(), new },
        };
        Some((Some(self.register(history, seen.key)?), action))
    }

    fn call(&mut self, history: &History, op: OpId) -> Option<(Option<usize>, Action)> {
        const FREE: Content = 0;
        const HELD: Content = 1;
        let Op { key, value, .. } = history.op(op);
        let Datum::Keyword(function) = history.datum(history.key_name(key)) else { return None };
        match function {
            "acquire" | "release" => {
                let object = self.object(Name::Lock, Object { initial: FREE, key });
                let (old, new) = if function == "acquire" { (FREE, HELD) } else { (HELD, FREE) };
                Some((Some(object), Action::Replace { old, new }))
            }
            "get" | "put" | "append" => {
                let Tree::Sequence(parts) = Tree::of(history.datum(value)) else { return None };
                let [name, content] = parts.try_into().ok()?;
                let is_certain = history.outcome(history.txn_of(op)) == Outcome::Committed;
                let content = match content {
                    Tree::Text(text) => self.texts.number(&text),
                    Tree::Nil if !is_certain => return Some((None, Action::Nothing)),
                    _ => return None,
                };
                let initial = self.texts.number("");
                let object = self.object(Name::Store(name.to_string()), Object { initial, key });
                let action = match function {
                    "get" => Action::Read(content),
                    "put" => Action::Write(content),
                    _ => Action::Append(content),
                };
                Some((Some(object), action))
            }
            _ => None,
        }
    }

    fn register(&mut self, history: &History, key: KeyId) -> Option<usize> {
        let initial = history.initial(key);
        if initial == Value::UNKNOWN {
            return None;
        }
        Some(self.object(Name::Register(key), Object { initial: initial.bits(), key }))
    }

    fn object(&mut self, name: Name, object: Object) -> usize {
        *self.by_name.entry(name).or_insert_with(|| {
            self.objects.push(object);
            self.objects.len() - 1
        })
    }
}

/// Texts of stores, numbered in the order they were met.
#[derive(Default)]
pub(super) struct Texts {
    contents: Vec<String>,
    numbers: HashMap<String, Content>,
    appended: HashMap<(Content, Content), Content>,
}

impl Texts {
    fn number(&mut self, text: &str) -> Content {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.contents.len() as Content;
        self.contents.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    /// A text by its number.
    pub(super) fn text(&self, content: Content) -> &str {
        &self.contents[content as usize]
    }

    /// The text that appending makes.
    pub(super) fn append(&mut self, content: Content, end: Content) -> Content {
        if let Some(&known) = self.appended.get(&(content, end)) {
            return known;
        }
        let whole = format!("{}{}", self.contents[content as usize], self.contents[end as usize]);
        let number = self.number(&whole);
        self.appended.insert((content, end), number);
        number
    }

    /// Bytes of memory that the texts hold.
    pub(super) fn memory(&self) -> usize {
        self.contents.iter().map(|text| 2 * text.len() + 96).sum()
    }
}
