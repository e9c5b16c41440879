//! Words of a log's line: numbers, times and operations.

use crate::history::{Interval, NEVER, OpKind};

/// What is left of a line.
pub(super) struct Line<'a> {
    rest: &'a [u8],
}

/// One operation as the log has it.
pub(super) struct Step {
    pub(super) kind: OpKind,
    pub(super) key: u64,
    /// The end of a range that begins at `key`.
    pub(super) high: u64,
    /// The value, or the elements of a list; none is nil.
    pub(super) values: Vec<u64>,
    /// Rows of a range; those without a value were not there.
    pub(super) rows: Vec<(u64, Option<u64>)>,
    pub(super) interval: Option<Interval>,
}

const NUMBER: &str = "a number below 2^63";
const OPERATION: &str = "an operation, such as r5=12, w5=13 or q1..9=5:13";

impl<'a> Line<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Line { rest }
    }

    /// The next word; empty at the end.
    pub(super) fn word(&mut self) -> &'a [u8] {
        let end = memchr::memchr(b' ', self.rest).unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        self.rest = self.rest.get(end + 1..).unwrap_or(&[]);
        word
    }

    pub(super) fn number(&mut self) -> Result<u64, &'static str> {
        whole(self.word())
    }

    /// `10-20`, or `10-` for something that never ended; `None` at the end.
    pub(super) fn interval(&mut self) -> Result<Option<Interval>, &'static str> {
        match self.word() {
            b"" => Ok(None),
            word => times(word).map(Some),
        }
    }

    /// Values with commas between them, those that are missing being removals.
    pub(super) fn versions(&mut self) -> Result<Vec<Option<u64>>, &'static str> {
        let values = self.word().split(|&byte| byte == b',');
        values
            .map(|value| if value.is_empty() { Ok(None) } else { whole(value).map(Some) })
            .collect()
    }

    /// Everything that is left.
    pub(super) fn text(&mut self) -> Result<&'a str, &'static str> {
        let text = std::mem::take(&mut self.rest);
        std::str::from_utf8(text).map_err(|_| "text in UTF-8")
    }

    /// The next operation; `None` at the end.
    pub(super) fn step(&mut self) -> Result<Option<Step>, &'static str> {
        let word = self.word();
        let Some((&letter, word)) = word.split_first() else { return Ok(None) };
        let kind = match letter {
            b'r' => OpKind::Read,
            b'w' => OpKind::Write,
            b'a' => OpKind::Append,
            b'l' => OpKind::ReadList,
            b'i' => OpKind::Insert,
            b'd' => OpKind::Delete,
            b'o' => OpKind::ReadOther,
            b'q' => OpKind::PredicateRead,
            b'u' => OpKind::PredicateUpdate,
            _ => return Err(OPERATION),
        };
        let (word, interval) = match memchr::memchr(b'@', word) {
            Some(at) => (&word[..at], Some(times(&word[at + 1..])?)),
            None => (word, None),
        };
        let (key, content) = match memchr::memchr(b'=', word) {
            Some(at) => (&word[..at], &word[at + 1..]),
            None => (word, &[][..]),
        };
        let mut step =
            Step { kind, key: 0, high: 0, values: Vec::new(), rows: Vec::new(), interval };
        if kind.has_key() {
            step.key = whole(key)?;
            if !content.is_empty() {
                for value in content.split(|&byte| byte == b',') {
                    step.values.push(whole(value)?);
                }
            }
            if step.values.len() > 1 && kind != OpKind::ReadList {
                return Err("one value");
            }
            return Ok(Some(step));
        }
        let dots = memchr::memmem::find(key, b"..").ok_or("a range of keys, such as q1..9")?;
        (step.key, step.high) = (whole(&key[..dots])?, whole(&key[dots + 2..])?);
        for row in content.split(|&byte| byte == b',').filter(|row| !row.is_empty()) {
            let colon = memchr::memchr(b':', row).ok_or("a row, such as 5:13")?;
            let value = &row[colon + 1..];
            let value = if value.is_empty() { None } else { Some(whole(value)?) };
            step.rows.push((whole(&row[..colon])?, value));
        }
        Ok(Some(step))
    }
}

fn times(word: &[u8]) -> Result<Interval, &'static str> {
    const TIMES: &str = "two times with a hyphen between them, such as 10-20";
    let hyphen = memchr::memchr(b'-', word).ok_or(TIMES)?;
    let (invoked, completed) = (&word[..hyphen], &word[hyphen + 1..]);
    let invoked = whole(invoked)?.cast_signed();
    let completed = if completed.is_empty() { NEVER } else { whole(completed)?.cast_signed() };
    Ok(Interval { invoked, completed })
}

/// A number below 2^63, so that times fit too.
fn whole(digits: &[u8]) -> Result<u64, &'static str> {
    if digits.is_empty() || digits.len() > 19 {
        return Err(NUMBER);
    }
    let mut number = 0u64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(NUMBER);
        }
        // Nineteen digits fit.
        number = number * 10 + u64::from(digit);
    }
    if number >> 63 == 0 { Ok(number) } else { Err(NUMBER) }
}
