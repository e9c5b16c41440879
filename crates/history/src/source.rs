//! A stream of bytes being read, with its place for error messages.
//!
//! Histories are larger than memory should be asked to hold twice, so readers
//! see a window of the source and consume it from the front.

use crate::error::{Place, ReadError, memory_size};
use std::io::{Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file (or standard input) being read.
pub struct Source<'a> {
    name: String,
    reader: Box<dyn Read + Send + 'a>,
    /// Filled from the reader as needed.
    buffer: Vec<u8>,
    /// How many bytes there probably are, where that is known.
    length: usize,
    /// Consumed up to here.
    start: usize,
    /// Filled up to here.
    end: usize,
    offset: u64,
    line: u64,
    finished: bool,
    /// How long one line, form or record may be.
    piece_bytes_max: usize,
    /// Set when whoever takes what is read has no use for more.
    refused: Option<Arc<AtomicBool>>,
}

const FILL_BYTES: usize = 1 << 20;
/// A file of more bytes is not trusted to have them.
const LENGTH_MAX: usize = 1 << 30;
/// One line, form or record may be this long; real ones are far below.
const PIECE_BYTES_MAX: usize = 1 << 28;

impl<'a> Source<'a> {
    /// A source called `name` in messages.
    pub fn new(name: impl Into<String>, reader: impl Read + Send + 'a) -> Self {
        Source {
            name: name.into(),
            reader: Box::new(reader),
            buffer: Vec::new(),
            length: 0,
            start: 0,
            end: 0,
            offset: 0,
            line: 1,
            finished: false,
            piece_bytes_max: PIECE_BYTES_MAX,
            refused: None,
        }
    }

    /// A source over bytes in memory.
    pub fn from_bytes(name: impl Into<String>, bytes: &'a [u8]) -> Self {
        Source::new(name, Cursor::new(bytes))
    }

    /// The same, of a file that has this length now.
    pub(crate) fn of_length(self, length: u64) -> Self {
        Source { length: usize::try_from(length).unwrap_or(0), ..self }
    }

    /// What messages call the source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bytes read and not yet consumed.
    #[inline]
    pub fn window(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The offset of the window's first byte in the source.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The line of the window's first byte, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads more into the window. `false` means that the source has ended.
    pub fn fill(&mut self) -> Result<bool, ReadError> {
        if self.refused.as_ref().is_some_and(|refused| refused.load(Ordering::Relaxed)) {
            return Err(ReadError::new(&self.name, "expected a smaller history").at(self.place()));
        }
        if !self.finished && self.end - self.start >= self.piece_bytes_max {
            return Err(self.too_long());
        }
        self.fill_any()
    }

    fn too_long(&self) -> ReadError {
        let size = memory_size(self.piece_bytes_max);
        let is_bounded = self.piece_bytes_max < PIECE_BYTES_MAX;
        let limit = if is_bounded { ", half of the memory that may be used," } else { "," };
        let message =
            format!("expected a line, form or record of at most {size}{limit} found a longer one");
        let error = ReadError::new(&self.name, message).at(self.place());
        if is_bounded { error.hint("give more with --memory") } else { error }
    }

    /// Like [`Source::fill`], however large the window has become.
    fn fill_any(&mut self) -> Result<bool, ReadError> {
        if self.finished {
            return Ok(false);
        }
        let buffer = &mut self.buffer;
        if self.start > 0 {
            buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if buffer.len() < self.end + FILL_BYTES / 2 {
            let doubled = (self.end * 2).max(FILL_BYTES);
            let is_bounded = self.end < self.piece_bytes_max;
            let most = if is_bounded { self.piece_bytes_max + FILL_BYTES } else { usize::MAX };
            buffer.resize(doubled.min(most), 0);
        }
        let read = loop {
            match self.reader.read(&mut buffer[self.end..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let count = read.map_err(|error| {
            ReadError::new(&self.name, format!("cannot be read: {error}"))
                .at(Place::Byte(self.offset + self.end as u64))
        })?;
        self.end += count;
        self.finished = count == 0;
        Ok(count > 0)
    }

    /// Lets a line, form or record take half of the memory that a history may, and
    /// leaves the other half for what is made of it.
    pub(crate) fn bound_memory(&mut self, bytes: usize) {
        self.piece_bytes_max = (bytes / 2).clamp(FILL_BYTES, PIECE_BYTES_MAX);
    }

    /// Reading fails once this is set.
    pub(crate) fn stop_when(&mut self, refused: Arc<AtomicBool>) {
        self.refused = Some(refused);
    }

    /// Reads until the window holds at least `count` bytes or the source ends.
    pub fn fill_to(&mut self, count: usize) -> Result<(), ReadError> {
        while self.end - self.start < count && self.fill()? {}
        Ok(())
    }

    /// Drops the first `count` bytes of the window.
    ///
    /// # Panics
    /// If the window is shorter.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        let gone = &self.window()[..count];
        self.line += memchr::memchr_iter(b'\n', gone).count() as u64;
        self.start += count;
        self.offset += count as u64;
    }

    /// Drops the first `count` bytes of the window of a binary source, which has no lines: to
    /// count them in every field would take longer than to read it.
    ///
    /// # Panics
    /// If the window is shorter.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        assert!(count <= self.end - self.start, "the bytes have arrived");
        self.start += count;
        self.offset += count as u64;
    }

    /// Consumes the next line and returns it without its line ending; `None` at
    /// the end of the source.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, ReadError> {
        let mut searched = 0;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.window()[searched..]) {
                return Ok(Some(self.take_line(searched + at, 1)));
            }
            searched = self.end - self.start;
            if !self.fill()? {
                break;
            }
        }
        if searched == 0 {
            return Ok(None);
        }
        Ok(Some(self.take_line(searched, 0)))
    }

    fn take_line(&mut self, length: usize, ending: usize) -> &[u8] {
        let from = self.start;
        self.start += length + ending;
        self.offset += (length + ending) as u64;
        self.line += ending as u64;
        let line = &self.buffer[from..from + length];
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Fills the window with whole lines, and says how many bytes they have; none at
    /// the end of the source.
    pub(crate) fn fill_lines(&mut self) -> Result<usize, ReadError> {
        loop {
            let more = self.fill()?;
            match memchr::memrchr(b'\n', self.window()) {
                Some(at) => return Ok(at + 1),
                None if more => {}
                None => return Ok(self.end - self.start),
            }
        }
    }

    /// Everything that is left, for formats that are small or need all of it.
    pub fn rest(&mut self) -> Result<&[u8], ReadError> {
        while self.fill()? {}
        Ok(self.window())
    }

    /// Everything that is left, if that is at most `bytes_max`.
    pub(crate) fn whole(&mut self, bytes_max: usize) -> Result<Option<&[u8]>, ReadError> {
        if self.length > bytes_max {
            return Ok(None);
        }
        // Room for all of it at once, which the system clears as it is used. Growing by doubling
        // would take twice as much. The end is found by room that stays empty.
        if self.length <= LENGTH_MAX && self.buffer.len() < self.length {
            let mut buffer = vec![0; self.length + FILL_BYTES];
            buffer[..self.end].copy_from_slice(&self.buffer[..self.end]);
            self.buffer = buffer;
        }
        while self.fill_any()? {
            if self.end - self.start > bytes_max {
                return Ok(None);
            }
        }
        Ok(Some(self.window()))
    }

    /// The place of the window's first byte: its line.
    pub fn place(&self) -> Place {
        Place::Line(self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_come_without_their_endings() {
        let mut source = Source::from_bytes("test", b"one\r\n\ntwo");
        assert_eq!(source.next_line().expect("readable"), Some(&b"one"[..]));
        assert_eq!(source.line(), 2);
        assert_eq!(source.next_line().expect("readable"), Some(&b""[..]));
        assert_eq!(source.next_line().expect("readable"), Some(&b"two"[..]));
        assert_eq!(source.next_line().expect("readable"), None);
        assert_eq!(source.offset(), 9);
    }

    #[test]
    fn a_line_longer_than_the_window_is_whole() {
        let long = [vec![b'x'; 3 * FILL_BYTES], b"\nnext".to_vec()].concat();
        let mut source = Source::from_bytes("test", &long);
        let line = source.next_line().expect("readable").expect("a line");
        assert_eq!(line.len(), 3 * FILL_BYTES);
        assert_eq!(source.next_line().expect("readable"), Some(&b"next"[..]));
    }

    #[test]
    fn an_endless_line_takes_no_more_than_half_of_the_memory() {
        let mut source = Source::new("test", std::io::repeat(b'x'));
        source.bound_memory(8 * FILL_BYTES);
        let error = source.next_line().expect_err("too long");
        assert_eq!(
            error.to_string(),
            "test: line 1: expected a line, form or record of at most 4 MiB, half of the memory \
             that may be used, found a longer one (give more with --memory)"
        );
        assert!(source.buffer.len() <= 5 * FILL_BYTES, "{}", source.buffer.len());
    }

    #[test]
    fn blocks_end_at_line_ends() {
        let text = b"line of text\n".repeat(200_000);
        let mut source = Source::from_bytes("test", &text);
        let mut total = 0;
        loop {
            let length = source.fill_lines().expect("readable");
            if length == 0 {
                break;
            }
            assert!(source.window()[..length].ends_with(b"\n"));
            total += length;
            source.consume(length);
        }
        assert_eq!(total, text.len());
        assert_eq!(source.line(), 200_001);
    }
}
