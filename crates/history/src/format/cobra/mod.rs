//! Cobra's client logs: a directory of `T*.log`, one file per session.
//!
//! Described by the log encoder of `CobraBench` and the log reader of `CobraVerifier`.
//! Big-endian records without a header: `S` and `C` begin and commit a transaction
//! (id, and a time in milliseconds where the recorder had them on), `A` aborts one,
//! `W` has write id, key and value, `R` has the writer's transaction and write id,
//! key and value. Keys and values are hashes.
//!
//! A version is named by its write id, which is unique, or by its value where the
//! log uses one id for all writes. Rows that were never written or did not exist
//! were read from the initial state. A transaction that was read from but is in no
//! log did not tell its client how it ended: it is added with the writes that were
//! seen, and its outcome is unknown.
//!
//! The recorder makes the record of a commit before it asks for the commit, so its
//! time is when the commit was invoked. When the commit was over is known from the
//! client's next begin alone.

mod writer;

use super::records::Records;
use super::{Format, Input, Sample, Writer, client_logs};
use crate::builder::{DraftTxn, HistoryBuilder};
use crate::error::ReadError;
use crate::history::{Interval, NEVER, OpKind, Outcome, PositionUnit, SessionId, Time, TxnTimes};
use crate::source::Source;
use crate::value::Value;
use hashbrown::{HashMap, HashSet};

pub(super) const FORMAT: Format = Format {
    name: "cobra",
    title: "Cobra's client logs (directory of T*.log)",
    detect,
    read,
    write: Some(Writer::Directory(writer::write)),
};

/// Transaction and write id of the initial state.
pub(super) const INITIAL: u64 = 0xbebe_ebee;
/// A row that did not exist.
const NULL: u64 = 0xdead_beef;
/// The write id of every delete.
const DELETE: u64 = 0xabcd_efab;
/// A version whose origin the client could not tell.
const MISSING: u64 = 0xadea_fbee;
/// The write id of every write where reads are matched by value.
pub(super) const UNIVERSAL: u64 = 0xabdd_efee;

fn detect(sample: &Sample<'_>) -> bool {
    client_logs::are_called(sample, 'T') || looks_right(sample.head)
}

/// Follows the first records of a file; the first transaction must be whole.
fn looks_right(head: &[u8]) -> bool {
    const RECORDS_MAX: usize = 1 << 10;
    if head.first() != Some(&b'S') {
        return false;
    }
    let timed = has_times(head);
    let mut at = 0;
    for _ in 0..RECORDS_MAX {
        let Some(&tag) = head.get(at) else { break };
        let Some(length) = record_length(tag, timed) else {
            return false;
        };
        at += length;
        if tag == b'C' || tag == b'A' {
            return at <= head.len();
        }
    }
    false
}

/// The length of a record with its tag.
fn record_length(tag: u8, timed: bool) -> Option<usize> {
    match tag {
        b'S' | b'C' => Some(if timed { 17 } else { 9 }),
        b'A' => Some(9),
        b'W' => Some(25),
        b'R' => Some(33),
        _ => None,
    }
}

/// Whether the first record has a time: else the next one's tag follows its id. The
/// first byte of a time in this or the next millennia is no tag.
fn has_times(head: &[u8]) -> bool {
    head.get(9).is_some_and(|tag| !b"RWCA".contains(tag))
}

fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    builder.position_unit(PositionUnit::Record);
    let mut logs = Logs::new(builder);
    client_logs::each(input, |source| logs.file(source))?;
    logs.add_missing_writers();
    Ok(())
}

struct Logs<'b> {
    builder: &'b mut HistoryBuilder,
    txns: HashSet<u64>,
    /// Where versions seen by readers should come from: transaction and position of
    /// the first reader, by key and version.
    seen: Vec<Seen>,
    known: HashSet<(Value, Value)>,
}

struct Seen {
    writer: u64,
    key: Value,
    version: Value,
    position: u32,
}

/// What a file's next record continues.
#[derive(Default)]
struct Client {
    open: Option<Open>,
    /// The last transaction that ended, and what is known of its times.
    ended: Option<(DraftTxn, TxnTimes)>,
}

/// A transaction that has begun and not ended.
struct Open {
    id: u64,
    txn: DraftTxn,
    begun: Option<Time>,
}

impl<'b> Logs<'b> {
    fn new(builder: &'b mut HistoryBuilder) -> Self {
        Logs { builder, txns: HashSet::new(), seen: Vec::new(), known: HashSet::new() }
    }

    fn file(&mut self, source: Source<'_>) -> Result<(), ReadError> {
        let session = client_logs::session(self.builder, source.name());
        let mut records = Records::new(source);
        let timed = has_times(records.peek(10)?);
        let mut client = Client::default();
        while !records.at_end()? {
            self.record(&mut records, session, timed, &mut client)?;
        }
        match client.open {
            None => Ok(()),
            Some(open) => Err(records.error(format!(
                "expected the commit of transaction {}, found the end of the file",
                open.id
            ))),
        }
    }

    fn record(
        &mut self,
        records: &mut Records<'_>,
        session: SessionId,
        timed: bool,
        client: &mut Client,
    ) -> Result<(), ReadError> {
        let position = records.begin_record();
        self.builder.position(position);
        let tag = records.peek(1)?.first().copied().unwrap_or_default();
        match (tag, &client.open) {
            (b'S', None) | (b'C' | b'A' | b'W' | b'R', Some(_)) => {}
            (b'S', Some(_)) => {
                let message =
                    "expected an operation or the commit of the transaction, found another begin";
                return Err(records.error(message.into()));
            }
            (b'C' | b'A' | b'W' | b'R', None) => {
                let tag = char::from(tag);
                return Err(records.error(format!("expected `S`, found `{tag}`")));
            }
            _ => {
                let expected = "expected a record with tag S, C, A, W or R";
                return Err(records.error(format!("{expected}, found byte {tag:#04x}")));
            }
        }
        records.byte("a tag")?;
        match tag {
            b'S' => {
                let open = self.begin(records, session, timed)?;
                if let (Some((txn, mut times)), Some(begun)) = (client.ended.take(), open.begun) {
                    times.commit.completed = within(begun);
                    self.builder.times(txn, times);
                }
                client.open = Some(open);
            }
            b'W' => self.write(records)?,
            b'R' => self.read(records, position)?,
            _ => {
                if let Some(open) = client.open.take() {
                    client.ended = self.end(records, tag == b'C', timed, &open)?;
                }
            }
        }
        Ok(())
    }

    fn begin(
        &mut self,
        records: &mut Records<'_>,
        session: SessionId,
        timed: bool,
    ) -> Result<Open, ReadError> {
        let id = number(records, "a transaction id")?;
        let begun = if timed { Some(time(records)?) } else { None };
        if !self.txns.insert(id) {
            let text = format!("transaction {id} has the id of another one");
            self.builder.remark("reused-transaction-id", text);
        }
        let txn = self.builder.begin(session);
        let label = self.builder.values().unsigned(id);
        self.builder.label(txn, label);
        Ok(Open { id, txn, begun })
    }

    fn end(
        &mut self,
        records: &mut Records<'_>,
        committed: bool,
        timed: bool,
        ending: &Open,
    ) -> Result<Option<(DraftTxn, TxnTimes)>, ReadError> {
        let id = number(records, "a transaction id")?;
        if id != ending.id {
            let open = ending.id;
            return Err(records
                .error(format!("expected the end of transaction {open}, found that of {id}")));
        }
        if !committed {
            self.builder.outcome(ending.txn, Outcome::Aborted);
        }
        let (Some(invoked), true) = (ending.begun, timed && committed) else {
            return Ok(None);
        };
        let committing = time(records)?;
        let begin = Interval { invoked, completed: within(committing) };
        let commit = Interval { invoked: committing, completed: NEVER };
        let known = TxnTimes { begin, commit };
        self.builder.times(ending.txn, known);
        Ok(Some((ending.txn, known)))
    }

    fn write(&mut self, records: &mut Records<'_>) -> Result<(), ReadError> {
        let id = number(records, "a write id")?;
        let key = number(records, "a key")?;
        let value = number(records, "a value")?;
        let (kind, version) = match id {
            DELETE => (OpKind::Delete, Value::NIL),
            UNIVERSAL => (OpKind::Write, self.builder.values().unsigned(value)),
            id => (OpKind::Write, self.builder.values().unsigned(id)),
        };
        let name = self.builder.values().unsigned(key);
        let key = self.builder.key(name);
        self.builder.op(kind, key, version);
        self.known.insert((name, version));
        Ok(())
    }

    fn read(&mut self, records: &mut Records<'_>, position: u32) -> Result<(), ReadError> {
        let writer = number(records, "the transaction read from")?;
        let id = number(records, "a write id")?;
        let key = number(records, "a key")?;
        let value = number(records, "a value")?;
        let name = self.builder.values().unsigned(key);
        let key = self.builder.key(name);
        let version = match (writer, id) {
            (INITIAL | NULL, _) | (_, INITIAL | NULL | DELETE) => Value::NIL,
            (MISSING, _) | (_, MISSING) => {
                let text = "the log does not tell which version was read".into();
                self.builder.remark("unknown-version", text);
                Value::UNKNOWN
            }
            (_, UNIVERSAL) => self.builder.values().unsigned(value),
            (_, id) => {
                let version = self.builder.values().unsigned(id);
                self.seen.push(Seen { writer, key: name, version, position });
                version
            }
        };
        self.builder.op(OpKind::Read, key, version);
        Ok(())
    }

    /// Adds transactions that were read from but are in no log. A version that its
    /// writer's own log does not have stays unexplained: nobody wrote it.
    fn add_missing_writers(self) {
        let mut added: HashMap<u64, DraftTxn> = HashMap::new();
        let mut known = self.known;
        let builder = self.builder;
        for seen in self.seen {
            if self.txns.contains(&seen.writer) || !known.insert((seen.key, seen.version)) {
                continue;
            }
            builder.position(seen.position);
            if let Some(&txn) = added.get(&seen.writer) {
                builder.resume(txn);
            } else {
                let id = seen.writer;
                let text = format!("transaction {id} was read from but is in no log");
                builder.remark("missing-writer", text);
                let label = builder.values().unsigned(id);
                let session = builder.new_session(label);
                let txn = builder.begin(session);
                builder.label(txn, label);
                builder.unlogged(txn);
                added.insert(id, txn);
            }
            let key = builder.key(seen.key);
            builder.op(OpKind::Write, key, seen.version);
        }
    }
}

fn number(records: &mut Records<'_>, what: &str) -> Result<u64, ReadError> {
    records.take(what).map(u64::from_be_bytes)
}

pub(super) const MILLISECOND: Time = 1_000_000;

/// The latest instant at which a clock that counts milliseconds showed `time`.
fn within(time: Time) -> Time {
    time.saturating_add(MILLISECOND - 1)
}

fn time(records: &mut Records<'_>) -> Result<Time, ReadError> {
    let milliseconds = i64::from_be_bytes(records.take("a time in milliseconds")?);
    milliseconds.checked_mul(MILLISECOND).ok_or_else(|| {
        records.error(format!("expected a time in milliseconds, found {milliseconds}"))
    })
}
