//! A line of JSON as a message.

use super::{Hello, Kind, ROWS_MAX, Row, Scalar, Sink, Unit, VERSION};
use crate::error::excerpt;
use crate::value::is_visible;
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// What lines before have said.
#[derive(Default)]
pub(super) struct Reader {
    unit: Option<Unit>,
    /// The client of lines that name none.
    client: Option<u32>,
}

/// Everything a line may say. What it does not know is refused: a word with a mistake in it
/// would be an operation that nobody looks at.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    isolde: Option<Cow<'a, str>>,
    #[serde(borrow)]
    client: Option<Text<'a>>,
    #[serde(borrow)]
    token: Option<Cow<'a, str>>,
    #[serde(borrow)]
    resume: Option<Cow<'a, str>>,
    #[serde(borrow)]
    unit: Option<Cow<'a, str>>,
    merged: Option<bool>,
    #[serde(borrow)]
    values: Option<Cow<'a, str>>,
    running: Option<u64>,
    statement: Option<u64>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    tags: Option<Cow<'a, str>>,
    by: Option<u64>,
    unseen: Option<Times>,
    txn: Option<u64>,
    begin: Option<Times>,
    read: Option<Times>,
    lock: Option<Times>,
    write: Option<Times>,
    commit: Option<Times>,
    abort: Option<Times>,
    lost: Option<Times>,
    #[serde(borrow)]
    rows: Option<Rows<'a>>,
    heartbeat: Option<i64>,
    bye: Option<bool>,
    broken: Option<bool>,
}

/// When it was asked for, and when the answer came, if it did.
#[derive(serde::Deserialize, Clone, Copy)]
struct Times(i64, Option<i64>);

impl Line<'_> {
    fn event(&self) -> Result<Option<(Kind, Times)>, String> {
        let times =
            [self.begin, self.read, self.lock, self.write, self.commit, self.abort, self.lost];
        let mut found = times.iter().zip(Kind::ALL).filter_map(|(times, (_, kind))| {
            let times = (*times)?;
            Some((kind, times))
        });
        let first = found.next();
        match found.next() {
            None => Ok(first),
            Some(_) => Err("expected one event, found several in one line".into()),
        }
    }

    /// What a proxy says beside events; nothing if it is something else.
    fn beside(
        &self,
        client: Option<u32>,
        unit: Unit,
        sink: &mut dyn Sink,
    ) -> Option<Result<(), String>> {
        if let Some(number) = self.statement {
            let Some(text) = &self.text else {
                return Some(Err("expected the `text` of a statement, found none".into()));
            };
            sink.statement(number, text, self.tags.as_deref().unwrap_or_default());
            return Some(Ok(()));
        }
        if let Some(number) = self.running {
            sink.running(number);
            return Some(Ok(()));
        }
        let Times(invoked, completed) = self.unseen?;
        let (Some(client), Some(txn)) = (client, self.txn) else {
            return Some(Err("expected `client` and `txn` of what was unseen, found none".into()));
        };
        let interval = unit.interval(invoked, completed);
        Some(interval.and_then(|interval| sink.unseen(client, txn, interval)))
    }
}

impl Reader {
    pub(super) fn message(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), String> {
        if bytes.trim_ascii().is_empty() {
            return Ok(());
        }
        let line: Line<'_> = serde_json::from_slice(bytes).map_err(|error| {
            let why = shown(&error.to_string());
            format!("expected a message of a trace, found {}: {why}", excerpt(bytes))
        })?;
        let Some(unit) = self.unit else { return self.hello(&line, bytes, sink) };
        let unexpected = || format!("expected a message of a trace, found {}", excerpt(bytes));
        let of_head = [&line.isolde, &line.token, &line.resume, &line.unit, &line.values];
        if of_head.into_iter().any(Option::is_some) || line.merged.is_some() {
            return Err("expected one head, in the first line, found another".into());
        }
        let named = match &line.client {
            Some(name) => Some(sink.client(&name.0)?),
            None => None,
        };
        if let Some((kind, Times(invoked, completed))) = line.event()? {
            let client = named.or(self.client).ok_or("expected a `client`, found none")?;
            let txn = line.txn.ok_or("expected the number of a transaction, `txn`, found none")?;
            if line.rows.is_some() && !kind.has_rows() {
                return Err("expected `rows` for read, lock and write alone".into());
            }
            let rows = line.rows.as_ref().map_or(&[][..], |rows| &rows.0);
            if rows.is_empty() && kind == Kind::Write {
                return Err("expected the `rows` that were written, found none".into());
            }
            let rows: Vec<Row<'_>> = rows.iter().map(JsonRow::row).collect();
            if let Some(statement) = line.by {
                sink.by(statement);
            }
            return sink.event(client, txn, kind, unit.interval(invoked, completed)?, &rows);
        }
        if let Some(told) = line.beside(named.or(self.client), unit, sink) {
            return told;
        }
        match (line.heartbeat, line.bye, line.broken, named) {
            (Some(time), None, None, _) => sink.heartbeat(named, unit.time(time)?),
            (None, Some(true), None, _) => sink.bye(named),
            (None, None, Some(true), Some(client)) => sink.broken(client),
            // A client may be announced before it does anything.
            (None, None, None, Some(_)) => Ok(()),
            _ => Err(unexpected()),
        }
    }

    fn hello(&mut self, line: &Line<'_>, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), String> {
        let wanted = format!("trace {VERSION}");
        if line.isolde.as_deref() != Some(&wanted) {
            return Err(format!(
                "expected the head of a trace, {{\"isolde\":\"{wanted}\"}}, found {}",
                excerpt(bytes)
            ));
        }
        let unit = line.unit.as_deref().unwrap_or("ns");
        let known = Unit::ALL.iter().find(|(name, _)| *name == unit);
        let (_, unit) = known.ok_or_else(|| {
            format!("expected a unit (ns, us, ms, s), found {}", excerpt(unit.as_bytes()))
        })?;
        let client = line.client.as_ref().map(|name| name.0.as_ref());
        let (token, resume) = (line.token.as_deref(), line.resume.as_deref());
        let is_merged = line.merged == Some(true);
        sink.hello(Hello { client, token, resume, is_merged })?;
        match line.values.as_deref() {
            None => {}
            Some("versions") => sink.values_are_versions(),
            Some(other) => {
                let found = excerpt(other.as_bytes());
                return Err(format!("expected `versions` as what values are, found {found}"));
            }
        }
        if let Some(name) = client {
            self.client = Some(sink.client(name)?);
        }
        self.unit = Some(*unit);
        Ok(())
    }
}

/// What a reader of JSON complains of, which repeats what it found, whatever that is: as much
/// of it as fits on a line, and nothing that a terminal would take for a command.
fn shown(complaint: &str) -> String {
    const CHARACTERS_MAX: usize = 200;
    let printable = |character| if is_visible(character) { character } else { '\u{fffd}' };
    let mut shown: String = complaint.chars().take(CHARACTERS_MAX).map(printable).collect();
    if complaint.chars().nth(CHARACTERS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// A text, or a number as its text.
struct Text<'a>(Cow<'a, str>);

/// A text, a whole number, or nothing.
enum JsonScalar<'a> {
    Absent,
    Integer(i64),
    Text(Cow<'a, str>),
}

impl JsonScalar<'_> {
    fn scalar(&self) -> Scalar<'_> {
        match self {
            JsonScalar::Absent => Scalar::Absent,
            JsonScalar::Integer(number) => Scalar::Integer(*number),
            JsonScalar::Text(text) => Scalar::Text(text),
        }
    }
}

struct JsonRow<'a> {
    table: Cow<'a, str>,
    key: JsonScalar<'a>,
    column: Option<Cow<'a, str>>,
    value: JsonScalar<'a>,
}

impl JsonRow<'_> {
    fn row(&self) -> Row<'_> {
        Row {
            table: &self.table,
            key: self.key.scalar(),
            column: self.column.as_deref(),
            value: self.value.scalar(),
        }
    }
}

struct Rows<'a>(Vec<JsonRow<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Text(match JsonScalar::deserialize(deserializer)? {
            JsonScalar::Text(text) => text,
            JsonScalar::Integer(number) => number.to_string().into(),
            JsonScalar::Absent => return Err(de::Error::custom("expected a name, found null")),
        }))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonScalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = JsonScalar<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a number, a text, true, false or null")
    }
    fn visit_unit<E>(self) -> Result<JsonScalar<'de>, E> {
        Ok(JsonScalar::Absent)
    }
    fn visit_i64<E>(self, number: i64) -> Result<JsonScalar<'de>, E> {
        Ok(JsonScalar::Integer(number))
    }
    fn visit_u64<E>(self, number: u64) -> Result<JsonScalar<'de>, E> {
        Ok(i64::try_from(number)
            .map_or_else(|_| JsonScalar::Text(number.to_string().into()), JsonScalar::Integer))
    }
    // What is no whole number is compared as it is written.
    fn visit_f64<E>(self, number: f64) -> Result<JsonScalar<'de>, E> {
        Ok(JsonScalar::Text(number.to_string().into()))
    }
    fn visit_bool<E>(self, is_true: bool) -> Result<JsonScalar<'de>, E> {
        Ok(JsonScalar::Text(if is_true { "true".into() } else { "false".into() }))
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<JsonScalar<'de>, E> {
        Ok(JsonScalar::Text(text.into()))
    }
    fn visit_str<E>(self, text: &str) -> Result<JsonScalar<'de>, E> {
        Ok(JsonScalar::Text(text.to_owned().into()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Rows<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(RowsVisitor)
    }
}

struct RowsVisitor;

impl<'de> Visitor<'de> for RowsVisitor {
    type Value = Rows<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("rows, each [table, key, value] or [table, key, column, value]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Rows<'de>, A::Error> {
        let mut rows = Vec::new();
        while let Some(row) = list.next_element()? {
            if rows.len() == ROWS_MAX {
                return Err(de::Error::custom(format_args!("expected at most {ROWS_MAX} rows")));
            }
            rows.push(row);
        }
        Ok(Rows(rows))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonRow<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(RowVisitor)
    }
}

struct RowVisitor;

impl<'de> Visitor<'de> for RowVisitor {
    type Value = JsonRow<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("[table, key, value] or [table, key, column, value]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<JsonRow<'de>, A::Error> {
        let mut next = |place: usize| {
            list.next_element::<JsonScalar<'de>>()?
                .ok_or_else(|| de::Error::invalid_length(place, &"three or four"))
        };
        let table = next(0)?;
        let key = next(1)?;
        let third = next(2)?;
        let fourth = list.next_element::<JsonScalar<'de>>()?;
        if list.next_element::<IgnoredAny>()?.is_some() {
            return Err(de::Error::invalid_length(5, &"three or four"));
        }
        let JsonScalar::Text(table) = table else {
            return Err(de::Error::custom("expected the name of a table"));
        };
        if matches!(key, JsonScalar::Absent) {
            return Err(de::Error::custom("expected the key of a row, found null"));
        }
        match (third, fourth) {
            (value, None) => Ok(JsonRow { table, key, column: None, value }),
            (JsonScalar::Text(column), Some(value)) => {
                Ok(JsonRow { table, key, column: Some(column), value })
            }
            (_, Some(_)) => Err(de::Error::custom("expected the name of a column")),
        }
    }
}
