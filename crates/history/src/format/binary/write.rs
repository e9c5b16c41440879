//! Writing the binary format: every column of the model, in the schema's order.

use super::UNLOGGED;
use super::frame::{FrameWriter, Storage};
use crate::format::WriteError;
use crate::history::{Columns, History, Outcome, Time, Timestamps};
use crate::predicate::{Aggregate, Condition};
use crate::value::{Datum, Value};
use std::io::{self, Write};

pub(super) fn write(
    history: &History,
    storage: Storage,
    out: &mut dyn Write,
) -> Result<Vec<String>, WriteError> {
    let columns = &history.columns;
    let mut frames = FrameWriter::new(out, storage)?;
    values(columns, &mut frames)?;
    sessions(columns, &mut frames)?;
    txns(columns, &mut frames)?;
    ops(columns, &mut frames)?;
    predicates(columns, &mut frames)?;
    snapshots(columns, &mut frames)?;
    orders(columns, &mut frames)?;
    notes(columns, &mut frames)?;
    frames.finish()?;
    let lost = history.has_statements().then(|| "statements of operations".to_owned());
    Ok(lost.into_iter().collect())
}

fn bits(values: &[Value]) -> impl Iterator<Item = u32> {
    values.iter().map(|value| value.bits())
}

fn times(times: &[Time]) -> impl Iterator<Item = u64> {
    times.iter().map(|time| time.cast_unsigned())
}

fn values(columns: &Columns, frames: &mut FrameWriter<'_>) -> io::Result<()> {
    let kinds = columns.values.table().map(|datum| value_parts(datum).0);
    frames.column("value.kinds", kinds)?;
    let payloads = columns.values.table().map(|datum| value_parts(datum).1);
    frames.column("value.payloads", payloads)?;
    let texts = columns.values.table().map(|datum| value_parts(datum).2);
    frames.column("value.text", texts.flat_map(str::bytes))?;
    frames.column("keys", bits(&columns.keys))?;
    let default = columns.initial_default.iter();
    frames.column("initial.default", default.map(|value| value.bits()))?;
    let initial = &columns.initial;
    frames.column("initial.keys", initial.iter().map(|entry| entry.0.0))?;
    frames.column("initial.values", initial.iter().map(|entry| entry.1.bits()))
}

/// Kind, number or length of the text, and text of an entry of the value table.
fn value_parts(datum: Datum<'_>) -> (u8, u64, &str) {
    match datum {
        Datum::Nil | Datum::Unknown => unreachable!("not in the table"),
        Datum::Int(number) if number < 0 => {
            let number = i64::try_from(number).expect("negative numbers are signed");
            (1, number.cast_unsigned(), "")
        }
        Datum::Int(number) => {
            let number = u64::try_from(number).expect("wider numbers are kept as text");
            (2, number, "")
        }
        Datum::Text(text) => (3, text.len() as u64, text),
        Datum::Keyword(text) => (4, text.len() as u64, text),
        Datum::Other(text) => (5, text.len() as u64, text),
    }
}

fn sessions(columns: &Columns, frames: &mut FrameWriter<'_>) -> io::Result<()> {
    let sessions = columns.sessions.iter();
    let labels = sessions.clone().map(|session| session.label.bits());
    frames.column("session.labels", labels)?;
    let endpoints = sessions.clone().map(|session| session.endpoint.bits());
    frames.column("session.endpoints", endpoints)?;
    let origins = sessions.map(|session| session.origin.bits());
    frames.column("session.origins", origins)?;
    frames.column("session.txns", columns.session_txns.iter().copied())
}

fn txns(columns: &Columns, frames: &mut FrameWriter<'_>) -> io::Result<()> {
    frames.column("txn.ops", columns.txn_ops.iter().copied())?;
    let is_unlogged = |txn: usize| columns.unlogged.get(txn).copied().unwrap_or(false);
    let outcomes = columns.outcomes.iter().enumerate().map(|(txn, &outcome)| match outcome {
        Outcome::Unknown if is_unlogged(txn) => UNLOGGED,
        outcome => outcome as u8,
    });
    frames.column("txn.outcomes", outcomes)?;
    frames.column("txn.labels", bits(&columns.labels))?;
    frames.column("txn.errors", bits(&columns.errors))?;
    frames.column("txn.invoked", times(&columns.invoked))?;
    frames.column("txn.completed", times(&columns.completed))?;
    frames.column("txn.begun", times(&columns.begun))?;
    frames.column("txn.committing", times(&columns.committing))?;

    let given = columns.timestamps.iter();
    frames.column("timestamp.given", given.map(|given| u8::from(given.is_some())))?;
    let part = |part: fn(&Timestamps) -> u64| {
        let given = columns.timestamps.iter();
        given.map(move |given| given.as_ref().map_or(0, part))
    };
    frames.column("timestamp.start", part(|given| given.start.physical))?;
    frames.column("timestamp.start.logical", part(|given| given.start.logical))?;
    frames.column("timestamp.commit", part(|given| given.commit.physical))?;
    frames.column("timestamp.commit.logical", part(|given| given.commit.logical))?;
    frames.column("txn.numbers", columns.snapshots.numbers.iter().copied())?;
    frames.column("txn.snapshots", columns.snapshots.of_txns.iter().copied())
}

fn ops(columns: &Columns, frames: &mut FrameWriter<'_>) -> io::Result<()> {
    frames.column("op.kinds", columns.kinds.iter().map(|&kind| kind as u8))?;
    frames.column("op.keys", columns.op_keys.iter().map(|key| key.0))?;
    frames.column("op.values", bits(&columns.op_values))?;
    frames.column("op.positions", columns.positions.iter().copied())?;
    frames.column("op.invoked", times(&columns.op_invoked))?;
    frames.column("op.completed", times(&columns.op_completed))?;
    frames.column("list.starts", columns.lists.iter().map(|list| list.0))?;
    frames.column("list.lengths", columns.lists.iter().map(|list| list.1))?;
    frames.column("list.elements", bits(&columns.elements))
}

fn predicates(columns: &Columns, frames: &mut FrameWriter<'_>) -> io::Result<()> {
    let parts = || {
        let predicates = columns.predicates.iter();
        predicates.map(|predicate| condition_parts(&predicate.condition))
    };
    frames.column("predicate.kinds", parts().map(|parts| parts.0))?;
    frames.column("predicate.first", parts().map(|parts| parts.1[0]))?;
    frames.column("predicate.second", parts().map(|parts| parts.1[1]))?;
    frames.column("predicate.third", parts().map(|parts| parts.1[2]))?;
    let functions = columns.predicates.iter().map(|predicate| match predicate.aggregate {
        None => 0,
        Some(aggregate) => 1 + aggregate.function as u8,
    });
    frames.column("predicate.functions", functions)?;
    let aggregates = columns.predicates.iter().map(|predicate| predicate.aggregate);
    let result = |aggregate: Option<Aggregate>| aggregate.map_or(Value::NIL, |it| it.result).bits();
    frames.column("predicate.results", aggregates.map(result))?;
    let lengths = columns.predicates.iter().map(|predicate| predicate.rows.len());
    frames.column("predicate.rows", offsets(lengths))?;
    let rows = || columns.predicates.iter().flat_map(|predicate| &predicate.rows);
    frames.column("predicate.row.keys", rows().map(|row| row.key.0))?;
    frames.column("predicate.row.values", rows().map(|row| row.value.bits()))?;
    frames.column("predicate.row.matched", rows().map(|row| u8::from(row.matched)))?;

    let rows = &columns.rows;
    frames.column("row.ops", rows.iter().map(|row| row.0.0))?;
    frames.column("row.columns", rows.iter().map(|row| row.1.bits()))?;
    frames.column("row.contents", rows.iter().map(|row| row.2.bits()))
}

/// Kind and operands of a condition.
fn condition_parts(condition: &Condition) -> (u8, [u64; 3]) {
    let bits = |value: Value| u64::from(value.bits());
    match *condition {
        Condition::All => (0, [0; 3]),
        Condition::Equals(value) => (1, [bits(value), 0, 0]),
        Condition::Modulo { modulus, remainder } => (2, [modulus, remainder, 0]),
        Condition::KeyRange { low, high } => (3, [bits(low), bits(high), 0]),
        Condition::ColumnRange { column, low, high } => (4, [bits(low), bits(high), bits(column)]),
        Condition::Notation(notation) => (5, [bits(notation), 0, 0]),
        Condition::ValueRange { low, high } => (6, [bits(low), bits(high), 0]),
    }
}

fn snapshots(columns: &Columns, frames: &mut FrameWriter<'_>) -> io::Result<()> {
    let table = || columns.snapshots.table.iter();
    frames.column("snapshot.below", table().map(|it| it.below))?;
    frames.column("snapshot.exceptions", offsets(table().map(|it| it.except.len())))?;
    frames.column("snapshot.except", table().flat_map(|it| it.except.iter().copied()))?;
    let of_ops = &columns.snapshots.of_ops;
    frames.column("snapshot.ops", of_ops.iter().map(|entry| entry.0.0))?;
    frames.column("snapshot.places", of_ops.iter().map(|entry| entry.1))
}

fn orders(columns: &Columns, frames: &mut FrameWriter<'_>) -> io::Result<()> {
    let chains = || columns.orders.versions.iter();
    frames.column("version.keys", chains().map(|chain| chain.key.0))?;
    frames.column("version.complete", chains().map(|chain| u8::from(chain.complete)))?;
    frames.column("version.chains", offsets(chains().map(|chain| chain.values.len())))?;
    frames.column("version.values", chains().flat_map(|chain| bits(&chain.values)))?;
    let numbered = || {
        let starts = offsets(chains().map(|chain| chain.values.len()));
        chains().zip(starts).flat_map(|(chain, start)| {
            chain.numbers.iter().map(move |entry| (start as u32 + entry.0, entry.1))
        })
    };
    frames.column("version.numbered", numbered().map(|entry| entry.0))?;
    frames.column("version.numbers", numbered().map(|entry| entry.1))?;
    let total = &columns.orders.total;
    frames.column("serial.given", [u8::from(total.is_some())])?;
    frames.column("serial.txns", total.iter().flatten().map(|txn| txn.0))
}

/// Where each group starts and the last one ends.
fn offsets(lengths: impl Iterator<Item = usize>) -> impl Iterator<Item = u64> {
    let ends = lengths.scan(0u64, |end, length| {
        *end += length as u64;
        Some(*end)
    });
    std::iter::once(0).chain(ends)
}

fn notes(columns: &Columns, frames: &mut FrameWriter<'_>) -> io::Result<()> {
    let events = || columns.events.iter();
    frames.column("event.timed", events().map(|event| u8::from(event.time.is_some())))?;
    let times = events().map(|event| event.time.unwrap_or(0).cast_unsigned());
    frames.column("event.times", times)?;
    frames.column("event.positions", events().map(|event| event.position))?;
    let texts = events().map(|event| event.text.as_str());
    frames.texts("event.lengths", "event.text", texts)?;

    let remarks = || columns.remarks.iter();
    frames.column("remark.positions", remarks().map(|remark| remark.position))?;
    let kinds = remarks().map(|remark| &*remark.kind);
    frames.texts("remark.kind.lengths", "remark.kind.text", kinds)?;
    let texts = remarks().map(|remark| remark.text.as_str());
    frames.texts("remark.lengths", "remark.text", texts)?;
    frames.column("position.unit", [columns.unit as u8])
}
