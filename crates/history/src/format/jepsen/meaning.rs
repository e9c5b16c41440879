//! What an operation of Jepsen is, judged by its function and the shape of its value.

use super::{Step, View};
use crate::format::form::Node;
use crate::history::{Interval, SessionId};
use crate::value::{Value, Values};

/// A transaction before its operations.
#[derive(Clone, Copy)]
pub(crate) struct Draft {
    pub(crate) session: SessionId,
    pub(crate) step: Step,
    pub(crate) line: u32,
    pub(crate) label: Value,
    pub(crate) error: Value,
    pub(crate) function: Option<Function>,
    pub(crate) interval: Interval,
    /// From the record that sent it to the one that ended it, counted in records;
    /// absent as soon as some record has a time.
    pub(crate) order: Option<Interval>,
}

/// The function an operation names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Txn,
    Read,
    Write,
    CompareAndSet,
    Init,
    Get,
    Put,
    Append,
    Named(Value),
}

impl Function {
    #[inline]
    pub(crate) fn of(view: View<'_>, values: &mut Values) -> Option<Function> {
        let form = view.function();
        Some(match form.word() {
            None if form.is_nil() => return None,
            None => Function::Named(form.value(values)),
            Some(b"txn") => Function::Txn,
            Some(b"read") => Function::Read,
            Some(b"write") => Function::Write,
            Some(b"cas") => Function::CompareAndSet,
            Some(b"init") => Function::Init,
            Some(b"get") => Function::Get,
            Some(b"put") => Function::Put,
            Some(b"append") => Function::Append,
            Some(name) => Function::Named(values.keyword(&String::from_utf8_lossy(name))),
        })
    }

    /// The function's name as a value.
    pub(crate) fn name(self, values: &mut Values) -> Value {
        values.keyword(match self {
            Function::Txn => "txn",
            Function::Read => "read",
            Function::Write => "write",
            Function::CompareAndSet => "cas",
            Function::Init => "init",
            Function::Get => "get",
            Function::Put => "put",
            Function::Append => "append",
            Function::Named(name) => return name,
        })
    }
}

/// What a compare-and-set that failed tells.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RefusedSet {
    /// That it did not happen, for whatever reason.
    #[default]
    Nothing,
    /// That the register held another value.
    AnotherValue,
}

/// What an operation is, judged by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Txn,
    Register(Function),
    Store(Function),
    Init,
    Call,
}

/// What an operation is.
#[inline]
pub(crate) fn meaning(draft: &Draft, view: View<'_>) -> Meaning {
    let value = view.value();
    let first = value.members().next().filter(|_| value.is_sequence());
    let first_word =
        first.filter(|first| first.is_sequence()).and_then(|first| first.members().next());
    if let Some(word) = first_word {
        let is_mop = match word.node() {
            Node::Keyword(_) => true,
            Node::Text(_) => word.word().is_some_and(is_mop_name),
            _ => false,
        };
        if is_mop {
            return Meaning::Txn;
        }
    }
    match draft.function {
        Some(Function::Txn) if first.is_none() && (value.is_nil() || value.is_sequence()) => {
            Meaning::Txn
        }
        Some(Function::Init) if value.is_map() && draft.step == Step::Ok => Meaning::Init,
        Some(function @ (Function::Get | Function::Put | Function::Append))
            if !view.key().is_nil() =>
        {
            Meaning::Store(function)
        }
        Some(function @ (Function::Read | Function::Write | Function::CompareAndSet)) => {
            Meaning::Register(function)
        }
        _ => Meaning::Call,
    }
}

/// Whether a small operation of this name has a meaning of its own.
pub(crate) fn is_mop_name(word: &[u8]) -> bool {
    [&b"append"[..], b"r", b"w", b"read", b"write", b"insert", b"delete", b"rp"].contains(&word)
}
