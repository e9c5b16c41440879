//! The words of a log's line: what a request and its answer tell.

use crate::request::{Answer, Filter, Function, Request};
use isolde_history::{Interval, NEVER, Snapshot};

/// Writes what a request and its answer tell; without an answer, what the request
/// may have written.
pub(super) fn operation(
    line: &mut Vec<u8>,
    request: &Request,
    answer: Option<&Answer>,
    interval: Option<Interval>,
) {
    let start = line.len();
    let mut one = |letter, key, values: &[u64]| {
        item(line, letter, key, values);
        stamp(line, interval);
    };
    match (request, answer) {
        (Request::Read { key }, Some(Answer::Value(value))) => one(b'r', *key, value.as_slice()),
        (Request::Write { key, value }, _) => one(b'w', *key, &[*value]),
        (Request::Append { key, value }, _) => one(b'a', *key, &[*value]),
        (Request::ReadList { key }, Some(Answer::List(elements))) => one(b'l', *key, elements),
        (Request::Insert { key, .. }, Some(Answer::Applied(false))) => one(b'o', *key, &[]),
        (Request::Insert { key, .. }, Some(Answer::Found(found))) => {
            refused(line, *key, None, *found, interval);
        }
        (Request::Insert { key, value }, _) => one(b'i', *key, &[*value]),
        (Request::Delete { key }, Some(Answer::Applied(false))) => one(b'r', *key, &[]),
        (Request::Delete { key }, _) => one(b'd', *key, &[]),
        (Request::CompareAndSet { key, expected, .. }, Some(Answer::Applied(false))) => {
            one(b'o', *key, expected.as_slice());
        }
        (Request::CompareAndSet { key, expected, .. }, Some(Answer::Found(found))) => {
            refused(line, *key, *expected, *found, interval);
        }
        (Request::CompareAndSet { key, expected, value }, answer) => {
            if answer.is_some() {
                one(b'r', *key, expected.as_slice());
            }
            one(b'w', *key, &[*value]);
        }
        (Request::Range { low, high }, Some(Answer::Rows(rows))) => {
            range(line, b'q', *low..=*high, rows, interval);
        }
        (Request::UpdateRange { low, high, .. }, Some(Answer::Rows(rows))) => {
            range(line, b'u', *low..=*high, rows, interval);
        }
        // Nobody knows which rows it was going to find.
        (Request::UpdateRange { low, high, first }, None) => {
            for key in *low..=*high {
                one(b'w', key, &[first + (key - low)]);
            }
        }
        (Request::Select { filter }, Some(Answer::Rows(rows))) => {
            by_condition(line, b"p", *filter, rows, interval);
        }
        (Request::Aggregate { function, filter }, Some(Answer::Value(value))) => {
            aggregate(line, *function, *filter, *value, interval);
        }
        (Request::UpdateWhere { filter, .. }, Some(Answer::Rows(rows))) => {
            by_condition(line, b"c", *filter, rows, interval);
        }
        (Request::DeleteWhere { filter }, Some(Answer::Rows(rows))) => {
            by_condition(line, b"x", *filter, rows, interval);
        }
        // A read without an answer tells nothing. What an update by condition did without
        // one was rolled back, because no commit was sent.
        (_, None) => {}
        (request, Some(answer)) => {
            debug_assert!(line.len() > start, "{answer:?} is no answer to {request:?}");
        }
    }
}

/// What was not there and what was.
fn refused(
    line: &mut Vec<u8>,
    key: u64,
    expected: Option<u64>,
    found: Option<u64>,
    interval: Option<Interval>,
) {
    item(line, b'o', key, expected.as_slice());
    line.push(b':');
    if let Some(found) = found {
        number(line, found);
    }
    stamp(line, interval);
}

fn aggregate(
    line: &mut Vec<u8>,
    function: Function,
    filter: Filter,
    value: Option<u64>,
    interval: Option<Interval>,
) {
    line.extend_from_slice(b" g");
    line.extend_from_slice(function.name().as_bytes());
    line.push(b':');
    condition(line, filter);
    if let Some(value) = value {
        number(line, value);
    }
    stamp(line, interval);
}

fn item(line: &mut Vec<u8>, letter: u8, key: u64, values: &[u64]) {
    line.extend_from_slice(&[b' ', letter]);
    number(line, key);
    line.push(b'=');
    for (place, &value) in values.iter().enumerate() {
        if place > 0 {
            line.push(b',');
        }
        number(line, value);
    }
}

fn stamp(line: &mut Vec<u8>, interval: Option<Interval>) {
    let Some(interval) = interval else { return };
    line.push(b'@');
    number(line, interval.invoked.unsigned_abs());
    line.push(b'-');
    if interval.completed != NEVER {
        number(line, interval.completed.unsigned_abs());
    }
}

/// All keys of a range: those without a row were not there, and that was seen.
fn range(
    line: &mut Vec<u8>,
    letter: u8,
    keys: std::ops::RangeInclusive<u64>,
    rows: &[(u64, u64)],
    interval: Option<Interval>,
) {
    line.extend_from_slice(&[b' ', letter]);
    number(line, *keys.start());
    line.extend_from_slice(b"..");
    number(line, *keys.end());
    line.push(b'=');
    let mut found = rows.to_vec();
    found.sort_unstable();
    let mut found = found.into_iter().peekable();
    let mut is_first = true;
    let mut row = |key: u64, value: Option<u64>| {
        if !std::mem::take(&mut is_first) {
            line.push(b',');
        }
        number(line, key);
        line.push(b':');
        if let Some(value) = value {
            number(line, value);
        }
    };
    for key in keys {
        let mut is_there = false;
        // What lies outside the range is recorded as well: it is what was seen.
        while let Some(&(found_key, value)) = found.peek()
            && found_key <= key
        {
            row(found_key, Some(value));
            is_there |= found_key == key;
            found.next();
        }
        if !is_there {
            row(key, None);
        }
    }
    for (key, value) in found {
        row(key, Some(value));
    }
    stamp(line, interval);
}

/// A letter, a condition and the rows that met it.
fn by_condition(
    line: &mut Vec<u8>,
    letter: &[u8],
    filter: Filter,
    rows: &[(u64, u64)],
    interval: Option<Interval>,
) {
    line.push(b' ');
    line.extend_from_slice(letter);
    condition(line, filter);
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    for (place, (key, value)) in rows.into_iter().enumerate() {
        if place > 0 {
            line.push(b',');
        }
        number(line, key);
        line.push(b':');
        number(line, value);
    }
    stamp(line, interval);
}

/// `k5..7=`, `v5..7=` or `m7:3=`.
fn condition(line: &mut Vec<u8>, filter: Filter) {
    let (letter, between): (u8, &[u8]) = match filter {
        Filter::Keys { .. } => (b'k', b".."),
        Filter::Values { .. } => (b'v', b".."),
        Filter::Remainder { .. } => (b'm', b":"),
    };
    let [first, second] = filter.numbers();
    line.push(letter);
    number(line, first);
    line.extend_from_slice(between);
    number(line, second);
    line.push(b'=');
}

/// `~20!17,19`: everything below 20 but for 17 and 19.
pub(super) fn seen(line: &mut Vec<u8>, snapshot: &Snapshot) {
    line.push(b'~');
    number(line, snapshot.below);
    for (place, except) in snapshot.except.iter().enumerate() {
        line.push(if place == 0 { b'!' } else { b',' });
        number(line, *except);
    }
}

/// A space and the text as the rest of a line.
pub(super) fn text(line: &mut Vec<u8>, text: &str) {
    if text.is_empty() {
        return;
    }
    line.push(b' ');
    let clean = text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte });
    line.extend(clean);
}

#[inline]
pub(super) fn number(line: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[at..]);
}
