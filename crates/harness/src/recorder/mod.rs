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
use crate::request::{Answer, Request};
use isolde_history::{Interval, NEVER, Snapshot, Time};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

mod evidence;
mod words;

use words::{number, operation, seen, text};

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

#[cfg(test)]
mod tests;
