//! dbcop's `.hist` text: `[x:=1 y==2 z==?]` is a transaction, `!` behind it an
//! aborted one, a line of `-` ends a session.
//!
//! Described in dbcop's `docs/history-format.md`. `x==?` read the initial state, and
//! so did `x==0` where nobody writes 0 to `x`.

use super::events::{Event, Events};
use crate::builder::HistoryBuilder;
use crate::error::{Place, ReadError};
use crate::format::registers::{self, Abilities, Losses, Numbers, Version};
use crate::format::{Format, Input, Sample, WriteError, Writer};
use crate::history::{History, KeyId, Outcome};
use crate::value::{Datum, Value};
use std::io::{BufWriter, Write};

pub(in crate::format) const FORMAT: Format = Format {
    name: "dbcop-hist",
    title: "dbcop's text (.hist)",
    detect,
    read,
    write: Some(Writer::File(write)),
};

/// The first line that is neither blank, comment nor separator must be a whole
/// line of transactions.
fn detect(sample: &Sample<'_>) -> bool {
    if sample.names.is_some() {
        return false;
    }
    let lines = sample.head.split(|&byte| byte == b'\n');
    let mut lines = lines.map(<[u8]>::trim_ascii);
    let first =
        lines.find(|line| !line.is_empty() && !line.starts_with(b"//") && !is_separator(line));
    first.is_some_and(|line| line.starts_with(b"[") && parse_line(line, &mut |_| {}).is_ok())
}

fn is_separator(line: &[u8]) -> bool {
    !line.is_empty() && line.iter().all(|&byte| byte == b'-')
}

/// What a line of transactions says, in order.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'l> {
    Write(&'l str, u64),
    Read(&'l str, Option<u64>),
    End { committed: bool },
}

/// Expected and found where a line does not fit.
type Mismatch<'l> = (&'static str, &'l [u8]);

fn parse_line<'l>(line: &'l [u8], piece: &mut dyn FnMut(Piece<'l>)) -> Result<(), Mismatch<'l>> {
    let mut rest = line.trim_ascii();
    while !rest.is_empty() {
        let inside = rest.strip_prefix(b"[").ok_or(("`[` before a transaction", rest))?;
        let end = memchr::memchr(b']', inside).ok_or(("`]` behind the transaction", rest))?;
        let mut events = 0;
        for event in inside[..end].split(|byte| matches!(byte, b' ' | b'\t')) {
            if !event.is_empty() {
                let expected = "`x:=1`, `x==1` or `x==?`";
                piece(parse_event(event).ok_or((expected, event))?);
                events += 1;
            }
        }
        if events == 0 {
            return Err(("an event in the transaction", rest));
        }
        rest = &inside[end + 1..];
        let aborted = rest.strip_prefix(b"!");
        let committed = aborted.is_none();
        rest = aborted.unwrap_or(rest).trim_ascii_start();
        piece(Piece::End { committed });
    }
    Ok(())
}

fn parse_event(event: &[u8]) -> Option<Piece<'_>> {
    let event = std::str::from_utf8(event).ok()?;
    let end = event.find([':', '='])?;
    let (variable, rest) = event.split_at(end);
    let word = |character: char| character.is_alphanumeric() || character == '_';
    if variable.is_empty() || !variable.chars().all(word) {
        return None;
    }
    let version = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        if digits { text.parse().ok() } else { None }
    };
    if let Some(text) = rest.strip_prefix(":=") {
        return Some(Piece::Write(variable, version(text)?));
    }
    match rest.strip_prefix("==")? {
        "?" => Some(Piece::Read(variable, None)),
        text => Some(Piece::Read(variable, Some(version(text)?))),
    }
}

fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    let mut source = input.file()?;
    let name = source.name().to_owned();
    let mut events = Events::default();
    loop {
        let number = source.line();
        let Some(line) = source.next_line()? else {
            break;
        };
        let line = line.trim_ascii();
        if line.starts_with(b"//") {
            continue;
        }
        if is_separator(line) {
            events.end_session();
            continue;
        }
        let position = u32::try_from(number).unwrap_or(u32::MAX);
        let mut event = |write, variable: &str, version| {
            let variable = builder.values().text(variable);
            Event { write, variable, version, position }
        };
        parse_line(line, &mut |piece| match piece {
            Piece::Write(variable, version) => events.event(event(true, variable, Some(version))),
            Piece::Read(variable, version) => events.event(event(false, variable, version)),
            Piece::End { committed } => events.end_txn(committed),
        })
        .map_err(|(expected, found)| {
            ReadError::expected(&name, Place::Line(number), expected, found)
        })?;
    }
    events.end_session();
    events.build(builder);
    Ok(())
}

fn write(history: &History, out: &mut dyn Write) -> Result<Vec<String>, WriteError> {
    let mut losses = Losses::default();
    let abilities = Abilities { aborted: true, ..Abilities::default() };
    let plan = registers::plan(history, abilities, &mut losses)?;
    registers::refuse_written_initial(history, &plan)?;
    registers::note_initial(history, &plan, Datum::Nil, &mut losses);
    let mut key_losses = Losses::default();
    let numbers = Numbers::new(history, &plan, &mut key_losses);
    let words = words(history);
    // Keys have names here, whatever their numbers are.
    for loss in key_losses.sentences() {
        if loss != "keys are numbered from 0" {
            losses.add(&loss);
        }
    }
    if words.is_none() {
        losses.add("keys are named k0, k1 and so on");
    }
    let name = |key: KeyId| match &words {
        Some(words) => words[key.index()].clone(),
        None => format!("k{}", key.0),
    };
    let mut out = BufWriter::with_capacity(1 << 16, out);
    for session in history.sessions() {
        if session.0 > 0 {
            out.write_all(b"---\n")?;
        }
        for txn in history.txns_of(session).filter(|&txn| plan.is_kept(txn)) {
            if history.txn_label(txn) != Value::NIL {
                losses.add("labels of transactions");
            }
            let mut before = "[";
            for op in history.ops_of(txn).map(|op| history.op(op)) {
                let Some(version) = numbers.version(op.key, op.value) else {
                    continue;
                };
                let name = name(op.key);
                let sign = if op.kind.is_write() { ":=" } else { "==" };
                match version {
                    Version::Number(number) => write!(out, "{before}{name}{sign}{number}")?,
                    Version::Initial if op.kind.is_write() => write!(out, "{before}{name}:=0")?,
                    Version::Initial => write!(out, "{before}{name}==?")?,
                }
                before = " ";
            }
            if before == "[" {
                losses.add("transactions without operations are left out");
                continue;
            }
            let aborted = history.outcome(txn) == Outcome::Aborted;
            out.write_all(if aborted { b"]!\n" } else { b"]\n" })?;
        }
    }
    out.flush()?;
    Ok(losses.sentences())
}

/// The names of all keys, if each is a word of the format.
fn words(history: &History) -> Option<Vec<String>> {
    let word = |key: KeyId| match history.datum(history.key_name(key)) {
        Datum::Text(text)
            if !text.is_empty()
                && !text.starts_with(|first: char| first.is_ascii_digit())
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') =>
        {
            Some(text.to_owned())
        }
        _ => None,
    };
    history.keys().map(word).collect()
}
