//! Vbox's client logs: a directory of `*.log`, one file per session.
//!
//! Described by Vbox's loader. Little-endian records without padding: `T` opens a
//! transaction (id, start, end), `S`, `C` and `A` are its begin, commit and abort,
//! `R` a read with the writer's transaction and operation, `W` a write of one field,
//! `P` a read by a range of one field with the rows it returned. Every operation has
//! its id and its own interval in nanoseconds.
//!
//! A version is named by the transaction and operation that wrote it, `T51.198`. A
//! transaction counts from the start of its second operation, as Vbox has it: its
//! begin has no effect before.

use super::records::Records;
use super::{Format, Input, Sample, client_logs};
use crate::builder::{DraftTxn, HistoryBuilder};
use crate::error::ReadError;
use crate::history::{Interval, OpKind, Outcome, PositionUnit, SessionId, Time, TxnTimes};
use crate::predicate::{Condition, Predicate, PredicateRow};
use crate::source::Source;
use crate::value::Value;

pub(super) const FORMAT: Format = Format {
    name: "vbox",
    title: "Vbox's client logs (directory of *.log)",
    detect,
    read,
    write: None,
};

/// A transaction record, then its begin.
fn detect(sample: &Sample<'_>) -> bool {
    const TXN_BYTES: usize = 21;
    sample.head.first() == Some(&b'T')
        && sample.head.get(TXN_BYTES).is_some_and(|tag| b"SRWPCA".contains(tag))
        && sample.head.get(1..TXN_BYTES).is_some_and(|fields| {
            // Ids are counted from 0, so at least one of their bytes is zero.
            fields[..4].contains(&0)
        })
}

fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    builder.position_unit(PositionUnit::Record);
    client_logs::each(input, |source| file(source, builder))
}

fn file(source: Source<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    let session = client_logs::session(builder, source.name());
    let mut log = Log { builder, records: Records::new(source), session, open: None };
    while !log.records.at_end()? {
        log.record()?;
    }
    log.close();
    Ok(())
}

struct Log<'b, 'a> {
    builder: &'b mut HistoryBuilder,
    records: Records<'a>,
    session: SessionId,
    open: Option<Open>,
}

/// The transaction that records belong to.
struct Open {
    txn: DraftTxn,
    id: u32,
    outcome: Outcome,
    /// Operations so far, the begin among them.
    operations: u32,
    second: Option<Interval>,
    end: Option<Interval>,
    /// Operation and key of the last record, if it was a write: further fields of
    /// the same update follow as records of their own.
    updating: Option<(u32, u64)>,
}

impl Log<'_, '_> {
    fn record(&mut self) -> Result<(), ReadError> {
        let position = self.records.begin_record();
        self.builder.position(position);
        let tag = self.records.peek(1)?.first().copied().unwrap_or_default();
        if !b"TSCARWP".contains(&tag) {
            let message =
                format!("expected a record with tag T, S, C, A, R, W or P, found byte {tag:#04x}");
            return Err(self.records.error(message));
        }
        if tag != b'T' && self.open.is_none() {
            let tag = char::from(tag);
            return Err(self.records.error(format!("expected `T`, found `{tag}`")));
        }
        self.records.byte("a tag")?;
        if tag == b'T' {
            return self.begin();
        }
        let oid = self.number("an operation id")?;
        let interval = self.interval()?;
        let updating = match self.open.as_mut() {
            Some(open) => open.operation(tag, interval),
            None => None,
        };
        match tag {
            b'R' => self.read()?,
            b'W' => self.write(oid, updating)?,
            b'P' => self.predicate()?,
            _ => return Ok(()),
        }
        self.builder.op_interval(interval);
        Ok(())
    }

    fn begin(&mut self) -> Result<(), ReadError> {
        self.close();
        let id = self.number("a transaction id")?;
        // What the second operation and the end say is narrower.
        self.interval()?;
        let txn = self.builder.begin(self.session);
        let label = self.builder.values().unsigned(id.into());
        self.builder.label(txn, label);
        self.open = Some(Open {
            txn,
            id,
            outcome: Outcome::Unknown,
            operations: 0,
            second: None,
            end: None,
            updating: None,
        });
        Ok(())
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        self.builder.outcome(open.txn, open.outcome);
        if let Some(begin) = open.second {
            let commit = open.end.unwrap_or(Interval {
                invoked: begin.invoked,
                completed: Interval::UNKNOWN.completed,
            });
            self.builder.times(open.txn, TxnTimes { begin, commit });
        }
    }

    fn read(&mut self) -> Result<(), ReadError> {
        let key = self.wide("a key")?;
        let txn = self.number("the transaction read from")?;
        let oid = self.number("the operation read from")?;
        let name = self.builder.values().unsigned(key);
        let key = self.builder.key(name);
        let version = version(self.builder, txn, oid);
        self.builder.op(OpKind::Read, key, version);
        Ok(())
    }

    fn write(&mut self, oid: u32, updating: Option<(u32, u64)>) -> Result<(), ReadError> {
        let key = self.wide("a key")?;
        let field = self.wide("a field")?;
        let content = self.number("a value")?;
        if updating != Some((oid, key)) {
            let name = self.builder.values().unsigned(key);
            let key = self.builder.key(name);
            let txn = self.open.as_ref().map_or(0, |open| open.id);
            let version = version(self.builder, txn, oid);
            self.builder.op(OpKind::Write, key, version);
        }
        let field = self.builder.values().unsigned(field);
        let content = self.builder.values().unsigned(content.into());
        self.builder.row_column(field, content);
        if let Some(open) = self.open.as_mut() {
            open.updating = Some((oid, key));
        }
        Ok(())
    }

    fn predicate(&mut self) -> Result<(), ReadError> {
        let field = self.wide("a field")?;
        let low = self.number("a lower bound")?;
        let high = self.number("an upper bound")?;
        let count = self.number("a number of rows")?;
        // Three columns one after the other; each grows with the bytes that arrive.
        let (mut keys, mut txns, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..count {
            keys.push(self.wide("a key")?);
        }
        for _ in 0..count {
            txns.push(self.number("the transaction read from")?);
        }
        for (key, txn) in keys.into_iter().zip(txns) {
            let oid = self.number("the operation read from")?;
            let name = self.builder.values().unsigned(key);
            rows.push(PredicateRow {
                key: self.builder.key(name),
                value: version(self.builder, txn, oid),
                matched: true,
            });
        }
        let values = self.builder.values();
        let condition = Condition::ColumnRange {
            column: values.unsigned(field),
            low: values.unsigned(low.into()),
            high: values.unsigned(high.into()),
        };
        let predicate = Predicate { condition, rows, aggregate: None };
        self.builder.predicate(OpKind::PredicateRead, predicate);
        Ok(())
    }

    fn number(&mut self, what: &str) -> Result<u32, ReadError> {
        self.records.take(what).map(u32::from_le_bytes)
    }

    fn wide(&mut self, what: &str) -> Result<u64, ReadError> {
        self.records.take(what).map(u64::from_le_bytes)
    }

    fn interval(&mut self) -> Result<Interval, ReadError> {
        let invoked = self.time("a start in nanoseconds")?;
        let completed = self.time("an end in nanoseconds")?;
        if completed < invoked {
            let message = format!("expected an end after {invoked}, found {completed}");
            return Err(self.records.error(message));
        }
        Ok(Interval { invoked, completed })
    }

    fn time(&mut self, what: &str) -> Result<Time, ReadError> {
        let time = self.wide(what)?;
        match Time::try_from(time) {
            Ok(time) if time != Time::MAX => Ok(time),
            _ => Err(self.records.error(format!("expected {what}, found {time}"))),
        }
    }
}

impl Open {
    /// Counts an operation; which update it may continue.
    fn operation(&mut self, tag: u8, interval: Interval) -> Option<(u32, u64)> {
        self.operations += 1;
        if self.operations == 2 {
            self.second = Some(interval);
        }
        match tag {
            b'C' => (self.outcome, self.end) = (Outcome::Committed, Some(interval)),
            b'A' => (self.outcome, self.end) = (Outcome::Aborted, Some(interval)),
            _ => {}
        }
        self.updating.take()
    }
}

fn version(builder: &mut HistoryBuilder, txn: u32, oid: u32) -> Value {
    if (txn, oid) == (0, 0) {
        return Value::NIL;
    }
    // The longest is T4294967295.4294967295. A history has one of these for each operation, so
    // that they are not left to `format!`, which took half of the time.
    let mut text = [0; 22];
    let start = number_before(&mut text, 22, oid) - 1;
    text[start] = b'.';
    let start = number_before(&mut text, start, txn) - 1;
    text[start] = b'T';
    let name = std::str::from_utf8(&text[start..]).expect("digits, a point and a letter");
    builder.values().text(name)
}

/// Writes a number that ends before a place; where it starts.
fn number_before(text: &mut [u8], end: usize, mut number: u32) -> usize {
    let mut start = end;
    loop {
        start -= 1;
        text[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Datum;

    #[test]
    fn a_version_is_named_by_transaction_and_operation() {
        let mut builder = HistoryBuilder::new();
        assert_eq!(version(&mut builder, 0, 0), Value::NIL);
        for (txn, oid) in [(0, 1), (51, 198), (10, 0), (u32::MAX, u32::MAX)] {
            let named = version(&mut builder, txn, oid);
            let expected = format!("T{txn}.{oid}");
            assert_eq!(builder.values().datum(named), Datum::Text(&expected));
        }
    }
}
