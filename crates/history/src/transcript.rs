//! A history put together by hand: what each client did, transaction by transaction.
//!
//! This is for tests of databases and for examples. A reader of a format fills a
//! [`HistoryBuilder`] instead, which interns each name once and takes the operations of several
//! transactions in turns.

use crate::builder::HistoryBuilder;
use crate::error::ReadError;
use crate::format::{self, ReadOptions};
use crate::history::{History, Interval, OpKind, Outcome, PositionUnit, Time};
use crate::value::{Datum, Value, Values};
use std::path::Path;

/// Transactions in the order in which each client ran them.
///
/// ```
/// use isolde_history::{History, Txn};
///
/// let mut history = History::builder();
/// history.initial(0);
/// history.commit(Txn::of("alice").read("x", 0).write("x", 1));
/// history.abort(Txn::of("bob").read("x", 1).write("y", 2));
/// let history = history.finish()?;
/// assert_eq!((history.txn_count(), history.session_count()), (2, 2));
/// # Ok::<(), isolde_history::ReadError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    txns: Vec<(Txn, Outcome)>,
    initial: Option<Content>,
}

/// One transaction: what its client did, in program order.
#[derive(Clone, Debug)]
pub struct Txn {
    session: Content,
    label: Option<String>,
    interval: Interval,
    operations: Vec<(Content, Action)>,
}

/// A key, a value or the name of a client: a number, a text, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// No value: what a key has before anybody wrote it.
    #[default]
    Nil,
    /// A number.
    Int(i128),
    /// A text.
    Text(String),
}

#[derive(Clone, Debug)]
enum Action {
    Read(Content),
    Write(Content),
    Append(Content),
    ReadList(Vec<Content>),
}

impl History {
    /// A history that is put together by hand.
    pub fn builder() -> Transcript {
        Transcript::default()
    }

    /// Reads a history from a file or a folder, in whichever of the [formats](mod@format) it is.
    pub fn from_path(path: impl AsRef<Path>) -> Result<History, ReadError> {
        let input = format::open(path.as_ref())?;
        Ok(format::read_detected(input, ReadOptions::default())?.0)
    }
}

impl Transcript {
    /// What every key holds before anybody wrote it; [`Content::Nil`] if nothing is said.
    pub fn initial(&mut self, value: impl Into<Content>) {
        self.initial = Some(value.into());
    }

    /// Adds a transaction that the database confirmed.
    pub fn commit(&mut self, txn: Txn) {
        self.txns.push((txn, Outcome::Committed));
    }

    /// Adds a transaction that the database refused, or that its client rolled back.
    pub fn abort(&mut self, txn: Txn) {
        self.txns.push((txn, Outcome::Aborted));
    }

    /// Adds a transaction of which its client never learned how it ended.
    pub fn unknown(&mut self, txn: Txn) {
        self.txns.push((txn, Outcome::Unknown));
    }

    /// The history. It fails only if there is more of it than a history can hold.
    pub fn finish(self) -> Result<History, ReadError> {
        let mut builder = HistoryBuilder::new();
        if let Some(initial) = &self.initial {
            let initial = initial.interned(builder.values());
            builder.initial_default(initial);
        }
        // A report cites them by their numbers.
        builder.position_unit(PositionUnit::Record);
        for (number, (txn, outcome)) in (1..).zip(&self.txns) {
            builder.position(number);
            txn.add_to(&mut builder, *outcome);
        }
        builder.finish("history")
    }
}

impl Txn {
    /// The next transaction of this client. Each client runs one after another.
    pub fn of(session: impl Into<Content>) -> Txn {
        let (session, operations) = (session.into(), Vec::new());
        Txn { session, label: None, interval: Interval::UNKNOWN, operations }
    }

    /// What reports call it, if not by its client and number.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Txn {
        Txn { label: Some(name.into()), ..self }
    }

    /// When its client sent the first request and had the last answer, in nanoseconds of one
    /// clock. Levels of real time need it of all transactions.
    #[must_use]
    pub fn between(self, invoked: Time, completed: Time) -> Txn {
        Txn { interval: Interval { invoked, completed }, ..self }
    }

    /// It read this value.
    #[must_use]
    pub fn read(self, key: impl Into<Content>, value: impl Into<Content>) -> Txn {
        self.with(key, Action::Read(value.into()))
    }

    /// It wrote this value. Values that nobody else writes to the key are decided fastest.
    #[must_use]
    pub fn write(self, key: impl Into<Content>, value: impl Into<Content>) -> Txn {
        self.with(key, Action::Write(value.into()))
    }

    /// It appended this element to a list.
    #[must_use]
    pub fn append(self, key: impl Into<Content>, element: impl Into<Content>) -> Txn {
        self.with(key, Action::Append(element.into()))
    }

    /// It read a list, which had these elements.
    #[must_use]
    pub fn read_list<C: Into<Content>>(
        self,
        key: impl Into<Content>,
        elements: impl IntoIterator<Item = C>,
    ) -> Txn {
        self.with(key, Action::ReadList(elements.into_iter().map(Into::into).collect()))
    }

    fn with(mut self, key: impl Into<Content>, action: Action) -> Txn {
        self.operations.push((key.into(), action));
        self
    }

    fn add_to(&self, builder: &mut HistoryBuilder, outcome: Outcome) {
        let label = self.session.interned(builder.values());
        let session = builder.session(label);
        let txn = builder.begin(session);
        builder.outcome(txn, outcome);
        if let Some(label) = &self.label {
            let label = builder.values().text(label);
            builder.label(txn, label);
        }
        if self.interval != Interval::UNKNOWN {
            builder.interval(txn, self.interval);
        }
        for (key, action) in &self.operations {
            let key = key.interned(builder.values());
            let key = builder.key(key);
            let (kind, value) = match action {
                Action::Read(value) => (OpKind::Read, value),
                Action::Write(value) => (OpKind::Write, value),
                Action::Append(value) => (OpKind::Append, value),
                Action::ReadList(elements) => {
                    let values = builder.values();
                    let elements: Vec<Value> =
                        elements.iter().map(|element| element.interned(values)).collect();
                    builder.read_list(key, &elements);
                    continue;
                }
            };
            let value = value.interned(builder.values());
            builder.op(kind, key, value);
        }
    }
}

impl Content {
    fn interned(&self, values: &mut Values) -> Value {
        values.intern_datum(match self {
            Content::Nil => Datum::Nil,
            Content::Int(number) => Datum::Int(*number),
            Content::Text(text) => Datum::Text(text),
        })
    }
}

macro_rules! from_numbers {
    ($($number:ty)*) => {$(
        impl From<$number> for Content {
            fn from(number: $number) -> Content {
                Content::Int(number.into())
            }
        }
    )*};
}

from_numbers!(i32 i64 u32 u64);

impl From<&str> for Content {
    fn from(text: &str) -> Content {
        Content::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Content {
        Content::Text(text)
    }
}

impl<C: Into<Content>> From<Option<C>> for Content {
    fn from(content: Option<C>) -> Content {
        content.map_or(Content::Nil, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::to_text;

    #[test]
    fn what_was_put_together_reads_like_the_text_format() {
        let mut history = History::builder();
        history.initial(0);
        history.commit(Txn::of("alice").named("T1").read("x", 0).write("x", 7));
        history.unknown(Txn::of("bob").append("list", 1).between(10, 20));
        history.abort(Txn::of("alice").read("x", None::<i64>).read_list("list", [1, 2]));
        let text = to_text(&history.finish().expect("a small history"));
        let expected = "# isolde-history 1\n\
                        init *=0\n\
                        alice/T1: r(x,0) w(x,7)\n\
                        alice: r(x,nil) r(list,[1 2]) aborted\n\
                        bob @10..20: a(list,1) unknown\n";
        assert_eq!(text, expected);
    }
}
