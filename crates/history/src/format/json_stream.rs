//! JSON read from a source as it arrives, with errors that name the line.

use crate::error::{Place, ReadError};
use crate::source::Source;
use serde::de::DeserializeSeed;
use std::io::{self, Read};

struct Reader<'s, 'a> {
    source: &'s mut Source<'a>,
    /// The reader's interface has no place for our errors.
    error: Option<ReadError>,
}

impl Read for Reader<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Err(error) = self.source.fill_to(1) {
            self.error = Some(error);
            return Err(io::ErrorKind::Other.into());
        }
        let window = self.source.window();
        let count = window.len().min(buffer.len());
        buffer[..count].copy_from_slice(&window[..count]);
        self.source.consume(count);
        Ok(count)
    }
}

/// Reads the one JSON value that the source holds. `what` it is goes into messages.
pub(super) fn read<T>(
    source: &mut Source<'_>,
    what: &str,
    seed: impl for<'de> DeserializeSeed<'de, Value = T>,
) -> Result<T, ReadError> {
    const BUFFER_BYTES: usize = 1 << 16;
    let name = source.name().to_owned();
    let mut reader = Reader { source, error: None };
    let buffered = io::BufReader::with_capacity(BUFFER_BYTES, &mut reader);
    let mut json = serde_json::Deserializer::from_reader(buffered);
    let result = seed.deserialize(&mut json).and_then(|value| {
        json.end()?;
        Ok(value)
    });
    result.map_err(|error| match reader.error.take() {
        Some(error) => error,
        None => json_error(&name, what, &error, 0),
    })
}

/// The error of a JSON text whose first line is `lines_before` lines into the file.
pub(super) fn json_error(
    file: &str,
    what: &str,
    error: &serde_json::Error,
    lines_before: u64,
) -> ReadError {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    let line = lines_before + error.line().max(1) as u64;
    if is_too_deep(text) {
        return ReadError::new(file, format!("expected {what}, found {TOO_DEEP}"))
            .at(Place::Line(line));
    }
    ReadError::new(file, format!("expected {what}, found other JSON: {text}")).at(Place::Line(line))
}

/// What is found where JSON is nested more deeply than its reader goes.
pub(super) const TOO_DEEP: &str = "values nested more than 127 deep";

/// Whether this is what the JSON reader says of values nested too deep.
pub(super) fn is_too_deep(message: &str) -> bool {
    message.starts_with("recursion limit exceeded")
}

/// The first `count` bytes of `head` that are not white space.
pub(super) fn squeezed(head: &[u8], count: usize) -> Vec<u8> {
    head.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).take(count).collect()
}
