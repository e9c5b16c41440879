//! `IsoPredict`'s and `MonkeyDB`'s traces: who read which key from whom.
//!
//! `WRITE KEY[k] Txn(session, number)`, `READ KEY[k] Txn(s, n) From(s', n')`, and for
//! sets `INSERT[k] to Set[s] Txn(…)`, `CONTAINS[k] in Set[s] From(…) Txn(…)`,
//! `DELETE KEY[k] From Set(s) Txn(…)`, in any order. A blank line ends the trace.
//!
//! There are no values, so versions are called after their writers: `T1.0` is the
//! last write of a key in `Txn(1, 0)`, `T1.0/1` the first of several. A transaction
//! that reads from itself saw its own latest write. `Txn(0, 0)` is the initial state.
//! A member of a set is a key of its own, called `set/member`.

use super::{Format, Input, Sample, names};
use crate::builder::{DraftTxn, HistoryBuilder};
use crate::error::{Place, ReadError};
use crate::history::OpKind;
use crate::value::Value;
use hashbrown::HashMap;

pub(super) const FORMAT: Format = Format {
    name: "isopredict",
    title: "IsoPredict's and MonkeyDB's traces",
    detect,
    read,
    write: None,
};

fn detect(sample: &Sample<'_>) -> bool {
    sample.first_line().is_some_and(|line| parse(line).is_some())
}

type TxnNumber = (u64, u64);

const INITIAL: TxnNumber = (0, 0);

/// One line.
#[derive(Debug, PartialEq, Eq)]
struct Access {
    kind: OpKind,
    key: String,
    txn: TxnNumber,
    /// The writer read from, for reads.
    from: Option<TxnNumber>,
    line: u32,
}

/// The line, or `None` if it is none of this format.
fn parse(line: &str) -> Option<Access> {
    let (kind, rest) = [
        ("READ KEY[", OpKind::Read),
        ("WRITE KEY[", OpKind::Write),
        ("INSERT[", OpKind::Insert),
        ("CONTAINS[", OpKind::Read),
        ("DELETE KEY[", OpKind::Delete),
    ]
    .iter()
    .find_map(|&(start, kind)| Some((kind, line.strip_prefix(start)?)))?;
    let (key, mut rest) = rest.split_once(']')?;
    let mut key = key.to_owned();
    rest = rest.trim_start();
    for (start, end) in [("to Set[", ']'), ("in Set[", ']'), ("From Set(", ')')] {
        if let Some(set) = rest.strip_prefix(start) {
            let (set, after) = set.split_once(end)?;
            key = format!("{set}/{key}");
            rest = after.trim_start();
        }
    }
    let (mut txn, mut from) = (None, None);
    while !rest.is_empty() {
        let (slot, numbers) = if let Some(numbers) = rest.strip_prefix("Txn(") {
            (&mut txn, numbers)
        } else {
            (&mut from, rest.strip_prefix("From(")?)
        };
        let (numbers, after) = numbers.split_once(')')?;
        let (session, number) = numbers.split_once(',')?;
        let number = (session.trim().parse().ok()?, number.trim().parse().ok()?);
        if slot.replace(number).is_some() {
            return None;
        }
        rest = after.trim_start();
    }
    // Reads, and only reads, tell where they read from.
    if from.is_some() != (kind == OpKind::Read) {
        return None;
    }
    Some(Access { kind, key, txn: txn?, from, line: 0 })
}

fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    let mut source = input.file()?;
    let name = source.name().to_owned();
    let mut trace = Vec::new();
    let mut ended = false;
    loop {
        let number = source.line();
        let Some(line) = source.next_line()? else {
            break;
        };
        let line = line.trim_ascii();
        if line.is_empty() {
            ended |= !trace.is_empty();
            continue;
        }
        let place = Place::Line(number);
        if ended {
            let expected = "the end of the trace after a blank line";
            return Err(ReadError::expected(&name, place, expected, line));
        }
        let parsed = std::str::from_utf8(line).ok().and_then(parse);
        let Some(mut access) = parsed else {
            let expected = "`WRITE KEY[k] Txn(s, n)`, `READ KEY[k] Txn(s, n) From(s, n)` \
                            or an access of a set";
            return Err(ReadError::expected(&name, place, expected, line));
        };
        access.line = u32::try_from(number).unwrap_or(u32::MAX);
        if access.txn == INITIAL && access.kind == OpKind::Read {
            let expected = "the initial state `Txn(0, 0)` only to write";
            return Err(ReadError::expected(&name, place, expected, line));
        }
        trace.push(access);
    }
    build(&trace, builder);
    Ok(())
}

fn build(trace: &[Access], builder: &mut HistoryBuilder) {
    // How often each transaction writes each key.
    let mut writes: HashMap<(TxnNumber, &str), u64> = HashMap::new();
    for access in trace.iter().filter(|access| access.kind.is_write()) {
        *writes.entry((access.txn, &access.key)).or_default() += 1;
    }
    let mut written: HashMap<(TxnNumber, &str), u64> = HashMap::new();
    let mut txns: HashMap<TxnNumber, DraftTxn> = HashMap::new();
    for access in trace.iter().filter(|access| access.txn != INITIAL) {
        builder.position(access.line);
        let (session, number) = access.txn;
        if let Some(&txn) = txns.get(&access.txn) {
            builder.resume(txn);
        } else {
            let label = builder.values().unsigned(session);
            let session_id = builder.session(label);
            let txn = builder.begin(session_id);
            let label = builder.values().text(&format!("T{session}.{number}"));
            builder.label(txn, label);
            txns.insert(access.txn, txn);
        }
        let own = (access.txn, access.key.as_str());
        let so_far = written.entry(own).or_default();
        let version = match access.from {
            None => {
                *so_far += 1;
                version(builder, access.txn, *so_far, writes[&own])
            }
            Some(INITIAL) => Value::NIL,
            Some(from) if from == access.txn && *so_far > 0 => {
                version(builder, from, *so_far, writes[&own])
            }
            Some(from) => version(builder, from, 1, 1),
        };
        let name = names::number_or_text(builder.values(), &access.key);
        let key = builder.key(name);
        builder.op(access.kind, key, version);
    }
}

/// The name of a transaction's write number `place` of `count` to one key.
fn version(builder: &mut HistoryBuilder, txn: TxnNumber, place: u64, count: u64) -> Value {
    let (session, number) = txn;
    let name = if place == count {
        format!("T{session}.{number}")
    } else {
        format!("T{session}.{number}/{place}")
    };
    builder.values().text(&name)
}
