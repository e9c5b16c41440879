//! Traces as histories: what applications send to a watch, kept in a file.
//!
//! Described in `docs/formats/trace.md`. A client is a session, and its transactions are called
//! by their place in it, as several clients count from 1. A row, or a column of it, is a key. A
//! lock is not kept: a locking read is a read. Transactions without an end, and those whose
//! commit has no answer, have unknown outcomes. A file that was cut off within a message is read
//! up to the last whole one, with a remark: its writer may have died.
//!
//! **When a transaction begins.** Its snapshot may be taken by its first read, long after its
//! begin was answered, so its begin lies between the begin that was sent and the answer to the
//! first read. That is the wider interval: it excuses, and never accuses.
//!
//! **What was there before.** A trace begins in the middle of the life of its database, so what
//! a key held before is taken from the reads:
//! - a value that was read, with the answer there before anybody asked to write it, was there
//!   from the start. Of several such values of a key the one that was answered first was; the
//!   others are thin-air reads;
//! - else, if the key has values that were read and that nobody wrote, the first of them was;
//! - else a value that was read before the commit of a writer of it was confirmed may be that
//!   writer's or may have been there. One such value of a key is taken to have been there,
//!   which leaves both open. More of them may have been written by a transaction that is in no
//!   log, each by its own.
//!
//! A trace that lacks nothing (`--complete-log`) begins with an empty database, and none of
//! this is done.
//!
//! Where values are versions, they name their writers, and what was there before is known: see
//! `versions.rs`.

mod versions;

use super::{Format, Input, Sample};
use crate::builder::{DraftTxn, HistoryBuilder};
use crate::error::ReadError;
use crate::history::{
    Interval, KeyId, NEVER, OpKind, Outcome, PositionUnit, SessionId, Time, TxnTimes,
};
use crate::source::Source;
use crate::trace::{Decoder, Form, Hello, Kind, Row, Scalar, Sink, is_trace};
use crate::value::Value;
use hashbrown::HashMap;
use std::fmt::Write;
use versions::Versions;

pub(super) const FORMAT: Format = Format {
    name: "trace",
    title: "what applications send to isolde watch",
    detect: |sample: &Sample<'_>| sample.names.is_none() && is_trace(sample.head),
    read,
    write: None,
};

/// The table whose rows are called by their keys alone.
const REGISTERS: &str = "registers";

fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    let mut source = input.file()?;
    let mut decoder = Decoder::new();
    let mut events = Events {
        builder,
        message: 0,
        clients: Vec::new(),
        names: HashMap::new(),
        uses: HashMap::new(),
        key_name: String::new(),
        versions: None,
        statements: HashMap::new(),
        by: None,
    };
    while !source.window().is_empty() || source.fill()? {
        let read = decoder.read(source.window(), &mut events);
        let taken = source.window().len();
        let place = decoder.place();
        read.map_err(|message| ReadError::new(source.name(), message).at(place))?;
        source.consume(taken);
    }
    if decoder.form() == Some(Form::Binary) {
        events.builder.position_unit(PositionUnit::Record);
    }
    events.finish(&decoder, &source)
}

/// A client and the transaction it is in.
struct Client {
    session: SessionId,
    open: Option<Open>,
    /// The number of its last transaction.
    last: Option<u64>,
}

/// A transaction that has not ended.
struct Open {
    draft: DraftTxn,
    begin: Interval,
    /// The interval of its first operation, and of its first read.
    first: Option<Interval>,
    first_read: Option<Interval>,
    last: Interval,
    /// What it wrote.
    written: Vec<(KeyId, Value)>,
    /// When each of these was answered.
    answered: Vec<Time>,
    /// It may have written rows that are not told.
    has_unseen: bool,
}

impl Open {
    fn times(&self, commit: Interval) -> TxnTimes {
        let taken = self.first_read.or(self.first).unwrap_or(self.begin);
        let completed = self.begin.completed.max(taken.completed);
        TxnTimes { begin: Interval { completed, ..self.begin }, commit }
    }
}

/// When a value of a key was first read and written.
#[derive(Clone, Copy)]
struct Uses {
    /// The first read that was answered.
    read: Time,
    /// The first write that was asked for.
    asked: Time,
    /// The first commit of a writer that was confirmed.
    confirmed: Time,
}

const UNUSED: Uses = Uses { read: NEVER, asked: NEVER, confirmed: NEVER };

struct Events<'b> {
    builder: &'b mut HistoryBuilder,
    /// The number of the message that is read.
    message: u64,
    clients: Vec<Client>,
    names: HashMap<String, u32>,
    uses: HashMap<(KeyId, Value), Uses>,
    /// The name of a row, in a buffer that is used again.
    key_name: String,
    /// Where values are versions, what is known of them.
    versions: Option<Versions>,
    statements: HashMap<u64, Value>,
    /// The statement of the next event.
    by: Option<Value>,
}

impl Events<'_> {
    fn key(&mut self, row: &Row<'_>) -> Result<KeyId, String> {
        if let (REGISTERS, Scalar::Integer(number), None) = (row.table, row.key, row.column) {
            let name = self.builder.values().int(number);
            return Ok(self.builder.key(name));
        }
        let name = &mut self.key_name;
        name.clear();
        push_name(name, row.table);
        name.push('/');
        match row.key {
            Scalar::Absent => return Err("expected the key of a row".into()),
            Scalar::Integer(number) => write!(name, "{number}").expect("a string grows"),
            // A number and a text that is written alike are two keys.
            Scalar::Text(text) if text.parse::<i64>().is_ok() => {
                write!(name, "'{text}'").expect("a string grows");
            }
            Scalar::Text(text) => push_name(name, text),
        }
        if let Some(column) = row.column {
            name.push('/');
            push_name(name, column);
        }
        let name = self.builder.values().text(&self.key_name);
        Ok(self.builder.key(name))
    }

    fn value(&mut self, scalar: Scalar<'_>) -> Value {
        match scalar {
            Scalar::Absent => Value::NIL,
            Scalar::Integer(number) => self.builder.values().int(number),
            Scalar::Text(text) => self.builder.values().text(text),
        }
    }

    /// Begins the transaction if it is not the one that its client is in.
    fn enter(&mut self, client: usize, txn: u64, interval: Interval) -> Result<(), String> {
        let known = &self.clients[client];
        if known.last == Some(txn) {
            return match &known.open {
                Some(open) => {
                    self.builder.resume(open.draft);
                    Ok(())
                }
                None => Err(format!("expected nothing more of transaction {txn}, which ended")),
            };
        }
        if let Some(last) = known.last.filter(|&last| last > txn) {
            return Err(format!("expected a transaction after number {last}, found {txn}"));
        }
        self.leave(client, Outcome::Unknown, None);
        let draft = self.builder.begin(self.clients[client].session);
        let open = Open {
            draft,
            begin: interval,
            first: None,
            first_read: None,
            last: interval,
            written: Vec::new(),
            answered: Vec::new(),
            has_unseen: false,
        };
        let known = &mut self.clients[client];
        known.open = Some(open);
        known.last = Some(txn);
        Ok(())
    }

    fn operation(
        &mut self,
        client: usize,
        kind: Kind,
        interval: Interval,
        rows: &[Row<'_>],
    ) -> Result<(), String> {
        let is_write = kind == Kind::Write;
        let mut written = Vec::new();
        for row in rows {
            let (key, value) = (self.key(row)?, self.value(row.value));
            if self.versions.is_some() && !self.take_version(client, is_write, key, value, interval)
            {
                continue;
            }
            self.builder.op(if is_write { OpKind::Write } else { OpKind::Read }, key, value);
            self.builder.op_interval(interval);
            let uses = self.uses.entry((key, value)).or_insert(UNUSED);
            if is_write {
                uses.asked = uses.asked.min(interval.invoked);
                written.push((key, value));
            } else {
                uses.read = uses.read.min(interval.completed);
            }
        }
        let open = self.clients[client].open.as_mut().expect("it was entered");
        open.first.get_or_insert(interval);
        if !is_write {
            open.first_read.get_or_insert(interval);
        }
        open.last = interval;
        if self.versions.is_some() {
            open.answered.resize(open.written.len() + written.len(), interval.completed);
        }
        open.written.append(&mut written);
        Ok(())
    }

    /// Ends the transaction that the client is in, if it is in one.
    fn leave(&mut self, client: usize, outcome: Outcome, end: Option<Interval>) {
        let Some(open) = self.clients[client].open.take() else { return };
        self.builder.outcome(open.draft, outcome);
        let unanswered = Interval { invoked: open.last.invoked, completed: NEVER };
        let commit = end.unwrap_or(unanswered);
        self.builder.times(open.draft, open.times(commit));
        if let Some(versions) = &mut self.versions {
            let written = open.written.iter().copied().zip(open.answered.iter().copied());
            versions.end(written, outcome, commit.invoked);
        }
        if outcome == Outcome::Committed {
            for name in &open.written {
                let uses = self.uses.get_mut(name).expect("it was written");
                uses.confirmed = uses.confirmed.min(commit.completed);
            }
        }
    }

    fn finish(mut self, decoder: &Decoder, source: &Source<'_>) -> Result<(), ReadError> {
        if decoder.messages() == 0 {
            let message = "expected a trace, found a part of its first message";
            return Err(ReadError::new(source.name(), message).at(decoder.place()));
        }
        for client in 0..self.clients.len() {
            self.leave(client, Outcome::Unknown, None);
        }
        if decoder.is_inside() {
            let text = "the trace ends within a message: what came after the last whole one is \
                        not known";
            self.builder.remark("cut-off", text.into());
        }
        if let Some(versions) = self.versions.take() {
            self.settle_versions(versions);
        } else if !self.builder.is_complete_log() {
            self.find_what_was_there();
        }
        Ok(())
    }

    /// See the documentation of the file.
    fn find_what_was_there(&mut self) {
        let mut found: HashMap<KeyId, Vec<(Value, Uses)>> = HashMap::new();
        for (&(key, value), &uses) in self.uses.iter().filter(|(_, uses)| uses.read != NEVER) {
            found.entry(key).or_default().push((value, uses));
        }
        let mut found: Vec<(KeyId, Vec<(Value, Uses)>)> = found.into_iter().collect();
        found.sort_unstable_by_key(|(key, _)| *key);
        for (key, mut values) in found {
            values.sort_unstable_by_key(|(value, uses)| (uses.read, value.bits()));
            let was_there = |(_, uses): &&(Value, Uses)| uses.read < uses.asked;
            let first = values.iter().find(was_there);
            let unwritten = || values.iter().find(|(_, uses)| uses.asked == NEVER);
            if let Some(&(value, _)) = first.or_else(unwritten) {
                self.builder.initial(key, value);
                continue;
            }
            let is_open = |(_, uses): &&(Value, Uses)| uses.read < uses.confirmed;
            let mut open = values.iter().filter(is_open);
            if let Some(&(value, _)) = open.next() {
                self.builder.initial(key, value);
            }
            for &(value, _) in open {
                self.unlogged(key, value);
            }
        }
    }

    /// A transaction in no log may have written a value.
    fn unlogged(&mut self, key: KeyId, value: Value) {
        let label = self.builder.values().text("before the trace");
        let session = self.builder.new_session(label);
        let txn = self.builder.begin(session);
        self.builder.unlogged(txn);
        self.builder.op(OpKind::Write, key, value);
    }
}

/// Adds a part of the name of a key, such that no two names are alike.
fn push_name(name: &mut String, part: &str) {
    for character in part.chars() {
        if matches!(character, '/' | '\\' | '\'') {
            name.push('\\');
        }
        name.push(character);
    }
}

impl Sink for Events<'_> {
    fn message(&mut self, number: u64) {
        self.message = number;
    }

    fn hello(&mut self, hello: Hello<'_>) -> Result<(), String> {
        hello.client.map_or(Ok(()), |name| self.client(name).map(|_| ()))
    }

    fn client(&mut self, name: &str) -> Result<u32, String> {
        if let Some(&known) = self.names.get(name) {
            return Ok(known);
        }
        let id = u32::try_from(self.clients.len()).map_err(|_| "expected fewer clients")?;
        let label = self.builder.values().text(name);
        let session = self.builder.session(label);
        self.clients.push(Client { session, open: None, last: None });
        self.names.insert(name.to_owned(), id);
        Ok(id)
    }

    fn event(
        &mut self,
        client: u32,
        txn: u64,
        kind: Kind,
        interval: Interval,
        rows: &[Row<'_>],
    ) -> Result<(), String> {
        let client = client as usize;
        self.builder.position(u32::try_from(self.message).unwrap_or(u32::MAX));
        if let Some(statement) = self.by.take() {
            self.builder.statement(statement);
        }
        self.enter(client, txn, interval)?;
        match kind {
            Kind::Begin => {}
            Kind::Read | Kind::LockingRead | Kind::Write => {
                self.operation(client, kind, interval, rows)?;
            }
            Kind::Commit => self.leave(client, Outcome::Committed, Some(interval)),
            Kind::Abort => self.leave(client, Outcome::Aborted, Some(interval)),
            Kind::Lost => self.leave(client, Outcome::Unknown, Some(interval)),
        }
        Ok(())
    }

    fn values_are_versions(&mut self) {
        self.versions = Some(Versions::default());
    }

    fn running(&mut self, number: u64) {
        if let Some(versions) = &mut self.versions {
            versions.running = Some(number);
        }
    }

    fn statement(&mut self, number: u64, text: &str, tags: &str) {
        let values = self.builder.values();
        let statement = if tags.is_empty() {
            values.text(text)
        } else {
            values.text(&format!("{text} /*{tags}*/"))
        };
        self.statements.insert(number, statement);
    }

    fn by(&mut self, statement: u64) {
        self.by = self.statements.get(&statement).copied();
    }

    fn unseen(&mut self, client: u32, txn: u64, interval: Interval) -> Result<(), String> {
        let client = client as usize;
        self.enter(client, txn, interval)?;
        self.clients[client].open.as_mut().expect("it was entered").has_unseen = true;
        Ok(())
    }

    fn heartbeat(&mut self, _: Option<u32>, _: Time) -> Result<(), String> {
        Ok(())
    }

    fn bye(&mut self, _: Option<u32>) -> Result<(), String> {
        Ok(())
    }

    fn broken(&mut self, _: u32) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
