//! Words of a log's line: numbers, times and operations.

use crate::history::{Interval, NEVER, OpKind};
use crate::predicate::Function;
use crate::snapshot::Snapshot;

/// What is left of a line.
pub(super) struct Line<'a> {
    rest: &'a [u8],
}

/// A word of a transaction's line.
pub(super) enum Word {
    Step(Step),
    /// What the database calls the transaction.
    Number(u64),
    /// What all of the transaction was executed on.
    Snapshot(Snapshot),
}

/// Which rows an operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// That of one key.
    Key(u64),
    /// Keys between these.
    Keys(u64, u64),
    /// Values between these.
    Values(u64, u64),
    /// Values that leave the second number when divided by the first.
    Remainder(u64, u64),
}

/// What happened to the rows that met a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// They were read.
    Read,
    /// They were updated to the values of the rows.
    Updated,
    /// They were removed; the rows have what they were.
    Removed,
    /// Something was computed from them: the value.
    Computed(Function),
}

/// One operation as the log has it.
pub(super) struct Step {
    pub(super) kind: OpKind,
    pub(super) about: About,
    pub(super) effect: Effect,
    /// The value, or the elements of a list; none is nil.
    pub(super) values: Vec<u64>,
    /// What a refused compare-and-set found, if it was told; `Some(None)` is nil.
    #[expect(clippy::option_option, reason = "whether it was told, and whether there was a value")]
    pub(super) found: Option<Option<u64>>,
    /// Rows of a range; those without a value were not there.
    pub(super) rows: Vec<(u64, Option<u64>)>,
    pub(super) interval: Option<Interval>,
    /// What it was executed on.
    pub(super) snapshot: Option<Snapshot>,
}

impl Step {
    /// Adds the keys and values that it writes.
    pub(super) fn written(&self, writes: &mut Vec<(u64, u64)>) {
        match (self.about, self.effect) {
            (About::Key(key), Effect::Updated) if self.kind != OpKind::Append => {
                writes.extend(self.values.iter().map(|&value| (key, value)));
            }
            (About::Key(_), _) => {}
            (_, Effect::Updated) => {
                writes.extend(self.rows.iter().filter_map(|row| Some((row.0, row.1?))));
            }
            _ => {}
        }
    }
}

const NUMBER: &str = "a number below 2^63";
const OPERATION: &str = "an operation, such as r5=12, w5=13 or q1..9=5:13";
const FUNCTION: &str = "a function, such as gmin:k1..9=3";

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

    /// Values with commas between them. Those that are missing are removals, which may have
    /// the number of who removed it instead.
    pub(super) fn versions(&mut self) -> Result<Vec<Installed>, &'static str> {
        let values = self.word().split(|&byte| byte == b',');
        let installed = |value: &[u8]| match value {
            b"" => Ok(Installed::Removal(None)),
            [b'#', number @ ..] => whole(number).map(|it| Installed::Removal(Some(it))),
            value => whole(value).map(Installed::Value),
        };
        values.map(installed).collect()
    }

    /// Everything that is left.
    /// `NUMBER:KEY=VALUE`, with commas between.
    pub(super) fn numbered(&mut self) -> Result<Vec<(u64, u64, u64)>, &'static str> {
        const NUMBERED: &str = "numbers of transactions, such as 17:5=12";
        let entry = |entry: &[u8]| {
            let (number, write) = pair(entry, b":").ok_or(NUMBERED)?;
            let (key, value) = pair(write, b"=").ok_or(NUMBERED)?;
            Ok((whole(number)?, whole(key)?, whole(value)?))
        };
        self.word().split(|&byte| byte == b',').map(entry).collect()
    }

    pub(super) fn text(&mut self) -> Result<&'a str, &'static str> {
        let text = std::mem::take(&mut self.rest);
        std::str::from_utf8(text).map_err(|_| "text in UTF-8")
    }

    /// The next word about a transaction; `None` at the end.
    pub(super) fn txn_word(&mut self) -> Result<Option<Word>, &'static str> {
        let word = self.word();
        let Some((&letter, rest)) = word.split_first() else { return Ok(None) };
        Ok(Some(match letter {
            b'#' => Word::Number(whole(rest)?),
            b'~' => Word::Snapshot(snapshot(rest)?),
            letter => Word::Step(step(letter, rest)?),
        }))
    }
}

/// A version that the database installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Installed {
    Value(u64),
    /// With the number of who removed it, if told.
    Removal(Option<u64>),
}

/// The operation of this letter.
fn step(letter: u8, word: &[u8]) -> Result<Step, &'static str> {
    let (kind, effect) = match letter {
        b'r' => (OpKind::Read, Effect::Read),
        b'w' => (OpKind::Write, Effect::Updated),
        b'a' => (OpKind::Append, Effect::Updated),
        b'l' => (OpKind::ReadList, Effect::Read),
        b'i' => (OpKind::Insert, Effect::Updated),
        b'd' => (OpKind::Delete, Effect::Removed),
        b'o' => (OpKind::ReadOther, Effect::Read),
        b'q' | b'p' => (OpKind::PredicateRead, Effect::Read),
        b'g' => (OpKind::PredicateRead, Effect::Computed(Function::Count)),
        b'u' | b'c' => (OpKind::PredicateUpdate, Effect::Updated),
        b'x' => (OpKind::PredicateUpdate, Effect::Removed),
        _ => return Err(OPERATION),
    };
    let (word, seen) = split(word, b'~');
    let (word, stamp) = split(word, b'@');
    let (subject, content) = split(word, b'=');
    let mut step = Step {
        kind,
        effect,
        about: About::Key(0),
        values: Vec::new(),
        found: None,
        rows: Vec::new(),
        interval: stamp.map(times).transpose()?,
        snapshot: seen.map(snapshot).transpose()?,
    };
    let content = content.unwrap_or_default();
    if kind.has_key() {
        step.about = About::Key(whole(subject)?);
        let (content, found) = match kind {
            OpKind::ReadOther => split(content, b':'),
            _ => (content, None),
        };
        let number = |word: &[u8]| if word.is_empty() { Ok(None) } else { whole(word).map(Some) };
        step.found = found.map(number).transpose()?;
        step.values = numbers(content)?;
        if step.values.len() > 1 && kind != OpKind::ReadList {
            return Err("one value");
        }
        return Ok(step);
    }
    if letter == b'g' {
        let colon = memchr::memchr(b':', subject).ok_or(FUNCTION)?;
        let named = |it: &Function| it.name().as_bytes() == &subject[..colon];
        step.effect = Effect::Computed(Function::ALL.into_iter().find(named).ok_or(FUNCTION)?);
        step.about = condition(&subject[colon + 1..])?;
        step.values = numbers(content)?;
        return if step.values.len() > 1 { Err("one value") } else { Ok(step) };
    }
    step.about = match letter {
        b'q' | b'u' => {
            let (low, high) = pair(subject, b"..").ok_or("a range of keys, such as q1..9")?;
            About::Keys(whole(low)?, whole(high)?)
        }
        _ => condition(subject)?,
    };
    for row in content.split(|&byte| byte == b',').filter(|row| !row.is_empty()) {
        let (key, value) = pair(row, b":").ok_or("a row, such as 5:13")?;
        let value = if value.is_empty() { None } else { Some(whole(value)?) };
        step.rows.push((whole(key)?, value));
    }
    Ok(step)
}

/// What comes before the first such byte, and what comes after it, if it is there.
fn split(word: &[u8], byte: u8) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(byte, word) {
        Some(at) => (&word[..at], Some(&word[at + 1..])),
        None => (word, None),
    }
}

fn pair<'a>(word: &'a [u8], between: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memchr::memmem::find(word, between)?;
    Some((&word[..at], &word[at + between.len()..]))
}

fn numbers(content: &[u8]) -> Result<Vec<u64>, &'static str> {
    if content.is_empty() {
        return Ok(Vec::new());
    }
    content.split(|&byte| byte == b',').map(whole).collect()
}

/// `k1..9`, `v1..9` or `m7:3`.
fn condition(word: &[u8]) -> Result<About, &'static str> {
    const CONDITION: &str = "a condition, such as k1..9, v1..9 or m7:3";
    let (&letter, rest) = word.split_first().filter(|it| b"kvm".contains(it.0)).ok_or(CONDITION)?;
    let between: &[u8] = if letter == b'm' { b":" } else { b".." };
    let (first, second) = pair(rest, between).ok_or(CONDITION)?;
    let (first, second) = (whole(first)?, whole(second)?);
    match letter {
        b'k' => Ok(About::Keys(first, second)),
        b'v' => Ok(About::Values(first, second)),
        b'm' if first > 0 => Ok(About::Remainder(first, second)),
        _ => Err(CONDITION),
    }
}

/// `20!17,19`: all below 20 but for 17 and 19.
fn snapshot(word: &[u8]) -> Result<Snapshot, &'static str> {
    let (below, except) = split(word, b'!');
    let (below, except) = (whole(below)?, numbers(except.unwrap_or_default())?);
    if except.iter().any(|&number| number >= below) {
        return Err("exceptions of a snapshot that are below its bound, as in 20!17,19");
    }
    Ok(Snapshot { below, except })
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
