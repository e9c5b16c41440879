//! `TimeKiller`'s JSON (Chronos and Aion): transactions with the database's own start
//! and commit timestamps.
//!
//! Described in `TimeKiller`'s README and by its readers. One array of
//! `{"tid", "sid", "sts": {"p", "l"}, "cts": {"p", "l"}, "ops": […]}` in session
//! order, committed transactions only. An operation is `{"t", "k", "v"}` with `t` one
//! of `r`, `w`, `a` or the whole words; numbers may come as text. Every key starts
//! with nil, a list empty: another initial value is a choice of the reader. A history
//! with an append or a list read is one of lists, and a read of null in it saw an
//! empty list.

use super::json_stream;
use super::{Format, Input, Sample, names};
use crate::builder::HistoryBuilder;
use crate::error::ReadError;
use crate::history::{KeyId, OpKind, PositionUnit, Timestamp, Timestamps};
use crate::value::{Value, Values};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};
use std::fmt;

pub(super) const FORMAT: Format = Format {
    name: "timekiller",
    title: "TimeKiller's JSON (Chronos, Aion) with timestamps",
    detect,
    read,
    write: None,
};

fn detect(sample: &Sample<'_>) -> bool {
    if sample.names.is_some() {
        return false;
    }
    let head = json_stream::squeezed(sample.head, sample.head.len());
    let has = |name: &[u8]| memchr::memmem::find(&head, name).is_some();
    head.starts_with(b"[{\"") && has(b"\"cts\":{") && (has(b"\"ops\":[") || has(b"\"sts\":{"))
}

fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    let mut source = input.file()?;
    builder.position_unit(PositionUnit::Record);
    let txns = Txns { builder };
    json_stream::read(&mut source, "an array of TimeKiller's transactions", txns)
}

#[derive(Deserialize)]
struct JsonTxn {
    tid: Name,
    sid: Name,
    sts: JsonTimestamp,
    cts: JsonTimestamp,
    ops: Vec<JsonOp>,
}

#[derive(Deserialize)]
struct JsonTimestamp {
    p: Number,
    #[serde(default)]
    l: Number,
}

#[derive(Deserialize)]
struct JsonOp {
    t: Kind,
    k: Name,
    #[serde(default)]
    v: Seen,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
enum Kind {
    #[serde(rename = "r", alias = "read")]
    Read,
    #[serde(rename = "w", alias = "write")]
    Write,
    #[serde(rename = "a", alias = "append")]
    Append,
}

/// An id, key or value.
#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Natural(u64),
    Integer(i64),
    Text(String),
}

#[derive(Deserialize, Default)]
#[serde(untagged)]
enum Seen {
    #[default]
    Nothing,
    One(Name),
    List(Vec<Name>),
}

/// A natural number, perhaps as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Natural(u64),
    Text(String),
}

impl Default for Number {
    fn default() -> Self {
        Number::Natural(0)
    }
}

impl Name {
    fn value(&self, values: &mut Values) -> Value {
        match self {
            Name::Natural(number) => values.unsigned(*number),
            Name::Integer(number) => values.int(*number),
            Name::Text(text) => names::number_or_text(values, text),
        }
    }
}

impl JsonTimestamp {
    fn timestamp<E: Error>(&self) -> Result<Timestamp, E> {
        let number = |number: &Number| match number {
            Number::Natural(number) => Ok(*number),
            Number::Text(text) => text.parse().map_err(|_| {
                E::custom(format_args!("invalid timestamp: {text:?}, expected digits"))
            }),
        };
        Ok(Timestamp { physical: number(&self.p)?, logical: number(&self.l)? })
    }
}

struct Txns<'b> {
    builder: &'b mut HistoryBuilder,
}

impl<'de> DeserializeSeed<'de> for Txns<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Txns<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array of transactions")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut txns: A) -> Result<(), A::Error> {
        let mut lists = Lists::Open(Vec::new());
        let mut record = 0u32;
        while let Some(json) = txns.next_element::<JsonTxn>()? {
            record = record.saturating_add(1);
            lists.txn(&json);
            match &mut lists {
                // Nothing so far tells registers and lists apart: wait.
                Lists::Open(waiting) => waiting.push((record, json)),
                Lists::Decided { waiting, lists } => {
                    for (record, json) in waiting.drain(..) {
                        add(self.builder, &json, *lists, record)?;
                    }
                    add(self.builder, &json, *lists, record)?;
                }
            }
        }
        if let Lists::Open(waiting) = lists {
            for (record, json) in waiting {
                add(self.builder, &json, false, record)?;
            }
        }
        Ok(())
    }
}

/// Whether the history is one of lists.
enum Lists {
    Open(Vec<(u32, JsonTxn)>),
    Decided { waiting: Vec<(u32, JsonTxn)>, lists: bool },
}

impl Lists {
    fn txn(&mut self, json: &JsonTxn) {
        let Lists::Open(waiting) = self else {
            return;
        };
        let told = json.ops.iter().find_map(|op| match (op.t, &op.v) {
            (Kind::Append, _) | (_, Seen::List(_)) => Some(true),
            (Kind::Write, _) | (_, Seen::One(_)) => Some(false),
            (Kind::Read, Seen::Nothing) => None,
        });
        if let Some(lists) = told {
            let waiting = std::mem::take(waiting);
            *self = Lists::Decided { waiting, lists };
        }
    }
}

fn add<E: Error>(
    builder: &mut HistoryBuilder,
    json: &JsonTxn,
    lists: bool,
    record: u32,
) -> Result<(), E> {
    let (start, commit) = (json.sts.timestamp()?, json.cts.timestamp()?);
    if commit < start {
        return Err(E::custom(format_args!(
            "invalid timestamps: transaction {record} commits before it starts"
        )));
    }
    builder.position(record);
    let label = json.sid.value(builder.values());
    let session = builder.session(label);
    let txn = builder.begin(session);
    let label = json.tid.value(builder.values());
    builder.label(txn, label);
    builder.timestamps(txn, Timestamps { start, commit });
    let mut elements = Vec::new();
    for op in &json.ops {
        let name = op.k.value(builder.values());
        let key = builder.key(name);
        add_op(builder, op, key, lists, &mut elements).map_err(|expected| {
            E::custom(format_args!(
                "invalid operation in transaction {record}: expected {expected}"
            ))
        })?;
    }
    Ok(())
}

fn add_op(
    builder: &mut HistoryBuilder,
    op: &JsonOp,
    key: KeyId,
    lists: bool,
    elements: &mut Vec<Value>,
) -> Result<(), &'static str> {
    match (op.t, &op.v) {
        (Kind::Read, Seen::List(seen)) => {
            elements.clear();
            elements.extend(seen.iter().map(|element| element.value(builder.values())));
            builder.read_list(key, elements);
        }
        (Kind::Read, Seen::Nothing) if lists => builder.read_list(key, &[]),
        (Kind::Read, Seen::Nothing) => builder.op(OpKind::Read, key, Value::NIL),
        (Kind::Read, Seen::One(value)) => {
            let value = value.value(builder.values());
            builder.op(OpKind::Read, key, value);
        }
        (Kind::Write, Seen::One(value)) => {
            let value = value.value(builder.values());
            builder.op(OpKind::Write, key, value);
        }
        (Kind::Append, Seen::One(value)) => {
            let value = value.value(builder.values());
            builder.op(OpKind::Append, key, value);
        }
        (Kind::Write | Kind::Append, _) => return Err("one value to write"),
    }
    Ok(())
}
