//! AWDIT's text: `r key value` and `w key value`, transactions apart by a line of
//! `-`, sessions by a line of `=`.
//!
//! Described by AWDIT's own loader. There are no aborts, no labels and no initial
//! state: a value that nobody writes is read from thin air. A transaction or session
//! without operations says nothing and is left out.
//!
//! Where somebody read the initial state, it is written as a transaction, which
//! nothing would put before the others. So it also writes a key that the history does
//! not have, and every other transaction begins with a read of that: the initial
//! transaction precedes all of them by reads-from, at every level.

use super::registers::{self, Abilities, Losses, Numbers, Plan};
use super::{Format, Input, Sample, WriteError, Writer};
use crate::builder::HistoryBuilder;
use crate::error::{Place, ReadError};
use crate::history::{History, OpKind};
use crate::value::Value;
use hashbrown::HashSet;
use std::io::{BufWriter, Write};

pub(super) const FORMAT: Format = Format {
    name: "awdit",
    title: "AWDIT's text, `r key value` (tests of AWDIT)",
    detect,
    read,
    write: Some(Writer::File(write)),
};

fn detect(sample: &Sample<'_>) -> bool {
    if sample.names.is_some() {
        return false;
    }
    // The last line of a sample may be cut.
    let whole = memchr::memrchr(b'\n', sample.head).unwrap_or(sample.head.len());
    let lines = sample.head[..whole].split(|&byte| byte == b'\n');
    let mut operations = 0;
    for line in lines.map(<[u8]>::trim_ascii) {
        match parse(line) {
            Some(Line::Op { .. }) => operations += 1,
            Some(_) => {}
            None => return false,
        }
    }
    operations > 0
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Op { write: bool, key: u64, value: u64 },
    Txn,
    Session,
    Blank,
}

/// The line, trimmed; `None` if it is none of this format.
fn parse(line: &[u8]) -> Option<Line> {
    match line.first() {
        None => return Some(Line::Blank),
        Some(b'-') => return line.iter().all(|&byte| byte == b'-').then_some(Line::Txn),
        Some(b'=') => {
            let all = line.iter().all(|&byte| byte == b'=');
            return all.then_some(Line::Session);
        }
        Some(_) => {}
    }
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let write = match words.next()? {
        "r" => false,
        "w" => true,
        _ => return None,
    };
    let key = words.next()?.parse().ok()?;
    let value = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Line::Op { write, key, value })
}

fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    let mut source = input.file()?;
    let name = source.name().to_owned();
    let mut sessions = 0;
    let (mut session, mut open) = (None, false);
    loop {
        let number = source.line();
        let Some(line) = source.next_line()? else {
            return Ok(());
        };
        let line = line.trim_ascii();
        let Some(parsed) = parse(line) else {
            let expected = "`r key value`, `w key value`, `---` or `===`";
            return Err(ReadError::expected(&name, Place::Line(number), expected, line));
        };
        match parsed {
            Line::Blank => {}
            Line::Txn => open = false,
            Line::Session => (session, open) = (None, false),
            Line::Op { write, key, value } => {
                let session = *session.get_or_insert_with(|| {
                    sessions += 1;
                    let label = builder.values().unsigned(sessions);
                    builder.session(label)
                });
                if !open {
                    builder.begin(session);
                    open = true;
                }
                builder.position(u32::try_from(number).unwrap_or(u32::MAX));
                let key = builder.values().unsigned(key);
                let key = builder.key(key);
                let value = builder.values().unsigned(value);
                let kind = if write { OpKind::Write } else { OpKind::Read };
                builder.op(kind, key, value);
            }
        }
    }
}

fn write(history: &History, out: &mut dyn Write) -> Result<Vec<String>, WriteError> {
    let mut losses = Losses::default();
    let plan = registers::plan(history, Abilities::default(), &mut losses)?;
    registers::refuse_unwritten(history, &plan)?;
    let numbers = Numbers::new(history, &plan, &mut losses);
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let mut first = true;
    let initial = initial_writes(history, &plan, &numbers);
    let witness = (!initial.is_empty()).then(|| unused_key(history, &numbers));
    if let Some(witness) = witness {
        losses.add(
            "the initial state becomes a transaction in a session of its own, \
             and every other one begins with a read of an added key that it wrote",
        );
        writeln!(out, "w {witness} 0")?;
        for (key, value) in initial {
            writeln!(out, "w {key} {value}")?;
        }
        first = false;
    }
    for session in history.sessions() {
        let mut separator = if first { None } else { Some("=====") };
        for txn in history.txns_of(session).filter(|&txn| plan.is_kept(txn)) {
            if history.txn_label(txn) != Value::NIL {
                losses.add("labels of transactions");
            }
            let mut empty = true;
            for op in history.ops_of(txn).map(|op| history.op(op)) {
                let Some(value) = numbers.value(op.key, op.value) else {
                    continue;
                };
                if let Some(separator) = separator.take() {
                    writeln!(out, "{separator}")?;
                }
                if let Some(witness) = witness
                    && empty
                {
                    writeln!(out, "r {witness} 0")?;
                }
                let kind = if op.kind.is_write() { 'w' } else { 'r' };
                writeln!(out, "{kind} {} {value}", numbers.key(op.key))?;
                empty = false;
            }
            if empty {
                losses.add("transactions without operations are left out");
            } else {
                (separator, first) = (Some("-----"), false);
            }
        }
    }
    out.flush()?;
    Ok(losses.sentences())
}

/// Initial values that somebody read, as `key, 0`.
fn initial_writes(history: &History, plan: &Plan, numbers: &Numbers) -> Vec<(u64, u64)> {
    let mut read = vec![false; history.key_count()];
    for txn in plan.txns(history) {
        for op in history.ops_of(txn).map(|op| history.op(op)) {
            read[op.key.index()] |= op.kind == OpKind::Read && op.value == history.initial(op.key);
        }
    }
    history.keys().filter(|key| read[key.index()]).map(|key| (numbers.key(key), 0)).collect()
}

/// A number that is no key of the history.
fn unused_key(history: &History, numbers: &Numbers) -> u64 {
    let used: HashSet<u64> = history.keys().map(|key| numbers.key(key)).collect();
    let mut numbers = 0..=used.len() as u64;
    numbers.find(|number| !used.contains(number)).expect("one number more than keys")
}
