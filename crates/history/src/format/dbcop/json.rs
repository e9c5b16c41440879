//! dbcop's JSON: sessions of `{"events": […], "committed": bool}`.
//!
//! Described in dbcop's `docs/history-format.md`. The sessions come bare or under
//! `data` beside some parameters, which are not used. An event is
//! `{"Read": {"variable": V, "version": N}}`, the same with `Write`, or compactly
//! `["r", V, N]`. A version `null` is the initial state, and so is 0 where nobody
//! writes it.

use super::events::{Event, Events};
use crate::builder::HistoryBuilder;
use crate::error::ReadError;
use crate::format::json_stream;
use crate::format::registers::{self, Abilities, Losses, Numbers, Version};
use crate::format::{Format, Input, Sample, WriteError, Writer};
use crate::history::{History, Outcome, PositionUnit};
use crate::value::{Datum, Value, Values};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::io::{BufWriter, Write};

pub(in crate::format) const FORMAT: Format = Format {
    name: "dbcop-json",
    title: "dbcop's JSON",
    detect,
    read,
    write: Some(Writer::File(write)),
};

fn detect(sample: &Sample<'_>) -> bool {
    const BEGINNINGS: [&[u8]; 3] = [b"[{\"events\":", b"[{\"committed\":", b"[]]"];
    const UNDER: &[u8] = b"\"data\":";
    if sample.names.is_some() {
        return false;
    }
    let head = json_stream::squeezed(sample.head, sample.head.len());
    if head.starts_with(b"{") {
        let data = memchr::memmem::find(&head, UNDER).map(|at| &head[at + UNDER.len()..]);
        let first = data.and_then(first_session);
        return head.starts_with(b"{\"params\":{")
            || first.is_some_and(|it| it.starts_with(b"[{") || it.starts_with(b"[]]"));
    }
    let first = first_session(&head);
    first.is_some_and(|it| BEGINNINGS.iter().any(|start| it.starts_with(start)))
}

/// The sessions of an array from the first on that has a transaction, or the last.
fn first_session(sessions: &[u8]) -> Option<&[u8]> {
    let mut rest = sessions.strip_prefix(b"[")?;
    while let Some(after) = rest.strip_prefix(b"[],") {
        rest = after;
    }
    Some(rest)
}

fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    let mut source = input.file()?;
    builder.position_unit(PositionUnit::Record);
    let mut events = Events::default();
    let reading = Reading { events: &mut events, values: builder.values() };
    json_stream::read(&mut source, "a dbcop history", reading)?;
    events.build(builder);
    Ok(())
}

/// Collects events while the JSON is parsed, level by level.
struct Reading<'r> {
    events: &'r mut Events,
    values: &'r mut Values,
}

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array of sessions, or an object with them under `data`")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(name) = map.next_key::<String>()? {
            if name == "data" && !found {
                found = true;
                map.next_value_seed(Sessions(&mut self))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if found { Ok(()) } else { Err(serde::de::Error::missing_field("data")) }
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, sessions: A) -> Result<(), A::Error> {
        Sessions(&mut self).visit_seq(sessions)
    }
}

struct Sessions<'s, 'r>(&'s mut Reading<'r>);
struct Session<'s, 'r>(&'s mut Reading<'r>);

impl<'de> DeserializeSeed<'de> for Sessions<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> DeserializeSeed<'de> for Session<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Sessions<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array of sessions")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sessions: A) -> Result<(), A::Error> {
        while sessions.next_element_seed(Session(self.0))?.is_some() {
            self.0.events.end_session();
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Session<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array of transactions")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut txns: A) -> Result<(), A::Error> {
        while let Some(txn) = txns.next_element::<JsonTxn>()? {
            for event in txn.events {
                let (write, variable, version) = event.parts();
                if write && version.is_none() {
                    return Err(serde::de::Error::custom("a write without a version"));
                }
                let position = u32::try_from(self.0.events.len() + 1).unwrap_or(u32::MAX);
                let variable = match variable {
                    Variable::Number(number) => self.0.values.unsigned(number),
                    Variable::Name(name) => self.0.values.text(&name),
                };
                self.0.events.event(Event { write, variable, version, position });
            }
            self.0.events.end_txn(txn.committed);
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct JsonTxn {
    events: Vec<JsonEvent>,
    committed: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum JsonEvent {
    Long(LongEvent),
    Compact(Letter, Variable, Option<u64>),
}

#[derive(Deserialize)]
enum LongEvent {
    Read { variable: Variable, version: Option<u64> },
    Write { variable: Variable, version: Option<u64> },
}

#[derive(Deserialize)]
enum Letter {
    #[serde(rename = "r")]
    Read,
    #[serde(rename = "w")]
    Write,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Variable {
    Number(u64),
    Name(String),
}

impl JsonEvent {
    /// Whether it is a write, its variable and its version.
    fn parts(self) -> (bool, Variable, Option<u64>) {
        match self {
            JsonEvent::Long(LongEvent::Read { variable, version })
            | JsonEvent::Compact(Letter::Read, variable, version) => (false, variable, version),
            JsonEvent::Long(LongEvent::Write { variable, version })
            | JsonEvent::Compact(Letter::Write, variable, version) => (true, variable, version),
        }
    }
}

fn write(history: &History, out: &mut dyn Write) -> Result<Vec<String>, WriteError> {
    let mut losses = Losses::default();
    let abilities = Abilities { aborted: true, ..Abilities::default() };
    let plan = registers::plan(history, abilities, &mut losses)?;
    registers::refuse_written_initial(history, &plan)?;
    registers::note_initial(history, &plan, Datum::Nil, &mut losses);
    let numbers = Numbers::new(history, &plan, &mut losses);
    let mut out = BufWriter::with_capacity(1 << 16, out);
    out.write_all(b"[")?;
    for session in history.sessions() {
        out.write_all(if session.0 == 0 { b"\n[" } else { b",\n[" })?;
        let mut separator = "\n";
        for txn in history.txns_of(session).filter(|&txn| plan.is_kept(txn)) {
            if history.txn_label(txn) != Value::NIL {
                losses.add("labels of transactions");
            }
            write!(out, "{separator}{{\"events\":[")?;
            separator = ",\n";
            let mut comma = "";
            for op in history.ops_of(txn).map(|op| history.op(op)) {
                let Some(version) = numbers.version(op.key, op.value) else {
                    continue;
                };
                let event = if op.kind.is_write() { "Write" } else { "Read" };
                let version = match version {
                    Version::Number(number) => number.to_string(),
                    Version::Initial if op.kind.is_write() => "0".into(),
                    Version::Initial => "null".into(),
                };
                let key = numbers.key(op.key);
                write!(out, "{comma}{{\"{event}\":{{\"variable\":{key},\"version\":{version}}}}}")?;
                comma = ",";
            }
            let committed = history.outcome(txn) != Outcome::Aborted;
            write!(out, "],\"committed\":{committed}}}")?;
        }
        out.write_all(b"]")?;
    }
    out.write_all(b"\n]\n")?;
    out.flush()?;
    Ok(losses.sentences())
}
