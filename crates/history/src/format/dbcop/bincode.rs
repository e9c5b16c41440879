//! dbcop's binary histories of 2019 (`history.bincode`), also `PolySI`'s and
//! `VeriStrong`'s.
//!
//! bincode 1 of dbcop's own structures: little-endian, fixed width, lengths and
//! numbers of 8 bytes, booleans of one. A header of five numbers and three texts is
//! followed by sessions of transactions of events `write, variable, value, success`
//! and the transaction's own `success`. Every variable starts with 0. A failed event
//! did nothing and is left out; a transaction without success was aborted.

use crate::builder::HistoryBuilder;
use crate::error::ReadError;
use crate::format::records::Records;
use crate::format::registers::{self, Abilities, Losses};
use crate::format::{Format, Input, Sample, WriteError, Writer};
use crate::history::{History, OpKind, Outcome, PositionUnit};
use crate::value::{Datum, Value};
use std::io::{BufWriter, Write};

pub(in crate::format) const FORMAT: Format = Format {
    name: "dbcop-bincode",
    title: "dbcop 2019, PolySI and VeriStrong (history.bincode)",
    detect,
    read,
    write: Some(Writer::File(write)),
};

/// Five numbers, then three texts.
const HEADER_NUMBERS: usize = 5;
const HEADER_TEXTS: [&str; 3] =
    ["the name of the database", "the time of the start", "the time of the end"];

fn detect(sample: &Sample<'_>) -> bool {
    sample.names.is_none() && looks_right(sample.head).is_some()
}

/// Follows the layout as far as the first event, or to the end of a sample that is
/// all there is. `None` where something does not fit.
fn looks_right(head: &[u8]) -> Option<()> {
    const TEXT_BYTES_MAX: u64 = 1 << 10;
    const COUNT_MAX: u64 = 1 << 32;
    fn number(head: &[u8], plausible: u64) -> Option<(u64, &[u8])> {
        let (bytes, rest) = head.split_first_chunk::<8>()?;
        let number = u64::from_le_bytes(*bytes);
        (number < plausible).then_some((number, rest))
    }
    let mut rest = head.get(HEADER_NUMBERS * 8..)?;
    for _ in HEADER_TEXTS {
        let (length, after) = number(rest, TEXT_BYTES_MAX)?;
        let (text, after) = after.split_at_checked(length as usize)?;
        let text = std::str::from_utf8(text).ok()?;
        if text.contains(char::is_control) {
            return None;
        }
        rest = after;
    }
    // Sessions, transactions, events; empty ones hide the rest.
    for _ in 0..3 {
        let (count, after) = number(rest, COUNT_MAX)?;
        if count == 0 || after.is_empty() {
            return Some(());
        }
        rest = after;
    }
    (*rest.first()? <= 1).then_some(())
}

fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    let mut records = Records::new(input.file()?);
    builder.position_unit(PositionUnit::Record);
    let zero = builder.values().unsigned(0);
    builder.initial_default(zero);
    for _ in 0..HEADER_NUMBERS {
        records.take::<8>("a number of the header")?;
    }
    for text in HEADER_TEXTS {
        let length = count(&mut records, text)?;
        records.text(length, text)?;
    }
    let mut failed = 0u64;
    for session in 1..=count(&mut records, "the number of sessions")? {
        let label = builder.values().unsigned(session);
        let session = builder.session(label);
        for _ in 0..count(&mut records, "the number of transactions")? {
            let txn = builder.begin(session);
            for _ in 0..count(&mut records, "the number of events")? {
                failed += u64::from(!event(&mut records, builder)?);
            }
            if !flag(&mut records, "whether the transaction committed")? {
                builder.outcome(txn, Outcome::Aborted);
            }
        }
    }
    if !records.at_end()? {
        return Err(records.error("expected the end of the file, found more bytes".into()));
    }
    if failed > 0 {
        builder.position(0);
        let text = format!("{failed} events that failed were left out");
        builder.remark("failed-operation", text);
    }
    Ok(())
}

/// Reads one event; whether it succeeded.
fn event(records: &mut Records<'_>, builder: &mut HistoryBuilder) -> Result<bool, ReadError> {
    let position = records.begin_record();
    let write = flag(records, "whether the event is a write")?;
    let variable = u64::from_le_bytes(records.take("a variable")?);
    let value = u64::from_le_bytes(records.take("a value")?);
    let success = flag(records, "whether the event succeeded")?;
    if success {
        builder.position(position);
        let name = builder.values().unsigned(variable);
        let key = builder.key(name);
        let value = builder.values().unsigned(value);
        let kind = if write { OpKind::Write } else { OpKind::Read };
        builder.op(kind, key, value);
    }
    Ok(success)
}

fn count(records: &mut Records<'_>, what: &str) -> Result<u64, ReadError> {
    records.take(what).map(u64::from_le_bytes)
}

fn flag(records: &mut Records<'_>, what: &str) -> Result<bool, ReadError> {
    match records.peek(1)?.first() {
        Some(&byte) if byte > 1 => {
            Err(records.error(format!("expected 0 or 1 for {what}, found {byte}")))
        }
        _ => Ok(records.byte(what)? == 1),
    }
}

fn write(history: &History, out: &mut dyn Write) -> Result<Vec<String>, WriteError> {
    let mut losses = Losses::default();
    let abilities = Abilities { aborted: true, ..Abilities::default() };
    let plan = registers::plan(history, abilities, &mut losses)?;
    registers::note_initial(history, &plan, Datum::Int(0), &mut losses);
    let numbers = registers::Numbers::new(history, &plan, &mut losses);
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let counts = [
        0,
        history.session_count() as u64,
        history.key_count() as u64,
        history.txn_count() as u64,
        history.op_count() as u64,
    ];
    for number in counts {
        out.write_all(&number.to_le_bytes())?;
    }
    // Readers parse the times, so they get one that is valid.
    for text in ["isolde", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"] {
        out.write_all(&(text.len() as u64).to_le_bytes())?;
        out.write_all(text.as_bytes())?;
    }
    out.write_all(&(history.session_count() as u64).to_le_bytes())?;
    let labels = (1..=history.session_count() as u64).collect::<Vec<_>>();
    let own = history.sessions().map(|session| history.session_label(session));
    if registers::distinct_naturals(history, own) != Some(labels) {
        losses.add("sessions are numbered from 1");
    }
    if history.txns().any(|txn| history.txn_label(txn) != Value::NIL) {
        losses.add("labels of transactions");
    }
    for session in history.sessions() {
        let kept = || history.txns_of(session).filter(|&txn| plan.is_kept(txn));
        out.write_all(&(kept().count() as u64).to_le_bytes())?;
        for txn in kept() {
            let events: Vec<_> = history
                .ops_of(txn)
                .map(|op| history.op(op))
                .filter_map(|op| Some((op, numbers.value(op.key, op.value)?)))
                .collect();
            out.write_all(&(events.len() as u64).to_le_bytes())?;
            for (op, value) in events {
                out.write_all(&[u8::from(op.kind.is_write())])?;
                out.write_all(&numbers.key(op.key).to_le_bytes())?;
                out.write_all(&value.to_le_bytes())?;
                out.write_all(&[1])?;
            }
            let committed = history.outcome(txn) != Outcome::Aborted;
            out.write_all(&[u8::from(committed)])?;
        }
    }
    out.flush()?;
    Ok(losses.sentences())
}
