//! Messages of PostgreSQL's protocol, version 3, as bytes: a tag, a length and the rest.
//!
//! Messages are looked at where they lie in the buffer that was read, and are copied only if
//! they are changed. The crate `postgres-protocol` builds the messages of a client and parses those of
//! a server into values of their own; a proxy needs to know where they lie.

use std::ops::Range;

/// Longer messages than the server takes are no messages.
const LENGTH_MAX: usize = (1 << 30) - 1;
/// What a startup message may take.
pub(crate) const STARTUP_MAX: usize = 10_000;

/// Bytes that were read and not yet understood.
#[derive(Default)]
pub(crate) struct Buffer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) start: usize,
}

impl Buffer {
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    /// Gives back the room of what was taken.
    pub(crate) fn settle(&mut self) {
        if self.is_empty() {
            self.bytes.clear();
            if self.bytes.capacity() > 1 << 20 {
                self.bytes = Vec::new();
            }
        } else if self.start > 0 {
            self.bytes.drain(..self.start);
        }
        self.start = 0;
    }
}

/// A message in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) tag: u8,
    /// Where it lies, with its tag.
    pub(crate) whole: Range<usize>,
}

impl Frame {
    /// Where its content lies.
    pub(crate) fn content(&self) -> Range<usize> {
        self.whole.start + 5..self.whole.end
    }
}

/// The first whole message of `bytes` from `start` on; nothing if it has not arrived yet, and
/// an error if it can be none.
pub(crate) fn frame(bytes: &[u8], start: usize) -> Result<Option<Frame>, String> {
    let Some(head) = bytes.get(start..start + 5) else { return Ok(None) };
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if !(4..=LENGTH_MAX).contains(&length) {
        return Err(format!(
            "expected a message of 4 to {LENGTH_MAX} bytes, found one of {length}"
        ));
    }
    let end = start + 1 + length;
    Ok((bytes.len() >= end).then_some(Frame { tag: head[0], whole: start..end }))
}

/// Adds a message.
pub(crate) fn put(out: &mut Vec<u8>, tag: u8, content: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    content(out);
    let length = u32::try_from(out.len() - start).expect("messages are short");
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

/// A simple query.
pub(crate) fn put_query(out: &mut Vec<u8>, sql: &str) {
    put(out, b'Q', |out| put_text(out, sql.as_bytes()));
}

/// An error as the server would say it.
pub(crate) fn put_error(out: &mut Vec<u8>, code: &str, message: &str) {
    put(out, b'E', |out| {
        for (field, text) in [(b'S', "FATAL"), (b'V', "FATAL"), (b'C', code), (b'M', message)] {
            out.push(field);
            put_text(out, text.as_bytes());
        }
        out.push(0);
    });
}

/// Reads parts of a message; every part is `None` behind the end.
pub(crate) struct Parts<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Parts<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Parts<'a> {
        Parts { bytes, at: 0 }
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let part = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(part)
    }

    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.bytes.get(self.at..)?.iter().position(|&byte| byte == 0)?;
        let text = self.take(length)?;
        self.at += 1;
        Some(text)
    }

    pub(crate) fn short(&mut self) -> Option<usize> {
        self.take(2).map(|part| usize::from(u16::from_be_bytes([part[0], part[1]])))
    }

    pub(crate) fn long(&mut self) -> Option<u32> {
        self.take(4).map(|part| u32::from_be_bytes([part[0], part[1], part[2], part[3]]))
    }

    /// A column of a row: nothing if it is null.
    #[expect(clippy::option_option, reason = "null is a value, and not the end of the row")]
    pub(crate) fn column(&mut self) -> Option<Option<&'a [u8]>> {
        match self.long()? {
            u32::MAX => Some(None),
            length => self.take(length as usize).map(Some),
        }
    }
}

/// The field of an error with this letter.
pub(crate) fn error_field(content: &[u8], letter: u8) -> Option<&[u8]> {
    let mut parts = Parts::new(content);
    loop {
        let field = parts.take(1)?[0];
        if field == 0 {
            return None;
        }
        let text = parts.text()?;
        if field == letter {
            return Some(text);
        }
    }
}

/// How many columns a row or its description has, and where the last `hidden` of them begin,
/// counted from the begin of the content.
pub(crate) fn split(content: &[u8], hidden: usize, tag: u8) -> Option<(usize, usize)> {
    let mut parts = Parts::new(content);
    let count = parts.short()?;
    let kept = count.checked_sub(hidden)?;
    for _ in 0..kept {
        if tag == b'T' {
            parts.text()?;
            parts.take(18)?;
        } else {
            parts.column()?;
        }
    }
    Some((kept, parts.at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_once_they_are_whole() {
        let mut bytes = Vec::new();
        put_query(&mut bytes, "select 1");
        assert_eq!(frame(&bytes[..bytes.len() - 1], 0), Ok(None));
        let found = frame(&bytes, 0).expect("a message").expect("a whole one");
        assert_eq!((found.tag, &bytes[found.content()]), (b'Q', &b"select 1\0"[..]));
    }

    #[test]
    fn a_length_that_no_message_has_is_an_error() {
        assert!(frame(&[b'Q', 0, 0, 0, 3], 0).is_err());
        assert!(frame(&[b'Q', 0xff, 0, 0, 3], 0).is_err());
    }

    #[test]
    fn the_last_columns_of_a_row_are_split_off() {
        let row = [0, 2, 0, 0, 0, 1, b'a', 0xff, 0xff, 0xff, 0xff];
        assert_eq!(split(&row, 1, b'D'), Some((1, 7)));
        assert_eq!(split(&row, 3, b'D'), None);
        assert_eq!(split(&row[..8], 0, b'D'), None);
    }

    #[test]
    fn fields_of_errors_are_found() {
        let mut bytes = Vec::new();
        put_error(&mut bytes, "08P01", "no");
        let content = frame(&bytes, 0).expect("a message").expect("a whole one").content();
        assert_eq!(error_field(&bytes[content.clone()], b'C'), Some(&b"08P01"[..]));
        assert_eq!(error_field(&bytes[content], b'P'), None);
    }
}
