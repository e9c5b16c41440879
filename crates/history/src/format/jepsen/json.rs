//! Jepsen histories as JSON: one array of objects, or one object a line.
//!
//! This is what elle-cli reads: the field names of [`super::edn`] as
//! strings, `"ok"` for `:ok`. The first member of each small operation is its
//! name. Keys of objects that are integers are taken as integers, since JSON has
//! no other way to write a map of numbers. Objects are found in the source one by
//! one and never held together.

use super::meaning::RefusedSet;
use super::write;
use super::{Assembly, Batch, Record, Step};
use crate::builder::HistoryBuilder;
use crate::error::{Place, ReadError, excerpt};
use crate::format::form::{Bracket, Node, Span};
use crate::format::{Format, Input, Sample, Writer, json_stream};
use crate::source::Source;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use std::fmt;

/// The row of the table of formats.
pub(in crate::format) const FORMAT: Format = Format {
    name: "jepsen-json",
    title: "Jepsen histories as a JSON array or JSON lines (elle-cli)",
    detect,
    read,
    write: Some(Writer::File(write::write_json)),
};

/// Records in a batch.
const BATCH_RECORDS: usize = 1024;

fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    let mut source = input.file()?;
    let name = source.name().to_owned();
    let mut assembly = Assembly::new(builder, &name, RefusedSet::Nothing);
    let mut batch = Batch::default();
    let mut objects = Objects::default();
    while let Some(length) = objects.next(&mut source)? {
        let line = u32::try_from(source.line()).unwrap_or(u32::MAX);
        let object = &source.window()[..length];
        add_record(object, line, &mut batch).map_err(|error| {
            let line = source.line() + (error.line() as u64).saturating_sub(1);
            ReadError::new(&name, message(&error)).at(Place::Line(line))
        })?;
        source.consume(length);
        if batch.records.len() == BATCH_RECORDS {
            assembly.add(&batch)?;
            batch.clear();
        }
    }
    assembly.add(&batch)?;
    assembly.finish()
}

/// What is wrong with an object, without the place that its own line has.
fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    if text.starts_with("expected ") {
        text.to_owned()
    } else if json_stream::is_too_deep(text) {
        format!("expected an operation like {{\"type\":\"ok\",…}}, found {}", json_stream::TOO_DEEP)
    } else {
        format!("expected an operation like {{\"type\":\"ok\",…}}, found {text}")
    }
}

/// Where in the array around the objects a source is, if there is one.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Around {
    /// Nothing but blanks so far.
    #[default]
    Beginning,
    /// Objects follow one another.
    Lines,
    AfterOpening,
    AfterComma,
    AfterObject,
    AfterClosing,
}

#[derive(Default)]
struct Objects {
    around: Around,
}

impl Objects {
    /// Brings the next object to the front of the window; how long it is, or
    /// `None` at the end of the source.
    fn next(&mut self, source: &mut Source<'_>) -> Result<Option<usize>, ReadError> {
        loop {
            let window = source.window();
            let blanks = window.len() - window.trim_ascii_start().len();
            let first = window.get(blanks).copied();
            source.consume(blanks);
            let Some(first) = first else {
                if source.fill()? {
                    continue;
                }
                return match self.around {
                    Around::Beginning | Around::Lines | Around::AfterClosing => Ok(None),
                    _ => Err(wrong(source, "an object, `,` or `]`")),
                };
            };
            self.around = match (first, self.around) {
                (b'{', Around::Beginning | Around::Lines) => {
                    self.around = Around::Lines;
                    return whole_object(source).map(Some);
                }
                (b'{', Around::AfterOpening | Around::AfterComma) => {
                    self.around = Around::AfterObject;
                    return whole_object(source).map(Some);
                }
                (b'[', Around::Beginning) => Around::AfterOpening,
                (b',', Around::AfterObject) => Around::AfterComma,
                (b']', Around::AfterOpening | Around::AfterObject) => Around::AfterClosing,
                (_, Around::AfterObject) => return Err(wrong(source, "`,` or `]`")),
                (_, Around::AfterClosing) => return Err(wrong(source, "the end of the file")),
                _ => return Err(wrong(source, "an object like `{\"type\":\"ok\",…}`")),
            };
            source.consume(1);
        }
    }
}

fn wrong(source: &Source<'_>, expected: &str) -> ReadError {
    ReadError::expected(source.name(), source.place(), expected, source.window())
}

/// Reads until the object at the front of the window is whole; how long it is.
fn whole_object(source: &mut Source<'_>) -> Result<usize, ReadError> {
    let mut end = ObjectEnd::default();
    loop {
        if let Some(length) = end.find(source.window()) {
            return Ok(length);
        }
        if !source.fill()? {
            return Err(ReadError::expected(
                source.name(),
                source.place(),
                "the rest of this object",
                b"",
            )
            .hint("the file seems to be cut off"));
        }
    }
}

/// Finds where an object ends: where its braces are even outside of strings.
#[derive(Default)]
struct ObjectEnd {
    searched: usize,
    depth: usize,
    in_string: bool,
}

impl ObjectEnd {
    fn find(&mut self, window: &[u8]) -> Option<usize> {
        while let Some(&byte) = window.get(self.searched) {
            if self.in_string {
                let rest = &window[self.searched..];
                match memchr::memchr2(b'"', b'\\', rest) {
                    None => self.searched = window.len(),
                    Some(at) if rest[at] == b'"' => {
                        self.in_string = false;
                        self.searched += at + 1;
                    }
                    // The escaped byte may be beyond the window: come again.
                    Some(at) if at + 1 == rest.len() => {
                        self.searched += at;
                        return None;
                    }
                    Some(at) => self.searched += at + 2,
                }
                continue;
            }
            self.searched += 1;
            match byte {
                b'"' => self.in_string = true,
                b'{' => self.depth += 1,
                b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(self.searched);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

fn add_record(object: &[u8], line: u32, batch: &mut Batch) -> Result<(), serde_json::Error> {
    let (first_node, first_byte) = (batch.nodes.len(), batch.bytes.len());
    let mut deserializer = serde_json::Deserializer::from_slice(object);
    let mut record = deserializer.deserialize_map(RecordVisitor {
        tape: Tape { nodes: &mut batch.nodes, bytes: &mut batch.bytes, first_byte },
        first_node,
        line,
    })?;
    deserializer.end()?;
    record.nodes = (first_node as u32, (batch.nodes.len() - first_node) as u32);
    record.bytes = (first_byte as u32, (batch.bytes.len() - first_byte) as u32);
    batch.records.push(record);
    Ok(())
}

/// Where the pieces of a record go.
struct Tape<'a> {
    nodes: &'a mut Vec<Node>,
    bytes: &'a mut Vec<u8>,
    first_byte: usize,
}

impl Tape<'_> {
    fn borrow(&mut self) -> Tape<'_> {
        Tape { nodes: self.nodes, bytes: self.bytes, first_byte: self.first_byte }
    }

    fn span(&mut self, text: &str) -> Span {
        let start = self.bytes.len() - self.first_byte;
        self.bytes.extend_from_slice(text.as_bytes());
        Span { start: start as u32, length: text.len() as u32 }
    }
}

struct RecordVisitor<'a> {
    tape: Tape<'a>,
    first_node: usize,
    line: u32,
}

impl RecordVisitor<'_> {
    /// Adds the next value as a form; its place among the record's nodes.
    fn form<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<u32, A::Error> {
        let place = self.tape.nodes.len() - self.first_node;
        map.next_value_seed(FormSeed { tape: self.tape.borrow() })?;
        Ok(place as u32)
    }

    /// The next value if it is a leaf; anything else is as good as nothing.
    fn leaf<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<Node, A::Error> {
        let place = self.form(map)? as usize + self.first_node;
        let node = self.tape.nodes[place];
        self.tape.nodes.truncate(place);
        Ok(match node {
            Node::Open(..) => Node::Nil,
            leaf => leaf,
        })
    }
}

impl<'de> Visitor<'de> for RecordVisitor<'_> {
    type Value = Record;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an operation like {\"type\":\"ok\",…}")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Record, A::Error> {
        let mut record = Record::new(self.line);
        let mut has_step = false;
        let integer = |node| match node {
            Node::Int(number) => Some(number),
            _ => None,
        };
        while let Some(name) = map.next_key::<Name>()? {
            match name {
                Name::Type => {
                    let text = map.next_value::<String>()?;
                    let text = text.strip_prefix(':').unwrap_or(&text);
                    record.step = Step::named(text.as_bytes()).ok_or_else(|| {
                        let found = excerpt(text.as_bytes());
                        Error::custom(format!(
                            "expected a type `invoke`, `ok`, `fail` or `info`, found {found}"
                        ))
                    })?;
                    has_step = true;
                }
                Name::Index => record.index = integer(self.leaf(&mut map)?),
                Name::Time => {
                    record.time = integer(self.leaf(&mut map)?).filter(|&time| time != -1);
                }
                Name::Process => record.process = self.leaf(&mut map)?,
                Name::Function => record.function = self.leaf(&mut map)?,
                Name::Key => record.key = self.leaf(&mut map)?,
                Name::Value => record.value = Some(self.form(&mut map)?),
                Name::Error => record.error = Some(self.form(&mut map)?),
                Name::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if !has_step {
            return Err(Error::custom("expected an operation with a \"type\", found none"));
        }
        Ok(record)
    }
}

/// The fields that matter.
enum Name {
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

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl Visitor<'_> for NameVisitor {
            type Value = Name;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("the name of a field")
            }

            fn visit_str<E>(self, name: &str) -> Result<Name, E> {
                Ok(match name {
                    "type" => Name::Type,
                    "index" => Name::Index,
                    "time" => Name::Time,
                    "process" => Name::Process,
                    "f" => Name::Function,
                    "key" => Name::Key,
                    "value" => Name::Value,
                    "error" => Name::Error,
                    _ => Name::Other,
                })
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

/// Adds any JSON to a tape. Nesting is bounded by the deserializer.
struct FormSeed<'a> {
    tape: Tape<'a>,
}

impl<'de> DeserializeSeed<'de> for FormSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FormSeed<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.tape.nodes.push(Node::Nil);
        Ok(())
    }

    fn visit_bool<E>(mut self, truth: bool) -> Result<(), E> {
        let span = self.tape.span(if truth { "true" } else { "false" });
        self.tape.nodes.push(Node::Other(span));
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.tape.nodes.push(Node::Int(number));
        Ok(())
    }

    fn visit_u64<E>(mut self, number: u64) -> Result<(), E> {
        let node = match i64::try_from(number) {
            Ok(number) => Node::Int(number),
            Err(_) => Node::Other(self.tape.span(&number.to_string())),
        };
        self.tape.nodes.push(node);
        Ok(())
    }

    fn visit_f64<E>(mut self, number: f64) -> Result<(), E> {
        let notation = serde_json::Value::from(number).to_string();
        let span = self.tape.span(&notation);
        self.tape.nodes.push(Node::Other(span));
        Ok(())
    }

    fn visit_str<E>(mut self, text: &str) -> Result<(), E> {
        let span = self.tape.span(text);
        self.tape.nodes.push(Node::Text(span));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let open = self.tape.nodes.len();
        self.tape.nodes.push(Node::Open(Bracket::Vector, 1));
        while members.next_element_seed(FormSeed { tape: self.tape.borrow() })?.is_some() {}
        let spans = (self.tape.nodes.len() - open) as u32;
        self.tape.nodes[open] = Node::Open(Bracket::Vector, spans);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        let open = self.tape.nodes.len();
        self.tape.nodes.push(Node::Open(Bracket::Map, 1));
        while let Some(key) = entries.next_key::<String>()? {
            let node = match key.parse() {
                Ok(number) => Node::Int(number),
                Err(_) => Node::Text(self.tape.span(&key)),
            };
            self.tape.nodes.push(node);
            entries.next_value_seed(FormSeed { tape: self.tape.borrow() })?;
        }
        let spans = (self.tape.nodes.len() - open) as u32;
        self.tape.nodes[open] = Node::Open(Bracket::Map, spans);
        Ok(())
    }
}

fn detect(sample: &Sample<'_>) -> bool {
    if sample.names.is_some() {
        return false;
    }
    let text = sample.head.trim_ascii_start();
    let text = text.strip_prefix(b"[").unwrap_or(text).trim_ascii_start();
    if !text.starts_with(b"{") {
        return false;
    }
    let mut batch = Batch::default();
    match ObjectEnd::default().find(text) {
        Some(length) => add_record(&text[..length], 1, &mut batch).is_ok(),
        None => text.starts_with(b"{\"type\":\""),
    }
}
