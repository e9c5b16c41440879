//! Traces of others, as lines of JSON or as binary frames: `docs/formats/trace.md`.
//!
//! [`Decoder`] takes bytes as they come and tells a [`Sink`] what they say. It holds at
//! most one message that is not whole yet, and no more of that than has arrived, whatever
//! length the message claims to have.

mod binary;
mod json;
pub mod write;

use crate::error::Place;
use crate::history::{Interval, NEVER, Time};

/// How long one message may be.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Rows of one message.
const ROWS_MAX: usize = 1 << 16;
/// How a stream of frames begins.
const BINARY_HEAD: &[u8; 8] = b"ISOLDET1";
/// The version of both.
const VERSION: u32 = 1;

/// Whether a file begins like a trace.
pub fn is_trace(head: &[u8]) -> bool {
    let line = head.trim_ascii_start();
    head.starts_with(BINARY_HEAD) || line.starts_with(b"{\"isolde\"")
}

/// A key, a value or the name of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar<'a> {
    /// Nothing is there.
    Absent,
    /// A whole number.
    Integer(i64),
    /// A text, or anything else as it was written.
    Text(&'a str),
}

/// What an operation saw or left in a row, or in one column of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row<'a> {
    /// The table's name.
    pub table: &'a str,
    /// Which row of the table.
    pub key: Scalar<'a>,
    /// Which column of the row, if it is not all of it.
    pub column: Option<&'a str>,
    /// What is there.
    pub value: Scalar<'a>,
}

/// What can happen in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It began.
    Begin,
    /// A read, and what it saw.
    Read,
    /// A read that locks what it reads against writers.
    LockingRead,
    /// A write, and what is there now.
    Write,
    /// The commit was confirmed.
    Commit,
    /// It has no effect.
    Abort,
    /// The commit was sent and not answered.
    Lost,
}

impl Kind {
    /// As messages call them; the binary number of each is its place here and
    /// `binary::EVENTS`.
    pub const ALL: [(&'static str, Kind); 7] = [
        ("begin", Kind::Begin),
        ("read", Kind::Read),
        ("lock", Kind::LockingRead),
        ("write", Kind::Write),
        ("commit", Kind::Commit),
        ("abort", Kind::Abort),
        ("lost", Kind::Lost),
    ];

    fn has_rows(self) -> bool {
        matches!(self, Kind::Read | Kind::LockingRead | Kind::Write)
    }
}

/// The first message of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The client of messages that name none.
    pub client: Option<&'a str>,
    /// What the listener may ask for.
    pub token: Option<&'a str>,
    /// The identity by which the stream may go on in another connection.
    pub resume: Option<&'a str>,
    /// Whether it merges streams, as a watch saves them: it is whole only if it says goodbye, and
    /// so is what it tells of each client.
    pub is_merged: bool,
}

/// Who is told what a stream says. What it refuses ends the stream.
pub trait Sink {
    /// What follows comes from the message of this number, counted from 1.
    fn message(&mut self, _number: u64) {}

    /// The stream begins.
    fn hello(&mut self, hello: Hello<'_>) -> Result<(), String>;

    /// The number of the client of this name, which exists from now on.
    fn client(&mut self, name: &str) -> Result<u32, String>;

    /// Something happened.
    fn event(
        &mut self,
        client: u32,
        txn: u64,
        kind: Kind,
        interval: Interval,
        rows: &[Row<'_>],
    ) -> Result<(), String>;

    /// Values are versions: numbers of the transactions that wrote them.
    fn values_are_versions(&mut self) {}

    /// Transactions with lower numbers were over when the stream began.
    fn running(&mut self, _number: u64) {}

    /// The text of a statement, and where it stands in a program.
    fn statement(&mut self, _number: u64, _text: &str, _tags: &str) {}

    /// The next event is by this statement.
    fn by(&mut self, _statement: u64) {}

    /// A request may have written rows that are not told.
    fn unseen(&mut self, _client: u32, _txn: u64, _interval: Interval) -> Result<(), String> {
        Ok(())
    }

    /// Nothing of this client, or of all, will be sent for a time before this.
    fn heartbeat(&mut self, client: Option<u32>, time: Time) -> Result<(), String>;

    /// This client, or all, are done.
    fn bye(&mut self, client: Option<u32>) -> Result<(), String>;

    /// What this client did from here on is missing.
    fn broken(&mut self, client: u32) -> Result<(), String>;
}

/// How a stream is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Lines of JSON.
    Json,
    /// Binary frames.
    Binary,
}

/// The times of a stream in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unit(i64);

impl Unit {
    const ALL: [(&'static str, Unit); 4] =
        [("ns", Unit(1)), ("us", Unit(1000)), ("ms", Unit(1_000_000)), ("s", Unit(1_000_000_000))];

    fn time(self, number: i64) -> Result<Time, String> {
        let time = number.checked_mul(self.0).filter(|&time| time != NEVER && time != Time::MIN);
        time.ok_or_else(|| format!("expected a time in 64 bits of nanoseconds, found {number}"))
    }

    /// The interval of an event. The times of a clock that was set back are kept as they
    /// are: whoever judges them counts them.
    fn interval(self, invoked: i64, completed: Option<i64>) -> Result<Interval, String> {
        let completed = completed.map_or(Ok(NEVER), |completed| self.time(completed))?;
        Ok(Interval { invoked: self.time(invoked)?, completed })
    }
}

/// Reads a stream. After an error it reads no more.
#[derive(Default)]
pub struct Decoder {
    form: Option<Form>,
    /// A message that is not whole yet.
    pending: Vec<u8>,
    messages: u64,
    json: json::Reader,
    binary: binary::Reader,
}

impl Decoder {
    /// One that has read nothing.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// How the stream is written, once that is known.
    pub fn form(&self) -> Option<Form> {
        self.form
    }

    /// Messages that the sink has taken.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Bytes that are kept for a message that is not whole.
    pub fn unfinished(&self) -> usize {
        self.pending.capacity()
    }

    /// Whether a message has begun and not ended.
    pub fn is_inside(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Where the message after those that were taken stands.
    pub fn place(&self) -> Place {
        let number = self.messages + 1;
        if self.form == Some(Form::Binary) { Place::Record(number) } else { Place::Line(number) }
    }

    /// Takes the bytes that have arrived. The error says which message is wrong, what was
    /// expected and what was found.
    pub fn take(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), String> {
        self.read(bytes, sink).map_err(|message| {
            let unit = if self.form == Some(Form::Binary) { "frame" } else { "line" };
            format!("{unit} {}: {message}", self.messages + 1)
        })
    }

    /// The same, with an error that does not say where: [`Decoder::place`] does.
    pub fn read(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), String> {
        if self.goes_on_with(bytes) {
            self.pending.extend_from_slice(bytes);
        } else if self.pending.is_empty() {
            let taken = self.take_whole(bytes, sink)?;
            self.pending.extend_from_slice(&bytes[taken..]);
        } else {
            let mut pending = std::mem::take(&mut self.pending);
            pending.extend_from_slice(bytes);
            let taken = self.take_whole(&pending, sink)?;
            pending.drain(..taken);
            if pending.len() < pending.capacity() / 4 {
                pending.shrink_to(pending.len());
            }
            self.pending = pending;
        }
        Ok(())
    }

    /// Whether these bytes are the middle of a line. What came before them is not searched for
    /// its end again: a line that trickles in would take time quadratic in its length.
    fn goes_on_with(&self, bytes: &[u8]) -> bool {
        self.form == Some(Form::Json)
            && !self.pending.is_empty()
            && self.pending.len() + bytes.len() < MESSAGE_BYTES_MAX
            && memchr::memchr(b'\n', bytes).is_none()
    }

    /// Takes the messages that are whole, and tells how many bytes they are.
    fn take_whole(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, String> {
        let mut at = 0;
        let form = match self.form {
            Some(form) => form,
            None => match bytes {
                _ if bytes.starts_with(BINARY_HEAD) => {
                    at = BINARY_HEAD.len();
                    *self.form.insert(Form::Binary)
                }
                _ if BINARY_HEAD.starts_with(bytes) => return Ok(0),
                _ => *self.form.insert(Form::Json),
            },
        };
        loop {
            let rest = &bytes[at..];
            let whole = match form {
                Form::Json => line(rest),
                Form::Binary => binary::frame(rest),
            };
            let Some((message, length)) = whole? else { return Ok(at) };
            sink.message(self.messages + 1);
            let read = match form {
                Form::Json => self.json.message(message, sink),
                Form::Binary => self.binary.message(message, sink),
            };
            read?;
            self.messages += 1;
            at += length;
        }
    }
}

/// The first line without its end, and its length with it.
fn line(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, String> {
    let searched = &bytes[..bytes.len().min(MESSAGE_BYTES_MAX)];
    match memchr::memchr(b'\n', searched) {
        Some(end) => Ok(Some((&bytes[..end], end + 1))),
        None if bytes.len() >= MESSAGE_BYTES_MAX => {
            Err(format!("expected at most {MESSAGE_BYTES_MAX} bytes, found a longer line"))
        }
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests;
