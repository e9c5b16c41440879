//! `VeriStrong`'s list histories: `session txn A key element` and
//! `session txn R key count element…`, after a first line with their number.
//!
//! Described by `VeriStrong`'s loader. Numbers are separated by white space.
//! Transactions are told apart by session and id; all are committed, and every list
//! starts empty.

use super::{Format, Input, Sample};
use crate::builder::{DraftTxn, HistoryBuilder};
use crate::error::{Place, ReadError};
use crate::history::OpKind;
use crate::value::Value;
use hashbrown::HashMap;

pub(super) const FORMAT: Format = Format {
    name: "veristrong-list",
    title: "VeriStrong's list histories",
    detect,
    read,
    write: None,
};

fn detect(sample: &Sample<'_>) -> bool {
    if sample.names.is_some() {
        return false;
    }
    let mut lines =
        sample.head.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let first = lines.next().and_then(|line| number(line.trim_ascii()));
    let second = lines.next().map(words);
    first.is_some()
        && second.is_some_and(|mut words| {
            let ids = words.next().and_then(number).and(words.next().and_then(number));
            ids.is_some() && matches!(words.next(), Some(b"R" | b"A"))
        })
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() || !word.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    let mut source = input.file()?;
    let name = source.name().to_owned();
    let mut txns = HashMap::new();
    let mut elements = Vec::new();
    let (mut announced, mut lines) = (None, 0);
    loop {
        let line_number = source.line();
        let Some(line) = source.next_line()? else {
            break;
        };
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let place = Place::Line(line_number);
        if announced.is_none() {
            let expected = "the number of lines";
            announced = Some(
                number(line).ok_or_else(|| ReadError::expected(&name, place, expected, line))?,
            );
            continue;
        }
        builder.position(u32::try_from(line_number).unwrap_or(u32::MAX));
        if operation(line, builder, &mut txns, &mut elements).is_none() {
            let expected = "`session txn A key element` or `session txn R key count element…`";
            return Err(ReadError::expected(&name, place, expected, line));
        }
        lines += 1;
    }
    match announced {
        Some(announced) if announced != lines => {
            let message = format!("expected {announced} operations, found {lines}");
            Err(ReadError::new(&name, message)
                .at(source.place())
                .hint("the first line tells their number; the file may be cut off"))
        }
        _ => Ok(()),
    }
}

/// Adds the operation on the line; `None` if there is none.
fn operation(
    line: &[u8],
    builder: &mut HistoryBuilder,
    txns: &mut HashMap<(u64, u64), DraftTxn>,
    elements: &mut Vec<Value>,
) -> Option<()> {
    let mut words = words(line);
    let session = number(words.next()?)?;
    let txn = number(words.next()?)?;
    let append = match words.next()? {
        b"A" => true,
        b"R" => false,
        _ => return None,
    };
    let key = number(words.next()?)?;
    let count = if append { 1 } else { number(words.next()?)? };
    elements.clear();
    for word in words {
        elements.push(builder.values().unsigned(number(word)?));
    }
    if elements.len() as u64 != count {
        return None;
    }
    if let Some(&known) = txns.get(&(session, txn)) {
        builder.resume(known);
    } else {
        let label = builder.values().unsigned(session);
        let session_id = builder.session(label);
        let draft = builder.begin(session_id);
        let label = builder.values().unsigned(txn);
        builder.label(draft, label);
        txns.insert((session, txn), draft);
    }
    let name = builder.values().unsigned(key);
    let key = builder.key(name);
    match (append, elements.first()) {
        (true, Some(&element)) => builder.op(OpKind::Append, key, element),
        _ => builder.read_list(key, elements),
    }
    Some(())
}
