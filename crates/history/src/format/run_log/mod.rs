//! The log that a run writes while it drives a database.
//!
//! Described in `docs/formats/log.md`. It is appended to and never changed, so that
//! what was recorded is there whatever happens to the recorder: operations are in the
//! log before their commit is sent, outcomes soon after. A log that was cut off is
//! read up to its last whole line, and transactions without an outcome are unknown;
//! a remark tells both. Everything else that is wrong is an error.

mod scan;

use super::{Format, Input, Sample};
use crate::builder::{DraftTxn, HistoryBuilder};
use crate::error::{Place, ReadError};
use crate::history::{Interval, KeyId, OpKind, Outcome, SessionId, Time, TxnTimes, VersionChain};
use crate::predicate::{Aggregate, Condition, Predicate, PredicateRow};
use crate::source::Source;
use crate::value::Value;
use hashbrown::HashMap;
use scan::{About, Effect, Installed, Line, Step, Word};

pub(super) const FORMAT: Format = Format {
    name: "log",
    title: "what `isolde run` records, line by line",
    detect,
    read,
    write: None,
};

const HEAD: &[u8] = b"isolde-log 1";

fn detect(sample: &Sample<'_>) -> bool {
    sample.names.is_none() && sample.head.starts_with(b"isolde-log ")
}

fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    let mut source = input.file()?;
    let name = source.name().to_owned();
    let mut reader = Reader {
        builder,
        name: &name,
        sessions: HashMap::new(),
        intents: HashMap::new(),
        open: HashMap::new(),
        replaced: HashMap::new(),
        writers: None,
        written: Vec::new(),
        has_head: false,
        has_ended: false,
    };
    let (mut line, mut cut) = (0u64, 0);
    loop {
        let length = source.fill_lines()?;
        if length == 0 {
            break;
        }
        let mut rest = &source.window()[..length];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            line += 1;
            reader.line(&rest[..end], line)?;
            rest = &rest[end + 1..];
        }
        cut = rest.len();
        source.consume(length);
    }
    reader.finish(cut, &source)
}

/// The transaction that a session is in.
struct Open {
    number: u64,
    txn: DraftTxn,
    begin: Interval,
}

/// Which versions a line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    All,
    /// Those that their own transaction did not replace.
    Finals,
}

struct Reader<'a> {
    builder: &'a mut HistoryBuilder,
    name: &'a str,
    sessions: HashMap<u64, SessionId>,
    /// Whole transactions that were sent: their lines. What they saw follows, if the
    /// client learned it.
    intents: HashMap<u64, Vec<u8>>,
    open: HashMap<u64, Open>,
    /// By key and last value of a transaction, what it wrote there before.
    replaced: HashMap<(u64, u64), Vec<u64>>,
    /// Who wrote what, once it is asked for: behind all transactions.
    writers: Option<HashMap<(KeyId, Value), DraftTxn>>,
    /// Keys and values that the transaction at hand writes.
    written: Vec<(u64, u64)>,
    has_head: bool,
    has_ended: bool,
}

impl Reader<'_> {
    fn line(&mut self, text: &[u8], line: u64) -> Result<(), ReadError> {
        if !self.has_head {
            if text != HEAD {
                return Err(self.expected(line, "the head of a log, `isolde-log 1`", text));
            }
            self.has_head = true;
            return Ok(());
        }
        self.builder.position(u32::try_from(line).unwrap_or(u32::MAX));
        let mut cursor = Line::new(text);
        let known = match cursor.word() {
            b"session" => self.session(&mut cursor),
            b"intent" => self.intent(cursor),
            b"txn" => self.txn(&mut cursor),
            b"commit" => self.outcome(&mut cursor, Outcome::Committed),
            b"abort" => self.outcome(&mut cursor, Outcome::Aborted),
            b"unknown" => self.outcome(&mut cursor, Outcome::Unknown),
            b"versions" => self.versions(&mut cursor, Told::All),
            b"finals" => self.versions(&mut cursor, Told::Finals),
            b"numbers" => self.numbers(&mut cursor),
            b"event" => self.event(&mut cursor),
            b"end" => {
                self.has_ended = true;
                Ok(())
            }
            _ => Err(
                "`session`, `txn`, `intent`, `commit`, `abort`, `unknown`, `versions`, `finals`, \
                 `numbers`, `event` or `end`",
            ),
        };
        known.map_err(|expected| self.expected(line, expected, text))
    }

    fn expected(&self, line: u64, expected: &str, found: &[u8]) -> ReadError {
        ReadError::expected(self.name, Place::Line(line), expected, found)
    }

    fn session(&mut self, line: &mut Line<'_>) -> Result<(), &'static str> {
        let label = line.number()?;
        let value = self.builder.values().unsigned(label);
        let session = self.builder.session(value);
        let endpoint = line.text()?;
        if !endpoint.is_empty() {
            let endpoint = self.builder.values().text(endpoint);
            self.builder.endpoint(session, endpoint);
        }
        self.sessions.insert(label, session);
        Ok(())
    }

    fn intent(&mut self, mut line: Line<'_>) -> Result<(), &'static str> {
        let rest = line.text()?.as_bytes().to_vec();
        let label = Line::new(&rest).number()?;
        self.intents.insert(label, rest);
        Ok(())
    }

    /// A transaction; its outcome follows.
    fn txn(&mut self, line: &mut Line<'_>) -> Result<(), &'static str> {
        const DECLARED: &str = "the number of a session that a line above declares";
        let (label, number) = (line.number()?, line.number()?);
        let session = *self.sessions.get(&label).ok_or(DECLARED)?;
        let begin = line.interval()?.ok_or("the times of the begin, as in 10-20")?;
        self.intents.remove(&label);
        let txn = self.builder.begin(session);
        self.builder.outcome(txn, Outcome::Unknown);
        self.builder.times(txn, TxnTimes { begin, commit: Interval::UNKNOWN });
        self.written.clear();
        while let Some(word) = line.txn_word()? {
            match word {
                Word::Step(step) => {
                    step.written(&mut self.written);
                    self.step(&step);
                }
                Word::Number(number) => self.builder.number(txn, number),
                Word::Snapshot(snapshot) => self.builder.txn_snapshot(txn, snapshot),
            }
        }
        self.note_replaced();
        self.open.insert(label, Open { number, txn, begin });
        Ok(())
    }

    /// Remembers what a transaction wrote more than once.
    fn note_replaced(&mut self) {
        // In the order of keys, and of one key in the order of writing.
        self.written.sort_by_key(|write| write.0);
        for of_key in self.written.chunk_by(|left, right| left.0 == right.0) {
            if let [before @ .., last] = of_key
                && !before.is_empty()
            {
                let before = before.iter().map(|write| write.1).collect();
                self.replaced.insert(*last, before);
            }
        }
    }

    /// The transaction that `label` intended, whose answers nobody saw.
    fn intended(&mut self, label: u64) -> Result<(), &'static str> {
        match self.intents.remove(&label) {
            Some(line) => self.txn(&mut Line::new(&line)),
            None => Ok(()),
        }
    }

    fn step(&mut self, step: &Step) {
        let values = self.builder.values();
        let numbers: Vec<_> = step.values.iter().map(|&number| values.unsigned(number)).collect();
        let first = numbers.first().copied().unwrap_or(Value::NIL);
        let condition = match step.about {
            About::Key(key) => {
                let name = values.unsigned(key);
                let key = self.builder.key(name);
                match (step.kind, step.found) {
                    (OpKind::ReadList, _) => self.builder.read_list(key, &numbers),
                    (OpKind::ReadOther, Some(found)) => {
                        let values = self.builder.values();
                        let found = found.map_or(Value::NIL, |number| values.unsigned(number));
                        // Both together are what no state of the database explains.
                        if found == first {
                            self.builder.op(OpKind::ReadOther, key, first);
                            self.details(step);
                        }
                        self.builder.op(OpKind::Read, key, found);
                    }
                    (kind, _) => self.builder.op(kind, key, first),
                }
                return self.details(step);
            }
            About::Keys(low, high) => {
                Condition::KeyRange { low: values.unsigned(low), high: values.unsigned(high) }
            }
            About::Values(low, high) => {
                Condition::ValueRange { low: values.unsigned(low), high: values.unsigned(high) }
            }
            About::Remainder(modulus, remainder) => Condition::Modulo { modulus, remainder },
        };
        let aggregate = match step.effect {
            Effect::Computed(function) => Some(Aggregate { function, result: first }),
            _ => None,
        };
        let mut rows = Vec::with_capacity(step.rows.len());
        let mut written = Vec::new();
        for &(key, value) in &step.rows {
            let name = self.builder.values().unsigned(key);
            let key = self.builder.key(name);
            let value = value.map(|value| self.builder.values().unsigned(value));
            match (value, step.effect) {
                (None, _) => rows.push(PredicateRow { key, value: Value::NIL, matched: false }),
                // What the update saw is not known, what it wrote is.
                (Some(value), Effect::Updated) => {
                    rows.push(PredicateRow { key, value: Value::UNKNOWN, matched: true });
                    written.push((OpKind::Write, key, value));
                }
                (Some(value), Effect::Removed) => {
                    rows.push(PredicateRow { key, value, matched: true });
                    written.push((OpKind::Delete, key, Value::NIL));
                }
                (Some(value), _) => rows.push(PredicateRow { key, value, matched: true }),
            }
        }
        // One that found nothing to change has only read, and the next write is not its own.
        let kind = if written.is_empty() { OpKind::PredicateRead } else { step.kind };
        self.builder.predicate(kind, Predicate { condition, rows, aggregate });
        self.details(step);
        for (kind, key, value) in written {
            self.builder.op(kind, key, value);
            if let Some(interval) = step.interval {
                self.builder.op_interval(interval);
            }
        }
    }

    /// When the last operation was, and what it was executed on.
    fn details(&mut self, step: &Step) {
        if let Some(interval) = step.interval {
            self.builder.op_interval(interval);
        }
        if let Some(snapshot) = &step.snapshot {
            self.builder.op_snapshot(snapshot.clone());
        }
    }

    fn outcome(&mut self, line: &mut Line<'_>, outcome: Outcome) -> Result<(), &'static str> {
        const OPEN: &str = "the session and number of a transaction without an outcome";
        let (label, number) = (line.number()?, line.number()?);
        let commit = line.interval()?.ok_or("the times of the end, as in 10-20")?;
        self.intended(label)?;
        let open = self.open.remove(&label).filter(|open| open.number == number).ok_or(OPEN)?;
        self.builder.outcome(open.txn, outcome);
        self.builder.times(open.txn, TxnTimes { begin: open.begin, commit });
        let reason = line.text()?;
        if !reason.is_empty() {
            let reason = self.builder.values().text(reason);
            self.builder.error(open.txn, reason);
        }
        Ok(())
    }

    /// Versions of a register, as the database told them.
    fn versions(&mut self, line: &mut Line<'_>, told: Told) -> Result<(), &'static str> {
        let key = line.number()?;
        let mut installed = line.versions()?;
        if told == Told::Finals {
            let all = |last: &Installed| {
                let replaced = match *last {
                    Installed::Value(last) => self.replaced.get(&(key, last)),
                    Installed::Removal(_) => None,
                };
                let replaced = replaced.into_iter().flatten().map(|&it| Installed::Value(it));
                replaced.chain([*last]).collect::<Vec<_>>()
            };
            installed = installed.iter().flat_map(all).collect();
        }
        let values = self.builder.values();
        let name = values.unsigned(key);
        let mut numbers = Vec::new();
        let mut value = |(place, installed): (u32, Installed)| match installed {
            Installed::Value(number) => values.unsigned(number),
            Installed::Removal(number) => {
                numbers.extend(number.map(|number| (place, number)));
                Value::NIL
            }
        };
        let values = (0..).zip(installed).map(&mut value).collect();
        let key = self.builder.key(name);
        self.builder.version_chain(VersionChain { key, values, numbers, complete: true });
        Ok(())
    }

    /// Numbers of transactions, each by something that its transaction wrote.
    fn numbers(&mut self, line: &mut Line<'_>) -> Result<(), &'static str> {
        for (number, key, value) in line.numbered()? {
            let values = self.builder.values();
            let (name, value) = (values.unsigned(key), values.unsigned(value));
            let key = self.builder.key(name);
            let writer = self.writers.get_or_insert_with(|| self.builder.writers());
            // Who wrote nothing that is recorded has no place for a number.
            if let Some(&txn) = writer.get(&(key, value)) {
                self.builder.number(txn, number);
            }
        }
        Ok(())
    }

    fn event(&mut self, line: &mut Line<'_>) -> Result<(), &'static str> {
        let time = line.number()?;
        let text = line.text()?.to_owned();
        self.builder.event(Time::try_from(time).ok(), text);
        Ok(())
    }

    fn finish(mut self, cut: usize, source: &Source<'_>) -> Result<(), ReadError> {
        if !self.has_head {
            let message = "expected the head of a log, `isolde-log 1`, found a part of a line";
            return Err(ReadError::new(source.name(), message).at(Place::Line(1)));
        }
        self.builder.settle_numbers();
        let mut sent: Vec<u64> = self.intents.keys().copied().collect();
        sent.sort_unstable();
        for label in sent {
            self.intended(label).map_err(|expected| {
                let found = format!("another `intent` of session {label}");
                ReadError::new(source.name(), format!("expected {expected}, found {found}"))
                    .at(source.place())
            })?;
        }
        let open = self.open.len();
        if !self.has_ended || cut > 0 {
            let lost = if cut > 0 {
                format!("{cut} bytes of a last line are lost, ")
            } else {
                String::new()
            };
            self.builder.remark(
                "cut-off",
                format!(
                    "the log has no end: {lost}what came after is not known, and {open} \
                     transactions without an outcome count as unknown"
                ),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
