//! What Viper's two notations have in common: its transactions and their meaning.
//!
//! Described by the loggers of `ViperBench` and the parsers of Viper. Only committed
//! transactions are logged. Deleting a row leaves a tombstone with a value of its
//! own, so a dead row is a version like any other and ranges tell every version
//! they looked at: live rows met the range, dead ones did not. Inserts and deletes
//! read the row before they write it. A statement that failed wrote nothing.
//!
//! The initial state is told by a transaction marked as initial. Without one, a value
//! that was read and that nobody wrote is the initial value of its key.

pub(super) mod edn;
pub(super) mod json;
mod writer;

use super::{Input, client_logs};
use crate::builder::HistoryBuilder;
use crate::error::ReadError;
use crate::history::{Interval, KeyId, OpKind, SessionId, TxnTimes};
use crate::predicate::{Condition, Predicate, PredicateRow};
use crate::value::{Value, Values};
use hashbrown::{HashMap, HashSet};

/// A transaction as logged.
pub(super) struct ViperTxn {
    /// Begin invoked and completed, commit invoked and completed.
    pub(super) times: Option<[i64; 4]>,
    pub(super) initial: bool,
    pub(super) operations: Vec<ViperOp>,
}

/// An operation as logged. The value nil is a row that is not there.
pub(super) enum ViperOp {
    Read {
        key: Value,
        value: Value,
    },
    Write {
        key: Value,
        value: Value,
        succeeded: bool,
    },
    /// An insert or a delete.
    Replace {
        kind: OpKind,
        key: Value,
        value: Value,
        seen: Value,
        succeeded: bool,
    },
    Range {
        low: Value,
        high: Value,
        live: Vec<(Value, Value)>,
        dead: Vec<(Value, Value)>,
    },
}

/// A line's place and content, for messages.
pub(super) struct LogLine<'l> {
    pub(super) file: &'l str,
    pub(super) number: u64,
    pub(super) text: &'l [u8],
}

/// Reads the logs of all clients, one transaction a line.
pub(super) fn read(
    input: Input<'_>,
    builder: &mut HistoryBuilder,
    parse: impl Fn(&LogLine<'_>, &mut Values) -> Result<ViperTxn, ReadError>,
) -> Result<(), ReadError> {
    let mut assembler = Assembler::default();
    client_logs::each(input, |mut source| {
        let file = source.name().to_owned();
        let mut session = None;
        loop {
            let number = source.line();
            let Some(line) = source.next_line()? else {
                return Ok(());
            };
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            let txn = parse(&LogLine { file: &file, number, text }, builder.values())?;
            // The initial transaction belongs to no client.
            if txn.initial {
                assembler.initial(builder, txn);
                continue;
            }
            let session = *session.get_or_insert_with(|| client_logs::session(builder, &file));
            let line = u32::try_from(number).unwrap_or(u32::MAX);
            assembler.txn(builder, session, txn, line);
        }
    })?;
    assembler.finish(builder);
    Ok(())
}

/// The fields of an operation in one of the notations; `None` where a field is
/// missing or not what it should be.
pub(super) trait Fields {
    fn tag(&self) -> Option<&str>;
    fn count(&self) -> usize;
    fn datum(&self, index: usize, values: &mut Values) -> Option<Value>;
    /// A boolean that is true where the field is absent.
    fn flag(&self, index: usize) -> Option<bool>;
    fn rows(&self, index: usize, values: &mut Values) -> Option<Vec<(Value, Value)>>;
}

/// The operation with these fields.
pub(super) fn operation(fields: &impl Fields, values: &mut Values) -> Option<ViperOp> {
    let tag = fields.tag()?;
    let mut datum = |index: usize| fields.datum(index, values);
    match (tag, fields.count()) {
        ("r", 3 | 4) => Some(ViperOp::Read { key: datum(1)?, value: datum(2)? }),
        ("w", 3 | 4) => {
            Some(ViperOp::Write { key: datum(1)?, value: datum(2)?, succeeded: fields.flag(3)? })
        }
        ("i" | "d", 6) => Some(ViperOp::Replace {
            kind: if tag == "i" { OpKind::Insert } else { OpKind::Delete },
            key: datum(1)?,
            value: datum(2)?,
            seen: datum(3)?,
            succeeded: fields.flag(5)?,
        }),
        ("range", 5 | 6) => Some(ViperOp::Range {
            low: datum(1)?,
            high: datum(2)?,
            live: fields.rows(3, values)?,
            dead: fields.rows(4, values)?,
        }),
        _ => None,
    }
}

/// Builds a history of Viper's transactions.
#[derive(Default)]
struct Assembler {
    written: HashSet<(KeyId, Value)>,
    /// What was read, and where first.
    seen: HashMap<(KeyId, Value), u32>,
    initial_told: bool,
}

impl Assembler {
    /// Adds the next transaction of a session, from this line.
    fn txn(&mut self, builder: &mut HistoryBuilder, session: SessionId, txn: ViperTxn, line: u32) {
        builder.position(line);
        let draft = builder.begin(session);
        if let Some([invoked, begun, committing, completed]) = txn.times {
            let begin = Interval { invoked, completed: begun };
            let commit = Interval { invoked: committing, completed };
            builder.times(draft, TxnTimes { begin, commit });
        }
        for operation in txn.operations {
            self.operation(builder, operation, line);
        }
    }

    /// Takes the initial values from the transaction that tells them.
    fn initial(&mut self, builder: &mut HistoryBuilder, txn: ViperTxn) {
        self.initial_told = true;
        for operation in txn.operations {
            declare(builder, operation);
        }
    }

    fn operation(&mut self, builder: &mut HistoryBuilder, operation: ViperOp, line: u32) {
        match operation {
            ViperOp::Read { key, value } => self.read(builder, key, value, line),
            ViperOp::Write { key, value, succeeded } => {
                if succeeded {
                    self.write(builder, OpKind::Write, key, value);
                }
            }
            ViperOp::Replace { kind, key, value, seen, succeeded } => {
                self.read(builder, key, seen, line);
                if succeeded {
                    self.write(builder, kind, key, value);
                }
            }
            ViperOp::Range { low, high, live, dead } => {
                let returned = live.into_iter().map(|row| (row, true));
                let others = dead.into_iter().map(|row| (row, false));
                let rows = returned
                    .chain(others)
                    .map(|((key, value), matched)| {
                        let key = builder.key(key);
                        self.seen.entry((key, value)).or_insert(line);
                        PredicateRow { key, value, matched }
                    })
                    .collect();
                let condition = Condition::KeyRange { low, high };
                let predicate = Predicate { condition, rows, aggregate: None };
                builder.predicate(OpKind::PredicateRead, predicate);
            }
        }
    }

    fn read(&mut self, builder: &mut HistoryBuilder, key: Value, value: Value, line: u32) {
        let key = builder.key(key);
        builder.op(OpKind::Read, key, value);
        self.seen.entry((key, value)).or_insert(line);
    }

    fn write(&mut self, builder: &mut HistoryBuilder, kind: OpKind, key: Value, value: Value) {
        let key = builder.key(key);
        builder.op(kind, key, value);
        self.written.insert((key, value));
    }

    /// Takes values that nobody wrote as initial, unless the log tells those. A key
    /// has one initial value: where a row was seen missing, or another such value was
    /// seen before, the value stays unexplained.
    fn finish(self, builder: &mut HistoryBuilder) {
        if self.initial_told {
            return;
        }
        let unwritten = |seen: &(KeyId, Value)| !self.written.contains(seen);
        let mut found: Vec<(u32, KeyId, Value)> = self
            .seen
            .iter()
            .filter(|entry| unwritten(entry.0))
            .map(|(&(key, value), &line)| (line, key, value))
            .collect();
        // A missing row first: it is certain.
        found.sort_by_key(|&(line, key, value)| (key, value != Value::NIL, line, value));
        let mut taken: Option<KeyId> = None;
        for (line, key, value) in found {
            if taken == Some(key) {
                builder.position(line);
                let text = "a value that nobody wrote is not the key's only one".to_owned();
                builder.remark("several-initial-values", text);
            } else {
                taken = Some(key);
                builder.initial(key, value);
            }
        }
    }
}

/// An operation of the initial transaction: its writes, or all rows of its range.
fn declare(builder: &mut HistoryBuilder, operation: ViperOp) {
    let rows = match operation {
        ViperOp::Read { key, value }
        | ViperOp::Write { key, value, .. }
        | ViperOp::Replace { key, value, .. } => vec![(key, value)],
        ViperOp::Range { mut live, mut dead, .. } => {
            live.append(&mut dead);
            live
        }
    };
    for (key, value) in rows {
        let key = builder.key(key);
        builder.initial(key, value);
    }
}
