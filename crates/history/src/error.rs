//! What went wrong while reading a history, and where.

use crate::value::is_visible;
use std::fmt;

/// Where in a source something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The whole source.
    Whole,
    /// A line, from 1.
    Line(u64),
    /// A byte offset, from 0.
    Byte(u64),
    /// A record, from 1.
    Record(u64),
}

/// A source that could not be read as a history.
///
/// Displayed as `file: line 2: expected …, found …`, lower case and without a
/// full stop, fit to follow `isolde: `.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The file.
    pub file: String,
    /// Where in it.
    pub place: Place,
    /// What is wrong: usually `expected …, found …`.
    pub message: String,
    /// What can be done about it, if anything.
    pub hint: Option<String>,
}

impl ReadError {
    /// An error about the whole of `file`. The message may quote the source at any
    /// length: it is cut, and control characters are replaced, so that it is one
    /// line that people can read and terminals only show.
    pub fn new(file: &str, message: impl Into<String>) -> Self {
        const CHARACTERS_MAX: usize = 400;
        let mut message = printable(&message.into());
        if let Some((end, _)) = message.char_indices().nth(CHARACTERS_MAX) {
            message.truncate(end);
            message.push('…');
        }
        ReadError { file: file.into(), place: Place::Whole, message, hint: None }
    }

    /// The error of something expected and something else found. What was found
    /// is quoted by [`excerpt`].
    pub fn expected(file: &str, place: Place, expected: &str, found: &[u8]) -> Self {
        let found = if found.is_empty() { "the end of the file".into() } else { excerpt(found) };
        ReadError::new(file, format!("expected {expected}, found {found}")).at(place)
    }

    /// The error of a file that is not read, because the system allows no thread that does.
    pub(crate) fn no_thread(file: &str, error: &std::io::Error) -> Self {
        ReadError::new(file, format!("cannot be read: no thread: {error}"))
    }

    /// The same error at a place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// The same error with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The first line of `bytes`, at most 60 characters, printable, in backquotes.
pub fn excerpt(bytes: &[u8]) -> String {
    const CHARACTERS_MAX: usize = 60;
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let head = &line[..line.len().min(4 * CHARACTERS_MAX)];
    let text = printable(&String::from_utf8_lossy(head));
    let mut shown: String = text.chars().take(CHARACTERS_MAX).collect();
    if shown.len() < text.len() || head.len() < line.len() {
        shown.push('…');
    }
    if shown.is_empty() { "an empty line".into() } else { format!("`{shown}`") }
}

/// An amount of memory in the largest unit of which it has at least one.
pub fn memory_size(bytes: usize) -> String {
    match bytes {
        0..=0x3ff => format!("{bytes} B"),
        0x400..=0xf_ffff => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

fn printable(text: &str) -> String {
    let shown = |character| if is_visible(character) { character } else { '\u{fffd}' };
    text.chars().map(shown).collect()
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A file's name may hold anything; a terminal must not take it as commands.
        for character in self.file.chars() {
            let shown = if is_visible(character) { character } else { '\u{fffd}' };
            write!(out, "{shown}")?;
        }
        out.write_str(": ")?;
        match self.place {
            Place::Whole => {}
            Place::Line(line) => write!(out, "line {line}: ")?,
            Place::Byte(offset) => write!(out, "byte {offset}: ")?,
            Place::Record(record) => write!(out, "record {record}: ")?,
        }
        out.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(out, " ({hint})")?;
        }
        Ok(())
    }
}

impl std::error::Error for ReadError {}
