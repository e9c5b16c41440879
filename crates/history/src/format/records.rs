//! Fixed-width fields of binary logs, with the place for messages.
//!
//! Nothing here allocates from a length that the file claims: text is taken only
//! once its bytes have arrived.

use crate::error::{Place, ReadError};
use crate::source::Source;

/// The fields of a binary source, one after the other.
pub(super) struct Records<'a> {
    source: Source<'a>,
    /// How many records have begun.
    record: u64,
}

impl<'a> Records<'a> {
    pub(super) fn new(source: Source<'a>) -> Self {
        Records { source, record: 0 }
    }

    /// Whether the source has ended.
    pub(super) fn at_end(&mut self) -> Result<bool, ReadError> {
        self.source.fill_to(1)?;
        Ok(self.source.window().is_empty())
    }

    /// Counts the next record and gives its number, from 1.
    pub(super) fn begin_record(&mut self) -> u32 {
        self.record += 1;
        u32::try_from(self.record).unwrap_or(u32::MAX)
    }

    /// The next `N` bytes, which are `what`.
    #[inline]
    pub(super) fn take<const N: usize>(&mut self, what: &str) -> Result<[u8; N], ReadError> {
        if self.source.window().len() < N {
            self.source.fill_to(N)?;
        }
        let Some(&bytes) = self.source.window().first_chunk::<N>() else {
            return Err(self.ended(what, N as u64));
        };
        self.source.advance(N);
        Ok(bytes)
    }

    /// The next byte, which is `what`.
    pub(super) fn byte(&mut self, what: &str) -> Result<u8, ReadError> {
        Ok(self.take::<1>(what)?[0])
    }

    /// The bytes that come next, at most `count` of them, not consumed.
    pub(super) fn peek(&mut self, count: usize) -> Result<&[u8], ReadError> {
        self.source.fill_to(count)?;
        let window = self.source.window();
        Ok(&window[..window.len().min(count)])
    }

    /// The next `length` bytes as text, which is `what`.
    pub(super) fn text(&mut self, length: u64, what: &str) -> Result<String, ReadError> {
        const TEXT_BYTES_MAX: u64 = 1 << 20;
        if length > TEXT_BYTES_MAX {
            let message = format!(
                "expected {what} of at most {TEXT_BYTES_MAX} bytes, found a length of {length}"
            );
            return Err(self.error(message));
        }
        let length = length as usize;
        self.source.fill_to(length)?;
        let Some(bytes) = self.source.window().get(..length) else {
            return Err(self.ended(what, length as u64));
        };
        let Ok(text) = std::str::from_utf8(bytes) else {
            let found = crate::error::excerpt(bytes);
            return Err(self.error(format!("expected {what} in UTF-8, found {found}")));
        };
        let text = text.to_owned();
        self.source.advance(length);
        Ok(text)
    }

    /// An error at the next byte.
    pub(super) fn error(&self, message: String) -> ReadError {
        let message =
            if self.record == 0 { message } else { format!("record {}: {message}", self.record) };
        ReadError::new(self.source.name(), message).at(Place::Byte(self.source.offset()))
    }

    fn ended(&self, what: &str, wanted: u64) -> ReadError {
        let left = self.source.window().len();
        self.error(format!(
            "expected {what} ({wanted} bytes), found the end of the file after {left}"
        ))
        .hint("the file is cut off, or in another format")
    }
}
