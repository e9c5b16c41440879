//! Writing the text format, session by session.

use super::{DECLARATIONS, VERSION, is_plain_address};
use crate::format::WriteError;
use crate::history::{
    ALWAYS, History, Interval, KeyId, NEVER, OpId, OpKind, Outcome, SessionId, Time, Timestamp,
    TxnId,
};
use crate::snapshot::Snapshot;
use crate::value::{Datum, Value};
use hashbrown::{HashMap, HashSet};
use std::fmt;
use std::io::{self, BufWriter, Write};

/// Names on one line of a serialization order; the next line continues it.
const SERIAL_NAMES_MAX: usize = 100;

pub(super) fn write(history: &History, out: &mut dyn Write) -> Result<Vec<String>, WriteError> {
    let mut losses = Vec::new();
    let mut writer = TextWriter {
        history,
        out: BufWriter::with_capacity(1 << 16, out),
        labels: session_labels(history, &mut losses),
    };
    writeln!(writer.out, "# isolde-history {VERSION}")?;
    writer.initial_values()?;
    for session in history.sessions() {
        writer.session(session)?;
    }
    writer.orders()?;
    writer.events()?;
    writer.out.flush()?;
    if !history.remarks().is_empty() {
        losses.push("what was noticed while reading the history's source".into());
    }
    if history.has_statements() {
        losses.push("statements of operations".into());
    }
    Ok(losses)
}

/// How each session is written. The format tells sessions apart by their labels
/// alone, so that of several with one label the later ones get new labels.
fn session_labels(history: &History, losses: &mut Vec<String>) -> Vec<String> {
    let mut taken: HashSet<Value> = HashSet::new();
    let mut written: HashSet<String> = HashSet::new();
    let mut shared: Vec<SessionId> = Vec::new();
    let mut labels: Vec<String> = Vec::with_capacity(history.session_count());
    for session in history.sessions() {
        let label = history.session_label(session);
        if !taken.insert(label) {
            shared.push(session);
        }
        labels.push(session_label(history.datum(label)));
        written.insert(labels[session.index()].clone());
    }
    if !shared.is_empty() {
        losses.push(format!(
            "the labels of {} sessions that others have too: they got new ones",
            shared.len()
        ));
    }
    let mut next: HashMap<Value, u32> = HashMap::new();
    for session in shared {
        let label = history.session_label(session);
        let counter = next.entry(label).or_insert(1);
        loop {
            *counter += 1;
            let text = format!("{}#{counter}", bare(history.datum(label)));
            let candidate = session_label(Datum::Text(&text));
            if written.insert(candidate.clone()) {
                labels[session.index()] = candidate;
                break;
            }
        }
    }
    labels
}

fn bare(datum: Datum<'_>) -> String {
    match datum {
        Datum::Text(text) | Datum::Keyword(text) | Datum::Other(text) => text.to_owned(),
        other => other.to_string(),
    }
}

/// A label in front of `/` or in place of a declaration's first word.
fn session_label(label: Datum<'_>) -> String {
    match label {
        Datum::Text(text) if text.contains('/') || DECLARATIONS.contains(&text) => quoted(text),
        Datum::Keyword(word) if word.contains('/') => format!(":{}", quoted(word)),
        other => other.to_string(),
    }
}

/// Keys without an initial value of their own that no operation names. They are counted by
/// conditions as others are, so something has to name them.
fn unnamed(history: &History) -> impl Iterator<Item = KeyId> {
    let mut is_named = vec![false; history.key_count()];
    for (key, _) in history.declared_initial() {
        is_named[key.index()] = true;
    }
    for op in (0..history.op_count() as u32).map(OpId) {
        let it = history.op(op);
        if it.kind.has_key() {
            is_named[it.key.index()] = true;
        } else {
            history.predicate(op).rows.iter().for_each(|row| is_named[row.key.index()] = true);
        }
    }
    history.keys().filter(move |key| !is_named[key.index()])
}

struct TextWriter<'a> {
    history: &'a History,
    out: BufWriter<&'a mut dyn Write>,
    labels: Vec<String>,
}

impl TextWriter<'_> {
    fn initial_values(&mut self) -> io::Result<()> {
        let history = self.history;
        let default = history.initial_default();
        if default != Value::NIL {
            writeln!(self.out, "init *={}", history.datum(default))?;
        }
        for &(key, value) in history.declared_initial() {
            let name = history.datum(history.key_name(key));
            writeln!(self.out, "init {name}={}", history.datum(value))?;
        }
        if default != Value::NIL {
            for key in unnamed(history) {
                let name = history.datum(history.key_name(key));
                writeln!(self.out, "init {name}={}", history.datum(default))?;
            }
        }
        Ok(())
    }

    fn session(&mut self, session: SessionId) -> io::Result<()> {
        let history = self.history;
        let (endpoint, origin) = (history.endpoint(session), history.origin(session));
        let txns = history.txns_of(session);
        if txns.len() == 0 || endpoint != Value::NIL || origin != Value::NIL {
            write!(self.out, "session {}", self.labels[session.index()])?;
            for (word, value) in [("endpoint", endpoint), ("origin", origin)] {
                match history.datum(value) {
                    Datum::Nil => {}
                    Datum::Text(text) if is_plain_address(text) => {
                        write!(self.out, " {word} {text}")?;
                    }
                    other => write!(self.out, " {word} {other}")?,
                }
            }
            writeln!(self.out)?;
        }
        for txn in txns {
            self.transaction(session, txn)?;
        }
        Ok(())
    }

    fn transaction(&mut self, session: SessionId, txn: TxnId) -> io::Result<()> {
        let history = self.history;
        self.out.write_all(self.labels[session.index()].as_bytes())?;
        if history.txn_label(txn) != Value::NIL {
            write!(self.out, "/{}", history.datum(history.txn_label(txn)))?;
        }
        self.times(txn)?;
        self.out.write_all(b":")?;
        for op in history.ops_of(txn) {
            self.out.write_all(b" ")?;
            self.operation(op)?;
        }
        match history.outcome(txn) {
            Outcome::Committed => {}
            Outcome::Aborted => self.out.write_all(b" aborted")?,
            Outcome::Unknown if history.is_unlogged(txn) => self.out.write_all(b" unlogged")?,
            Outcome::Unknown => self.out.write_all(b" unknown")?,
        }
        if history.error(txn) != Value::NIL {
            write!(self.out, " error {}", history.datum(history.error(txn)))?;
        }
        self.out.write_all(b"\n")
    }

    fn times(&mut self, txn: TxnId) -> io::Result<()> {
        let Interval { invoked, completed } = self.history.txn_interval(txn);
        let columns = &self.history.columns;
        let begun = *columns.begun.get(txn.index()).unwrap_or(&NEVER);
        let committing = *columns.committing.get(txn.index()).unwrap_or(&ALWAYS);
        let (invoked, completed) = (time(invoked, ALWAYS), time(completed, NEVER));
        if begun != NEVER || committing != ALWAYS {
            let (begun, committing) = (time(begun, NEVER), time(committing, ALWAYS));
            write!(self.out, " @{invoked}..{begun}..{committing}..{completed}")?;
        } else if self.history.txn_interval(txn) != Interval::UNKNOWN {
            write!(self.out, " @{invoked}..{completed}")?;
        }
        if let Some(timestamps) = self.history.timestamps(txn) {
            let (start, commit) = (timestamp(timestamps.start), timestamp(timestamps.commit));
            write!(self.out, " ts={start}..{commit}")?;
        }
        if let Some(number) = self.history.number(txn) {
            write!(self.out, " id={number}")?;
        }
        if let Some(snapshot) = self.history.txn_snapshot(txn) {
            write!(self.out, " {}", seen(snapshot))?;
        }
        Ok(())
    }

    fn operation(&mut self, op: OpId) -> io::Result<()> {
        let history = self.history;
        let operation = history.op(op);
        let letter = match operation.kind {
            OpKind::Read | OpKind::ReadList | OpKind::ReadOther => 'r',
            OpKind::Write => 'w',
            OpKind::Append => 'a',
            OpKind::Insert => 'i',
            OpKind::Delete => 'd',
            OpKind::Call => 'c',
            OpKind::PredicateRead => 'p',
            OpKind::PredicateUpdate => 'u',
        };
        if operation.kind.has_key() {
            let key = history.datum(history.key_name(operation.key));
            write!(self.out, "{letter}({key}")?;
            match operation.kind {
                OpKind::ReadList => self.list(op)?,
                OpKind::Delete if operation.value == Value::NIL => {}
                OpKind::ReadOther => write!(self.out, ",!{}", history.datum(operation.value))?,
                _ => write!(self.out, ",{}", history.datum(operation.value))?,
            }
        } else {
            write!(self.out, "{letter}(")?;
            self.predicate(op)?;
        }
        self.out.write_all(b")")?;
        if history.has_rows() {
            self.row(op)?;
        }
        let interval = history.op_interval(op);
        if interval != Interval::UNKNOWN {
            let invoked = time(interval.invoked, ALWAYS);
            let completed = time(interval.completed, NEVER);
            write!(self.out, "@{invoked}..{completed}")?;
        }
        if let Some(snapshot) = history.op_snapshot(op) {
            write!(self.out, "{}", seen(snapshot))?;
        }
        Ok(())
    }

    fn list(&mut self, op: OpId) -> io::Result<()> {
        self.out.write_all(b",[")?;
        for (index, &element) in self.history.list(op).iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(self.out, "{space}{}", self.history.datum(element))?;
        }
        self.out.write_all(b"]")
    }

    fn predicate(&mut self, op: OpId) -> io::Result<()> {
        let predicate = self.history.predicate(op);
        write!(self.out, "{}", predicate.display(self.history.values()))?;
        let rows = &predicate.rows;
        let is_update = self.history.op(op).kind == OpKind::PredicateUpdate;
        let is_unlisted = is_update && !rows.iter().any(|row| row.matched);
        for matched in [true, false] {
            let is_last = rows.iter().all(|row| row.matched);
            let is_empty = rows.is_empty() && !is_unlisted;
            if is_empty || (is_last && !matched) {
                break;
            }
            self.out.write_all(b";")?;
            if matched && is_unlisted {
                self.out.write_all(b" ?")?;
            }
            for row in rows.iter().filter(|row| row.matched == matched) {
                let value = self.history.datum(row.value);
                let key = self.history.datum(self.history.key_name(row.key));
                write!(self.out, " {key}={value}")?;
            }
        }
        Ok(())
    }

    fn row(&mut self, op: OpId) -> io::Result<()> {
        let mut opening = "{";
        for (column, content) in self.history.row(op) {
            let (column, content) = (self.history.datum(column), self.history.datum(content));
            write!(self.out, "{opening}{column}={content}")?;
            opening = " ";
        }
        if opening == " " {
            self.out.write_all(b"}")?;
        }
        Ok(())
    }

    fn orders(&mut self) -> io::Result<()> {
        let history = self.history;
        for chain in &history.orders().versions {
            let key = history.datum(history.key_name(chain.key));
            let complete = if chain.complete { " complete" } else { "" };
            write!(self.out, "order {key}{complete}:")?;
            let mut numbers = chain.numbers.iter().peekable();
            for (place, &value) in (0..).zip(&chain.values) {
                write!(self.out, " {}", history.datum(value))?;
                if let Some((_, number)) = numbers.next_if(|entry| entry.0 == place) {
                    write!(self.out, "@{number}")?;
                }
            }
            writeln!(self.out)?;
        }
        let Some(total) = &history.orders().total else {
            return Ok(());
        };
        if total.is_empty() {
            return writeln!(self.out, "serial:");
        }
        let names = self.txn_names();
        for line in total.chunks(SERIAL_NAMES_MAX) {
            write!(self.out, "serial:")?;
            for txn in line {
                write!(self.out, " {}", names[txn.index()])?;
            }
            writeln!(self.out)?;
        }
        Ok(())
    }

    /// What the reader will call each transaction; by number where several share
    /// a name.
    fn txn_names(&self) -> Vec<String> {
        let history = self.history;
        let mut names: Vec<String> = Vec::with_capacity(history.txn_count());
        for session in history.sessions() {
            let label = history.datum(history.session_label(session));
            let written = &self.labels[session.index()];
            let renamed = *written != session_label(label);
            let txns = history.txns_of(session);
            let several = txns.len() > 1;
            for (place, txn) in (1..).zip(txns) {
                // A session with a new label gives its transactions new names.
                names.push(if !renamed || history.txn_label(txn) != Value::NIL {
                    history.txn_name(txn)
                } else if several {
                    format!("{written}.{place}")
                } else {
                    written.clone()
                });
            }
        }
        let mut counts: HashMap<String, u32> = HashMap::new();
        for name in &names {
            *counts.entry_ref(name).or_insert(0) += 1;
        }
        for (number, name) in (1..).zip(&mut names) {
            if counts.get(name).is_some_and(|&count| count > 1) {
                *name = format!("@{number}");
            }
        }
        names
    }

    fn events(&mut self) -> io::Result<()> {
        for event in self.history.events() {
            match event.time {
                Some(time) => write!(self.out, "event {time} ")?,
                None => write!(self.out, "event ? ")?,
            }
            let text = &event.text;
            let plain = !text.is_empty()
                && !text.starts_with('"')
                && !text.contains(|character: char| character.is_control())
                && text.trim() == text;
            if plain {
                writeln!(self.out, "{text}")?;
            } else {
                writeln!(self.out, "{}", quoted(text))?;
            }
        }
        Ok(())
    }
}

/// A text in quotes even if it could do without.
fn quoted(text: &str) -> String {
    let mut quoted = Datum::Text(text).to_string();
    if !quoted.starts_with('"') {
        quoted = format!("\"{quoted}\"");
    }
    quoted
}

fn time(time: Time, missing: Time) -> impl fmt::Display {
    fmt::from_fn(
        move |out| {
            if time == missing { out.write_str("?") } else { write!(out, "{time}") }
        },
    )
}

fn seen(snapshot: &Snapshot) -> impl fmt::Display {
    fmt::from_fn(move |out| {
        write!(out, "sees={}", snapshot.below)?;
        for (place, number) in snapshot.except.iter().enumerate() {
            write!(out, "{}{number}", if place == 0 { '!' } else { ',' })?;
        }
        Ok(())
    })
}

fn timestamp(timestamp: Timestamp) -> impl fmt::Display {
    let Timestamp { physical, logical } = timestamp;
    fmt::from_fn(move |out| match logical {
        0 => write!(out, "{physical}"),
        _ => write!(out, "{physical}.{logical}"),
    })
}
