//! `MongoDB`'s documents in bytes, as far as commands and their replies need them.

use std::io;

/// Documents in documents, at most.
const DEPTH_MAX: u32 = 32;

/// A value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Double(f64),
    Text(String),
    Document(Document),
    Array(Vec<Value>),
    /// Bytes with a subtype: 4 is an identifier.
    Binary(u8, Vec<u8>),
    ObjectId([u8; 12]),
    Bool(bool),
    /// Milliseconds.
    Date(i64),
    Null,
    Int(i32),
    Timestamp(u64),
    Long(i64),
}

impl Value {
    /// A key or value of a request, all of which are below 2^63.
    pub(super) fn number(number: u64) -> Value {
        Value::Long(i64::try_from(number).unwrap_or(i64::MAX))
    }

    /// The number that this is, of whichever type.
    pub(super) fn as_number(&self) -> Option<i64> {
        match *self {
            Value::Int(number) => Some(number.into()),
            Value::Long(number) => Some(number),
            // Statuses and counts are small, so nothing is lost.
            Value::Double(number) if number.abs() < 1e15 => Some(number as i64),
            _ => None,
        }
    }
}

/// Fields in order: the first one of a command is its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Document(pub(super) Vec<(String, Value)>);

impl Document {
    /// The document with one more field.
    pub(super) fn with(mut self, name: &str, value: Value) -> Document {
        self.0.push((name.to_owned(), value));
        self
    }

    /// A document of one field.
    pub(super) fn of(name: &str, value: Value) -> Document {
        Document::default().with(name, value)
    }

    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|field| field.0 == name).map(|field| &field.1)
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.value(name).and_then(Value::as_number)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.value(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn document(&self, name: &str) -> Option<&Document> {
        match self.value(name) {
            Some(Value::Document(document)) => Some(document),
            _ => None,
        }
    }

    /// The elements of an array; none if there is no such array.
    pub(super) fn array(&self, name: &str) -> &[Value] {
        match self.value(name) {
            Some(Value::Array(values)) => values,
            _ => &[],
        }
    }

    /// Appends the document's bytes.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write_fields(self.0.iter().map(|(name, value)| (name.as_str(), value)), out);
    }

    /// The document that these bytes are, all of them.
    pub(super) fn read(bytes: &[u8]) -> io::Result<Document> {
        let mut rest = Bytes(bytes);
        let document = Document(rest.fields(DEPTH_MAX)?);
        if rest.0.is_empty() { Ok(document) } else { Err(invalid("bytes after its end")) }
    }
}

fn write_fields<'a>(fields: impl Iterator<Item = (&'a str, &'a Value)>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    for (name, value) in fields {
        let at = out.len();
        out.push(0);
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        out[at] = write_value(value, out);
    }
    out.push(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Appends the value's bytes and returns the number of its type.
fn write_value(value: &Value, out: &mut Vec<u8>) -> u8 {
    match value {
        Value::Double(number) => out.extend_from_slice(&number.to_le_bytes()),
        Value::Text(text) => {
            out.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
            out.push(0);
        }
        Value::Document(document) => document.write(out),
        Value::Array(values) => {
            let names: Vec<String> = (0..values.len()).map(|place| place.to_string()).collect();
            write_fields(names.iter().map(String::as_str).zip(values), out);
        }
        Value::Binary(subtype, bytes) => {
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.push(*subtype);
            out.extend_from_slice(bytes);
        }
        Value::ObjectId(bytes) => out.extend_from_slice(bytes),
        Value::Bool(is_true) => out.push(u8::from(*is_true)),
        Value::Null => {}
        Value::Int(number) => out.extend_from_slice(&number.to_le_bytes()),
        Value::Timestamp(number) => out.extend_from_slice(&number.to_le_bytes()),
        Value::Date(number) | Value::Long(number) => out.extend_from_slice(&number.to_le_bytes()),
    }
    match value {
        Value::Double(_) => 0x01,
        Value::Text(_) => 0x02,
        Value::Document(_) => 0x03,
        Value::Array(_) => 0x04,
        Value::Binary(..) => 0x05,
        Value::ObjectId(_) => 0x07,
        Value::Bool(_) => 0x08,
        Value::Date(_) => 0x09,
        Value::Null => 0x0a,
        Value::Int(_) => 0x10,
        Value::Timestamp(_) => 0x11,
        Value::Long(_) => 0x12,
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("expected a document, found {what}"))
}

/// Bytes that are still to be read. Lengths are believed only as far as there are bytes.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) =
            self.0.split_at_checked(length).ok_or_else(|| invalid("its first part"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn fixed<const LENGTH: usize>(&mut self) -> io::Result<[u8; LENGTH]> {
        let mut bytes = [0; LENGTH];
        bytes.copy_from_slice(self.take(LENGTH)?);
        Ok(bytes)
    }

    fn length(&mut self) -> io::Result<usize> {
        Ok(u32::from_le_bytes(self.fixed()?) as usize)
    }

    fn name(&mut self) -> io::Result<String> {
        let end = self.0.iter().position(|&byte| byte == 0);
        let name = self.take(end.ok_or_else(|| invalid("a name without end"))?)?;
        self.take(1)?;
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    fn fields(&mut self, depth: u32) -> io::Result<Vec<(String, Value)>> {
        if depth == 0 {
            return Err(invalid("documents in documents"));
        }
        let length = self.length()?;
        let inner = length.checked_sub(4).ok_or_else(|| invalid("a wrong length"))?;
        let mut inside = Bytes(self.take(inner)?);
        let mut fields = Vec::new();
        loop {
            let [kind] = inside.fixed()?;
            if kind == 0 {
                return if inside.0.is_empty() {
                    Ok(fields)
                } else {
                    Err(invalid("a wrong length"))
                };
            }
            let name = inside.name()?;
            fields.push((name, inside.value(kind, depth)?));
        }
    }

    fn value(&mut self, kind: u8, depth: u32) -> io::Result<Value> {
        Ok(match kind {
            0x01 => Value::Double(f64::from_le_bytes(self.fixed()?)),
            0x02 => {
                let length = self.length()?;
                let text = self.take(length)?.strip_suffix(b"\0");
                let text = text.ok_or_else(|| invalid("a text without end"))?;
                Value::Text(String::from_utf8_lossy(text).into_owned())
            }
            0x03 => Value::Document(Document(self.fields(depth - 1)?)),
            0x04 => {
                let fields = self.fields(depth - 1)?;
                Value::Array(fields.into_iter().map(|field| field.1).collect())
            }
            0x05 => {
                let length = self.length()?;
                let [subtype] = self.fixed()?;
                Value::Binary(subtype, self.take(length)?.to_vec())
            }
            0x07 => Value::ObjectId(self.fixed()?),
            0x08 => Value::Bool(self.fixed::<1>()? != [0]),
            0x09 => Value::Date(i64::from_le_bytes(self.fixed()?)),
            0x0a => Value::Null,
            0x10 => Value::Int(i32::from_le_bytes(self.fixed()?)),
            0x11 => Value::Timestamp(u64::from_le_bytes(self.fixed()?)),
            0x12 => Value::Long(i64::from_le_bytes(self.fixed()?)),
            other => return Err(invalid(&format!("a value of type {other}"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything() -> Document {
        Document::of("double", Value::Double(1.0))
            .with("text", Value::Text("é".into()))
            .with("document", Value::Document(Document::of("a", Value::Null)))
            .with("array", Value::Array(vec![Value::Int(-7), Value::Bool(true)]))
            .with("binary", Value::Binary(4, vec![1; 16]))
            .with("object", Value::ObjectId([2; 12]))
            .with("date", Value::Date(3))
            .with("timestamp", Value::Timestamp(4))
            .with("long", Value::Long(i64::MAX))
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut bytes = Vec::new();
        everything().write(&mut bytes);
        assert_eq!(Document::read(&bytes).expect("a document"), everything());
    }

    #[test]
    fn a_command_has_the_bytes_of_the_specification() {
        let mut bytes = Vec::new();
        Document::of("a", Value::Int(1)).write(&mut bytes);
        assert_eq!(bytes, *b"\x0c\0\0\0\x10a\0\x01\0\0\0\0");
    }

    #[test]
    fn damage_is_an_error() {
        let mut bytes = Vec::new();
        everything().write(&mut bytes);
        for length in 0..bytes.len() {
            assert!(Document::read(&bytes[..length]).is_err(), "{length}");
        }
        let long_text = b"\x0e\0\0\0\x02a\0\xff\xff\xff\x7fx\0\0";
        assert!(Document::read(long_text).is_err());
        let deep = (0..100)
            .fold(Document::default(), |inner, _| Document::of("a", Value::Document(inner)));
        bytes.clear();
        deep.write(&mut bytes);
        assert!(Document::read(&bytes).is_err());
    }
}
