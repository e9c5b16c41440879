//! Histories of Jepsen, Elle and Knossos in EDN.
//!
//! One map a line, one vector or list of maps, or records
//! (`#jepsen.history.Op{…}`), with the fields `:index :time :type :process :f
//! :value :error` in any order; others are stepped over. Described in the README
//! of jepsen-io/history and, with the readings taken here, in
//! `docs/formats/jepsen.md`. Tolerated: comments, commas, discarded forms, forms
//! over several lines, several forms on one, missing fields other than `:type`.
//!
//! Parsing runs on a thread of its own, ahead of building, when a source is
//! larger than one window.

use super::meaning::RefusedSet;
use super::write;
use super::{Assembly, Batch, Record, Step};
use crate::builder::HistoryBuilder;
use crate::error::{Place, ReadError};
use crate::format::edn::{Scanner, Stop};
use crate::format::form::Node;
use crate::format::{Format, Input, Sample, Writer};
use crate::source::Source;
use std::sync::mpsc;

/// The row of the table of formats.
pub(in crate::format) const FORMAT: Format = Format {
    name: "jepsen-edn",
    title: "Jepsen, Elle and Knossos histories in EDN",
    detect: |sample| first_record(sample).is_some_and(|found| !found.has_store_key),
    read,
    write: Some(Writer::File(write::write_edn)),
};

/// Porcupine's key-value logs are the same notation with a field `:key`.
pub(in crate::format) const PORCUPINE_KV: Format = Format {
    name: "porcupine-kv",
    title: "Porcupine key-value logs",
    detect: |sample| first_record(sample).is_some_and(|found| found.has_store_key),
    read,
    write: None,
};

fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    let source = input.file()?;
    let name = source.name().to_owned();
    let mut assembly = Assembly::new(builder, &name, RefusedSet::Nothing);
    let mut parser = Parser { source, closer: None };
    let mut batch = Batch::default();
    // A small source has one batch and is not worth a thread.
    for _ in 0..2 {
        if !parser.next(&mut batch)? {
            return assembly.finish();
        }
        assembly.add(&batch)?;
    }
    read_ahead(parser, batch, &mut assembly)?;
    assembly.finish()
}

/// Batches on their way at once: enough that neither side waits for long.
const BATCHES_AHEAD: usize = 4;

fn read_ahead(
    mut parser: Parser<'_>,
    first: Batch,
    assembly: &mut Assembly<'_>,
) -> Result<(), ReadError> {
    let (full_sender, full) = mpsc::sync_channel::<Batch>(BATCHES_AHEAD);
    let (used_sender, used) = mpsc::channel::<Batch>();
    // A send fails only when the other side has given up, which ends this one.
    let _ = used_sender.send(first);
    let file = parser.source.name().to_owned();
    std::thread::scope(|scope| {
        let parse = move || -> Result<(), ReadError> {
            loop {
                let mut batch = used.try_recv().unwrap_or_default();
                if !parser.next(&mut batch)? || full_sender.send(batch).is_err() {
                    return Ok(());
                }
            }
        };
        let parsing = std::thread::Builder::new().spawn_scoped(scope, parse);
        let parsing = parsing.map_err(|error| ReadError::no_thread(&file, &error))?;
        // What is wrong earlier in the source is reported first.
        for batch in full {
            assembly.add(&batch)?;
            let _ = used_sender.send(batch);
        }
        match parsing.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Less than this is not looked at unless the source ends.
const WINDOW_BYTES_MIN: usize = 1 << 18;

/// Finds records in a source.
struct Parser<'a> {
    source: Source<'a>,
    /// What ends the vector or list that the records stand in.
    closer: Option<u8>,
}

impl Parser<'_> {
    /// The next records, a window of them; `false` at the end of the source.
    fn next(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        let mut ends = false;
        loop {
            batch.clear();
            let mut window = Window {
                scanner: Scanner::new(self.source.window(), ends).with_number_lists(),
                closer: self.closer,
            };
            let (done, stop) = window.records(batch);
            if let Some(Stop::Malformed { at, expected }) = stop {
                return Err(self.malformed(at, expected));
            }
            let closer = window.closer;
            let bytes = &self.source.window()[..done];
            if std::str::from_utf8(bytes).is_err() {
                return Err(self.not_utf8(done));
            }
            batch.bytes.extend_from_slice(bytes);
            number_lines(batch, self.source.line());
            self.closer = closer;
            self.source.consume(done);
            self.step_over_blanks();
            if !batch.records.is_empty() {
                return Ok(true);
            }
            if ends {
                return match stop {
                    None if self.closer.is_none() => Ok(false),
                    _ => Err(self.truncated()),
                };
            }
            // Twice as much each time, so that a long form is not tried again and
            // again as it trickles in.
            let wanted = (2 * self.source.window().len()).max(WINDOW_BYTES_MIN);
            self.source.fill_to(wanted)?;
            ends = self.source.window().len() < wanted;
        }
    }

    /// Moves on to where the next form begins, which is the place that messages name.
    fn step_over_blanks(&mut self) {
        let is_blank = |byte: &&u8| byte.is_ascii_whitespace() || **byte == b',';
        let count = self.source.window().iter().take_while(is_blank).count();
        self.source.consume(count);
    }

    fn malformed(&self, at: usize, expected: &str) -> ReadError {
        let window = self.source.window();
        let line = self.source.line() + memchr::memchr_iter(b'\n', &window[..at]).count() as u64;
        ReadError::expected(
            self.source.name(),
            Place::Line(line),
            expected,
            window[at..].trim_ascii_start(),
        )
    }

    fn not_utf8(&self, done: usize) -> ReadError {
        let window = &self.source.window()[..done];
        let at = match std::str::from_utf8(window) {
            Ok(_) => done,
            Err(error) => error.valid_up_to(),
        };
        self.malformed(at, "text in UTF-8")
    }

    fn truncated(&self) -> ReadError {
        let expected = match self.closer {
            Some(b']') if self.source.window().trim_ascii().is_empty() => "a record or `]`",
            Some(_) if self.source.window().trim_ascii().is_empty() => "a record or `)`",
            _ => "the rest of this form",
        };
        // A comment or discarded form may stand before the one that is cut.
        let window = self.source.window();
        let mut scanner = Scanner::new(window, true);
        let before = if scanner.blank().is_ok() { &window[..scanner.at()] } else { &[][..] };
        let line = self.source.line() + memchr::memchr_iter(b'\n', before).count() as u64;
        ReadError::expected(self.source.name(), Place::Line(line), expected, b"")
            .hint("the file seems to be cut off")
    }
}

/// Tells each record the line it begins on; the first byte is on line `first`.
fn number_lines(batch: &mut Batch, first: u64) {
    let mut ends = memchr::memchr_iter(b'\n', &batch.bytes).peekable();
    let mut line = first;
    for record in &mut batch.records {
        while ends.next_if(|&end| end < record.bytes.0 as usize).is_some() {
            line += 1;
        }
        record.line = u32::try_from(line).unwrap_or(u32::MAX);
    }
}

/// One window of a source being searched for records.
struct Window<'a> {
    scanner: Scanner<'a>,
    closer: Option<u8>,
}

impl Window<'_> {
    /// Adds all whole records of the window. Returns up to where it is done with,
    /// and what stopped it there.
    fn records(&mut self, batch: &mut Batch) -> (usize, Option<Stop>) {
        let mut done = 0;
        loop {
            let nodes = batch.nodes.len();
            match self.piece(batch) {
                Ok(true) => done = self.scanner.at(),
                Ok(false) => return (self.scanner.at(), None),
                Err(stop) => {
                    batch.nodes.truncate(nodes);
                    return (done, Some(stop));
                }
            }
        }
    }

    /// A record, or the beginning or end of the sequence around the records;
    /// `false` at the end of the window.
    fn piece(&mut self, batch: &mut Batch) -> Result<bool, Stop> {
        let Some(byte) = self.scanner.blank()? else {
            return Ok(false);
        };
        match (byte, self.closer) {
            (b'[', None) => self.closer = Some(b']'),
            (b'(', None) => self.closer = Some(b')'),
            (closer, Some(expected)) if closer == expected => self.closer = None,
            (b'{' | b'#', _) => {
                let record = record(&mut self.scanner, batch)?;
                batch.records.push(record);
                return Ok(true);
            }
            _ => return Err(self.scanner.wrong("an operation like `{:type :ok, …}`")),
        }
        self.scanner.advance(1);
        Ok(true)
    }
}

/// The record that the scanner stands on.
fn record(scanner: &mut Scanner<'_>, batch: &mut Batch) -> Result<Record, Stop> {
    let start = scanner.at();
    let first_node = batch.nodes.len();
    scanner.rebase();
    if !scanner.enter_map()? {
        return Err(scanner.wrong("an operation like `{:type :ok, …}`"));
    }
    let mut record = Record::new(0);
    let mut has_step = false;
    loop {
        match scanner.blank()? {
            None => return Err(Stop::Incomplete),
            Some(b'}') => break,
            Some(_) => {}
        }
        let field = field(scanner)?;
        value_follows(scanner)?;
        match field {
            Field::Type => {
                record.step = step(scanner)?;
                has_step = true;
            }
            Field::Index => record.index = integer(scanner.leaf()?),
            Field::Time => record.time = integer(scanner.leaf()?).filter(|&time| time != -1),
            Field::Process => record.process = scanner.leaf()?,
            Field::Function => record.function = scanner.leaf()?,
            Field::Key => record.key = scanner.leaf()?,
            Field::Value => {
                record.value = Some((batch.nodes.len() - first_node) as u32);
                scanner.form(&mut batch.nodes)?;
            }
            Field::Error => {
                record.error = Some((batch.nodes.len() - first_node) as u32);
                scanner.form(&mut batch.nodes)?;
            }
            Field::Other => scanner.skip()?,
        }
    }
    if !has_step {
        return Err(Stop::Malformed { at: start, expected: "an operation with a `:type`" });
    }
    scanner.advance(1);
    record.nodes = (first_node as u32, (batch.nodes.len() - first_node) as u32);
    record.bytes = (start as u32, (scanner.at() - start) as u32);
    Ok(record)
}

/// The fields that matter.
#[derive(Clone, Copy)]
enum Field {
    Type,
    Index,
    Time,
    Process,
    Function,
    Key,
    Value,
    Error,
    Other,
}

/// The field whose name the scanner stands on.
#[inline]
fn field(scanner: &mut Scanner<'_>) -> Result<Field, Stop> {
    // Names as nearly every file has them: one look instead of a scan.
    let (field, length) = match scanner.rest() {
        [b':', b'i', b'n', b'd', b'e', b'x', b' ', ..] => (Field::Index, 7),
        [b':', b't', b'i', b'm', b'e', b' ', ..] => (Field::Time, 6),
        [b':', b't', b'y', b'p', b'e', b' ', ..] => (Field::Type, 6),
        [b':', b'p', b'r', b'o', b'c', b'e', b's', b's', b' ', ..] => (Field::Process, 9),
        [b':', b'f', b' ', ..] => (Field::Function, 3),
        [b':', b'v', b'a', b'l', b'u', b'e', b' ', ..] => (Field::Value, 7),
        _ => return rarer_field(scanner),
    };
    scanner.advance(length);
    Ok(field)
}

fn rarer_field(scanner: &mut Scanner<'_>) -> Result<Field, Stop> {
    let Some(name) = scanner.keyword()? else {
        scanner.skip()?;
        return Ok(Field::Other);
    };
    Ok(match name {
        b"type" => Field::Type,
        b"index" => Field::Index,
        b"time" => Field::Time,
        b"process" => Field::Process,
        b"f" => Field::Function,
        b"key" => Field::Key,
        b"value" => Field::Value,
        b"error" => Field::Error,
        _ => Field::Other,
    })
}

#[inline]
fn value_follows(scanner: &mut Scanner<'_>) -> Result<(), Stop> {
    match scanner.blank()? {
        None => Err(Stop::Incomplete),
        Some(b'}') => Err(scanner.wrong("a value for the last key")),
        Some(_) => Ok(()),
    }
}

#[inline]
fn step(scanner: &mut Scanner<'_>) -> Result<Step, Stop> {
    let at = scanner.at();
    let name = scanner.keyword()?;
    name.and_then(Step::named)
        .ok_or(Stop::Malformed { at, expected: "`:invoke`, `:ok`, `:fail` or `:info`" })
}

fn integer(node: Node) -> Option<i64> {
    match node {
        Node::Int(number) => Some(number),
        _ => None,
    }
}

struct FirstRecord {
    has_store_key: bool,
}

/// What the beginning of a source shows, if it begins with a record of Jepsen.
fn first_record(sample: &Sample<'_>) -> Option<FirstRecord> {
    if sample.names.is_some() {
        return None;
    }
    let mut batch = Batch::default();
    let mut window = Window { scanner: Scanner::new(sample.head, false), closer: None };
    while batch.records.is_empty() {
        match window.piece(&mut batch) {
            Ok(true) => {}
            Err(Stop::Incomplete) => return long_first_record(sample.head),
            // The source may end with its only record.
            Ok(false) | Err(_) => return None,
        }
    }
    batch.bytes.extend_from_slice(sample.head);
    let view = batch.views().next()?;
    // Viper's logs say of each read and write whether it is dead or succeeded.
    let is_viper = view.value().is_sequence()
        && view.value().members().any(|mop| {
            let name = mop.members().next().and_then(crate::format::form::Form::word);
            matches!(name, Some(b"r" | b"w")) && mop.members().count() > 3
        });
    let is_store = matches!(view.function().word(), Some(b"get" | b"put" | b"append"));
    (!is_viper).then_some(FirstRecord { has_store_key: is_store && !view.key().is_nil() })
}

/// A first record longer than the sample: its first field must do.
fn long_first_record(head: &[u8]) -> Option<FirstRecord> {
    let text = head.trim_ascii_start();
    let text = text.strip_prefix(b"[").or(text.strip_prefix(b"(")).unwrap_or(text);
    let is_ours = [&b"{:type :"[..], b"{:index ", b"{:process ", b"#jepsen.history.Op"]
        .iter()
        .any(|beginning| text.trim_ascii_start().starts_with(beginning));
    is_ours.then_some(FirstRecord { has_store_key: false })
}
