//! Recording a run: every session writes what it saw into one log.
//!
//! The log is the history's `log` format: lines that are appended and never changed.
//! A session collects the line of its transaction in a buffer of its own and hands it
//! over once a transaction, **before** the commit is sent, together with the outcome
//! of the one before. So if the recorder dies, every value that others may have read
//! is in the log; at most the last outcome of each session is missing, and unknown.
//!
//! A run that is judged as it goes may do without the file: an [`Observer`] is told the same.
//!
//! Times are nanoseconds since the log was created, of a clock that never steps back.

use crate::database::{Failure, Identity, SnapshotPoint};
use crate::observer::{Observer, SessionObserver};
use crate::request::{Answer, Filter, Function, Request};
use isolde_history::{Interval, NEVER, Snapshot, Time};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

mod told;

/// The log of one run.
pub struct Log {
    path: PathBuf,
    start: Instant,
    /// `None` if nothing is written.
    file: Option<Mutex<LogFile>>,
    /// Where it is written instead, if it has no file.
    memory: Option<Memory>,
    sessions: AtomicU64,
    observer: Option<Arc<dyn Observer>>,
}

/// A log without a file or a clock: every look at the time is a microsecond later.
#[derive(Default)]
struct Memory {
    lines: Mutex<Vec<u8>>,
    looks: AtomicU64,
}

struct LogFile {
    file: File,
    /// The length up to the last whole hand-over.
    length: u64,
    /// Set by the first failure: a log goes on after no gap.
    failed: Option<(io::ErrorKind, String)>,
}

impl Log {
    /// Creates the log, which must not exist.
    pub fn create(path: &Path) -> io::Result<Log> {
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        let log = Log {
            path: path.to_owned(),
            start: Instant::now(),
            file: Some(Mutex::new(LogFile { file, length: 0, failed: None })),
            memory: None,
            sessions: AtomicU64::new(0),
            observer: None,
        };
        log.append(b"isolde-log 1\n")?;
        Ok(log)
    }

    /// A log that is not written, for a run of which only an observer is told.
    pub fn unwritten() -> Log {
        Log {
            path: PathBuf::new(),
            start: Instant::now(),
            file: None,
            memory: None,
            sessions: AtomicU64::new(0),
            observer: None,
        }
    }

    /// A log in memory, the same for the same requests in the same order.
    pub(crate) fn in_memory() -> Log {
        let lines = Mutex::new(b"isolde-log 1\n".to_vec());
        Log { memory: Some(Memory { lines, ..Memory::default() }), ..Log::unwritten() }
    }

    /// What was written into memory.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let lines = self.memory.map(|memory| memory.lines.into_inner());
        lines.map_or_else(Vec::new, |lines| lines.expect("nobody panics while writing"))
    }

    /// The same, with someone who looks on.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Log {
        self.observer = Some(observer);
        self
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Nanoseconds since it was created.
    #[inline]
    pub fn now(&self) -> Time {
        if let Some(memory) = &self.memory {
            return 1000 * memory.looks.fetch_add(1, Ordering::Relaxed).cast_signed();
        }
        Time::try_from(self.start.elapsed().as_nanos()).unwrap_or(NEVER - 1)
    }

    /// Begins a session on an endpoint of this name.
    pub fn session(&self, endpoint: &str, snapshot: SnapshotPoint) -> io::Result<SessionLog<'_>> {
        let label = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        let mut line = Vec::with_capacity(512);
        line.extend_from_slice(b"session ");
        number(&mut line, label);
        text(&mut line, endpoint);
        line.push(b'\n');
        self.append(&line)?;
        line.clear();
        let observer = self.observer.as_ref();
        let observer = observer.map(|observer| observer.session(label, endpoint, self.now()));
        Ok(SessionLog {
            log: self,
            observer,
            label,
            number: 0,
            snapshot,
            buffer: line,
            is_beginning: false,
            is_open: false,
        })
    }

    /// Something that happened beside the transactions, such as a fault.
    pub fn event(&self, what: &str) -> io::Result<()> {
        let now = self.now();
        if let Some(observer) = &self.observer {
            observer.event(now, what);
        }
        let mut line = b"event ".to_vec();
        number(&mut line, now.unsigned_abs());
        text(&mut line, what);
        line.push(b'\n');
        self.append(&line)
    }

    /// Marks the log as complete and makes sure that it is on the disk.
    pub fn finish(&self) -> io::Result<()> {
        self.append(b"end\n")?;
        let Some(file) = &self.file else { return Ok(()) };
        file.lock().expect("nobody panics while writing").file.sync_data()
    }

    fn append(&self, lines: &[u8]) -> io::Result<()> {
        if let Some(memory) = &self.memory {
            let mut written = memory.lines.lock().expect("nobody panics while writing");
            written.extend_from_slice(lines);
        }
        let Some(file) = &self.file else { return Ok(()) };
        let mut guard = file.lock().expect("nobody panics while writing");
        let log = &mut *guard;
        if let Some((kind, message)) = &log.failed {
            return Err(io::Error::new(*kind, message.clone()));
        }
        match log.file.write_all(lines) {
            Ok(()) => {
                log.length += lines.len() as u64;
                Ok(())
            }
            Err(error) => {
                // On a full disk, a part of the lines may have been written.
                let _ = log.file.set_len(log.length);
                log.failed = Some((error.kind(), error.to_string()));
                Err(error)
            }
        }
    }
}

/// What one session records. Dropping it loses nothing but the last outcome;
/// [`SessionLog::end`] writes that too.
pub struct SessionLog<'a> {
    log: &'a Log,
    observer: Option<Box<dyn SessionObserver>>,
    label: u64,
    /// Of its transaction, from 1.
    number: u64,
    snapshot: SnapshotPoint,
    /// The last outcome, and the transaction so far.
    buffer: Vec<u8>,
    /// Whether the begin's completion is not known yet.
    is_beginning: bool,
    /// Whether the transaction's line is.
    is_open: bool,
}

impl SessionLog<'_> {
    /// The log's time.
    #[inline]
    pub fn now(&self) -> Time {
        self.log.now()
    }

    /// A transaction is about to begin.
    pub fn ready(&mut self) {
        if let Some(observer) = &mut self.observer {
            observer.ready();
        }
    }

    /// A transaction began.
    pub fn begin(&mut self, interval: Interval) {
        if let Some(observer) = &mut self.observer {
            observer.begun(interval);
        }
        self.number += 1;
        self.is_open = true;
        self.head(b"txn ", interval.invoked);
        // If the snapshot comes with the first request, that tells.
        self.is_beginning = self.snapshot == SnapshotPoint::FirstRequest;
        if !self.is_beginning {
            self.time(interval.completed);
        }
    }

    fn head(&mut self, word: &[u8], invoked: Time) {
        self.buffer.extend_from_slice(word);
        number(&mut self.buffer, self.label);
        self.buffer.push(b' ');
        number(&mut self.buffer, self.number);
        self.buffer.push(b' ');
        self.time(invoked);
        self.buffer.push(b'-');
    }

    #[inline]
    fn time(&mut self, time: Time) {
        if time != NEVER {
            number(&mut self.buffer, time.unsigned_abs());
        }
    }

    /// A request was answered.
    pub fn answered(&mut self, request: &Request, answer: &Answer, interval: Interval) {
        if let Some(observer) = &mut self.observer {
            observer.answered(request, answer, interval);
        }
        self.begun(interval.completed);
        operation(&mut self.buffer, request, Some(answer), Some(interval));
    }

    /// The begin's completion, if it is still open, is this.
    fn begun(&mut self, completed: Time) {
        if std::mem::take(&mut self.is_beginning) {
            self.time(completed);
        }
    }

    /// A request without an answer: what it may have written counts, if the outcome is
    /// unknown or others read it.
    pub fn unanswered(&mut self, request: &Request, interval: Interval) {
        if let Some(observer) = &mut self.observer {
            observer.unanswered(request, interval);
        }
        self.begun(interval.completed);
        operation(&mut self.buffer, request, None, Some(interval));
    }

    /// What the last request was executed on.
    pub fn executed_on(&mut self, snapshot: &Snapshot) {
        seen(&mut self.buffer, snapshot);
    }

    /// What the database calls the transaction, and what it was executed on.
    pub fn identity(&mut self, identity: &Identity) {
        if let Some(of_txn) = identity.number {
            self.buffer.extend_from_slice(b" #");
            number(&mut self.buffer, of_txn);
        }
        if let Some(snapshot) = &identity.snapshot {
            self.buffer.push(b' ');
            seen(&mut self.buffer, snapshot);
        }
    }

    /// Ends the line of the transaction.
    fn close(&mut self) {
        if std::mem::take(&mut self.is_open) {
            // Without a request nothing says when the snapshot was taken.
            let now = self.now();
            self.begun(now);
            self.buffer.push(b'\n');
        }
    }

    /// Hands over the transaction. Its commit is sent only after that.
    pub fn before_commit(&mut self) -> io::Result<()> {
        self.close();
        self.hand_over()
    }

    /// A whole transaction is about to be sent: hands over what it may write.
    pub fn before_whole(&mut self, requests: &[Request], sent: Time) -> io::Result<()> {
        self.number += 1;
        self.head(b"intent ", sent);
        for request in requests {
            operation(&mut self.buffer, request, None, None);
        }
        self.buffer.push(b'\n');
        self.hand_over()
    }

    /// A whole transaction was answered.
    pub fn whole(&mut self, requests: &[Request], answers: &[Answer], interval: Interval) {
        if let Some(observer) = &mut self.observer {
            observer.begun(interval);
            for (request, answer) in requests.iter().zip(answers) {
                observer.answered(request, answer, interval);
            }
        }
        self.head(b"txn ", interval.invoked);
        self.time(interval.completed);
        for (request, answer) in requests.iter().zip(answers) {
            operation(&mut self.buffer, request, Some(answer), None);
        }
        self.buffer.push(b'\n');
    }

    /// A whole transaction was not: what it may have written is in the log already.
    pub fn unanswered_whole(&mut self, requests: &[Request], interval: Interval) {
        let Some(observer) = &mut self.observer else { return };
        observer.begun(interval);
        for request in requests {
            observer.unanswered(request, interval);
        }
    }

    /// The transaction was committed.
    pub fn committed(&mut self, interval: Interval) {
        if let Some(observer) = &mut self.observer {
            observer.committed(interval);
        }
        self.outcome(b"commit ", interval, "");
    }

    /// The transaction ended otherwise, at its commit or before.
    pub fn failed(&mut self, failure: &Failure, interval: Interval) {
        if let Some(observer) = &mut self.observer {
            observer.failed(failure, interval);
        }
        self.close();
        match failure {
            Failure::Unknown(reason) => {
                let interval = Interval { completed: NEVER, ..interval };
                self.outcome(b"unknown ", interval, reason);
            }
            Failure::Aborted(reason) | Failure::Lost(reason) | Failure::Refused(reason) => {
                self.outcome(b"abort ", interval, reason);
            }
        }
    }

    fn outcome(&mut self, word: &[u8], interval: Interval, reason: &str) {
        self.head(word, interval.invoked);
        self.time(interval.completed);
        text(&mut self.buffer, reason);
        self.buffer.push(b'\n');
    }

    /// Ends the session.
    pub fn end(mut self) -> io::Result<()> {
        self.hand_over()
    }

    fn hand_over(&mut self) -> io::Result<()> {
        let result = self.log.append(&self.buffer);
        self.buffer.clear();
        result
    }
}

/// Writes what a request and its answer tell; without an answer, what the request
/// may have written.
fn operation(
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
        (Request::Insert { key, value }, _) => one(b'i', *key, &[*value]),
        (Request::Delete { key }, Some(Answer::Applied(false))) => one(b'r', *key, &[]),
        (Request::Delete { key }, _) => one(b'd', *key, &[]),
        (Request::CompareAndSet { key, expected, .. }, Some(Answer::Applied(false))) => {
            one(b'o', *key, expected.as_slice());
        }
        (Request::CompareAndSet { key, expected, value }, answer) => {
            if answer.is_some() {
                one(b'r', *key, expected.as_slice());
            }
            one(b'w', *key, &[*value]);
        }
        (Request::Range { low, high }, Some(Answer::Rows(rows))) => {
            range(line, b'q', *low..=*high, rows);
            stamp(line, interval);
        }
        (Request::UpdateRange { low, high, .. }, Some(Answer::Rows(rows))) => {
            range(line, b'u', *low..=*high, rows);
            stamp(line, interval);
        }
        // Nobody knows which rows it was going to find.
        (Request::UpdateRange { low, high, first }, None) => {
            for key in *low..=*high {
                one(b'w', key, &[first + (key - low)]);
            }
        }
        (Request::Select { filter }, Some(Answer::Rows(rows))) => {
            by_condition(line, b"p", *filter, rows);
            stamp(line, interval);
        }
        (Request::Aggregate { function, filter }, Some(Answer::Value(value))) => {
            aggregate(line, *function, *filter, *value);
            stamp(line, interval);
        }
        (Request::UpdateWhere { filter, .. }, Some(Answer::Rows(rows))) => {
            by_condition(line, b"c", *filter, rows);
            stamp(line, interval);
        }
        (Request::DeleteWhere { filter }, Some(Answer::Rows(rows))) => {
            by_condition(line, b"x", *filter, rows);
            stamp(line, interval);
        }
        // A read without an answer tells nothing. What an update by condition did without
        // one was rolled back, because no commit was sent.
        (_, None) => {}
        (request, Some(answer)) => {
            debug_assert!(line.len() > start, "{answer:?} is no answer to {request:?}");
        }
    }
}

fn aggregate(line: &mut Vec<u8>, function: Function, filter: Filter, value: Option<u64>) {
    line.extend_from_slice(b" g");
    line.extend_from_slice(function.name().as_bytes());
    line.push(b':');
    condition(line, filter);
    if let Some(value) = value {
        number(line, value);
    }
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
fn range(line: &mut Vec<u8>, letter: u8, keys: std::ops::RangeInclusive<u64>, rows: &[(u64, u64)]) {
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
}

/// A letter, a condition and the rows that met it.
fn by_condition(line: &mut Vec<u8>, letter: &[u8], filter: Filter, rows: &[(u64, u64)]) {
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
fn seen(line: &mut Vec<u8>, snapshot: &Snapshot) {
    line.push(b'~');
    number(line, snapshot.below);
    for (place, except) in snapshot.except.iter().enumerate() {
        line.push(if place == 0 { b'!' } else { b',' });
        number(line, *except);
    }
}

/// A space and the text as the rest of a line.
fn text(line: &mut Vec<u8>, text: &str) {
    if text.is_empty() {
        return;
    }
    line.push(b' ');
    let clean = text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte });
    line.extend(clean);
}

#[inline]
fn number(line: &mut Vec<u8>, mut number: u64) {
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

#[cfg(test)]
mod tests;
