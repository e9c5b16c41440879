//! The connection: what is sent, and what the listener answers.

use crate::frame::{self, NamedRow};
use crate::row::Row;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// The two directions of a connection, and how to say that nothing more comes.
pub(crate) struct Ends {
    pub(crate) out: Box<dyn Write + Send>,
    pub(crate) reader: Box<dyn Read + Send>,
    pub(crate) hang_up: Box<dyn Fn() + Send + Sync>,
}

/// Connects once more.
pub(crate) type Connect = Box<dyn Fn() -> io::Result<Ends> + Send>;

/// How long a connection that was cut is made again.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// Between two attempts.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);

/// The sending side. Names of tables and columns are sent once a connection. What was not
/// acknowledged when a connection is cut is sent again by the next one, which has the same
/// identity, so that the listener knows what it has taken already.
pub(crate) struct Wire {
    out: Box<dyn Write + Send>,
    hang_up: Box<dyn Fn() + Send + Sync>,
    answers: Arc<Answers>,
    connect: Option<Connect>,
    token: String,
    identity: String,
    buffer: Vec<u8>,
    names: HashMap<String, u64>,
    /// Of all clients, in order.
    clients: Vec<String>,
    /// Frames, also those that are in the buffer still.
    sent: u64,
    /// Frames that would be sent again, with their numbers.
    unacknowledged: VecDeque<(u64, Vec<u8>)>,
}

impl Wire {
    pub(crate) fn new(ends: Ends, connect: Option<Connect>, token: &str) -> io::Result<Wire> {
        let process = format!("process {}", std::process::id());
        let Ends { out, reader, hang_up } = ends;
        let answers = Answers::of(reader, connect.is_some());
        let mut wire = Wire {
            out,
            hang_up,
            answers,
            connect,
            token: token.to_owned(),
            identity: String::new(),
            buffer: Vec::new(),
            names: HashMap::new(),
            clients: vec![process],
            sent: 0,
            unacknowledged: VecDeque::new(),
        };
        if wire.connect.is_some() {
            wire.identity = identity();
        }
        wire.head();
        wire.flush()?;
        Ok(wire)
    }

    fn head(&mut self) {
        self.buffer.extend_from_slice(frame::HEAD);
        let (name, token, identity) =
            (self.clients[0].clone(), self.token.clone(), self.identity.clone());
        self.frame(|out| {
            out.push(frame::HELLO);
            // The head's own client does nothing: sessions have names of their own.
            frame::text(out, &name);
            frame::text(out, &token);
            out.push(0);
            if !identity.is_empty() {
                frame::text(out, &identity);
            }
        });
        self.bye(0);
    }

    fn frame(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.buffer.len();
        frame::framed(&mut self.buffer, write);
        self.note(start);
    }

    /// Counts the frame that begins here, and keeps it if it would have to be sent again.
    fn note(&mut self, start: usize) {
        self.sent += 1;
        let kind = self.buffer.get(start + 4).copied().unwrap_or(frame::HELLO);
        let is_kept = (frame::BEGIN..=frame::LOST).contains(&kind) || kind == frame::BYE;
        if self.connect.is_none() || !is_kept {
            return;
        }
        let taken = self.answers.taken();
        while self.unacknowledged.front().is_some_and(|(number, _)| *number <= taken) {
            self.unacknowledged.pop_front();
        }
        self.unacknowledged.push_back((self.sent, self.buffer[start..].to_vec()));
    }

    /// Connects again and sends what was not acknowledged.
    fn resume(&mut self, cause: io::Error) -> io::Result<()> {
        let Some(connect) = &self.connect else { return Err(cause) };
        self.answers.refusal()?;
        let started = Instant::now();
        let ends = loop {
            match connect() {
                Ok(ends) => break ends,
                Err(_) if started.elapsed() < CONNECT_TIME_MAX => {
                    std::thread::sleep(CONNECT_PAUSE);
                }
                Err(_) => return Err(cause),
            }
        };
        (self.out, self.hang_up) = (ends.out, ends.hang_up);
        self.answers = Answers::of(ends.reader, true);
        let unacknowledged = std::mem::take(&mut self.unacknowledged);
        (self.sent, self.buffer) = (0, Vec::new());
        self.head();
        self.unacknowledged.clear();
        let mut names: Vec<(u64, String)> =
            self.names.drain().map(|(name, number)| (number, name)).collect();
        names.sort_unstable();
        for (_, name) in names {
            self.name(&name);
        }
        for name in self.clients.clone().iter().skip(1) {
            self.announce(name);
        }
        for (_, frame) in unacknowledged {
            let start = self.buffer.len();
            self.buffer.extend_from_slice(&frame);
            self.note(start);
        }
        self.out.write_all(&self.buffer)?;
        self.out.flush()?;
        self.buffer.clear();
        Ok(())
    }

    fn announce(&mut self, name: &str) {
        self.frame(|out| {
            out.push(frame::CLIENT);
            frame::text(out, name);
        });
    }

    /// The number of a new client of this name.
    pub(crate) fn open(&mut self, name: &str) -> io::Result<u64> {
        self.clients.push(name.to_owned());
        self.announce(name);
        self.flush()?;
        Ok(self.clients.len() as u64 - 1)
    }

    /// Rows with numbers for the names in them.
    pub(crate) fn named<'a>(&mut self, rows: &[Row<'a>]) -> io::Result<Vec<NamedRow<'a>>> {
        let mut named = Vec::with_capacity(rows.len());
        let before = self.names.len();
        for row in rows {
            let table = self.name(row.table);
            let column = row.column.map_or(0, |column| self.name(column) + 1);
            named.push(NamedRow { table, key: row.key, column, value: row.value });
        }
        if self.names.len() > before {
            // Events that use them are sent by others, maybe earlier than what is here.
            self.flush()?;
        }
        Ok(named)
    }

    fn name(&mut self, name: &str) -> u64 {
        if let Some(&number) = self.names.get(name) {
            return number;
        }
        let number = self.names.len() as u64;
        self.names.insert(name.to_owned(), number);
        self.frame(|out| {
            out.push(frame::NAME);
            frame::text(out, name);
        });
        number
    }

    pub(crate) fn heartbeat(&mut self, client: u64, time: i64) {
        self.frame(|out| {
            out.push(frame::HEARTBEAT);
            frame::varint(out, client);
            out.extend_from_slice(&time.to_le_bytes());
        });
    }

    pub(crate) fn bye(&mut self, client: u64) {
        self.frame(|out| {
            out.push(frame::BYE);
            frame::varint(out, client);
        });
    }

    /// Adds whole frames.
    pub(crate) fn send(&mut self, frames: &[u8]) {
        let mut rest = frames;
        while let Some((length, _)) = rest.split_first_chunk() {
            let end = 4 + u32::from_le_bytes(*length) as usize;
            let (frame, after) = rest.split_at(end.min(rest.len()));
            let start = self.buffer.len();
            self.buffer.extend_from_slice(frame);
            self.note(start);
            rest = after;
        }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = if self.answers.is_over_early() {
            Err(io::Error::other("the listener closed the connection"))
        } else {
            self.out.write_all(&self.buffer).and_then(|()| self.out.flush())
        };
        match written {
            Ok(()) => {
                self.buffer.clear();
                Ok(())
            }
            Err(cause) => self.resume(cause),
        }
    }

    /// Says that nothing more comes, and what has to be acknowledged then.
    pub(crate) fn finish(&mut self) -> (Arc<Answers>, u64) {
        (self.hang_up)();
        (Arc::clone(&self.answers), self.sent)
    }

    /// Connects again, because not everything was acknowledged.
    pub(crate) fn again(&mut self, cause: io::Error) -> io::Result<()> {
        self.resume(cause)
    }

    pub(crate) fn hang_up(&self) {
        (self.hang_up)();
    }

    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }
}

/// A name that no other process, and no other trace of this one, has.
fn identity() -> String {
    use std::hash::{BuildHasher, RandomState};
    let random = [RandomState::new().hash_one(0), RandomState::new().hash_one(1)];
    format!("{}-{:016x}{:016x}", std::process::id(), random[0], random[1])
}

/// What the listener has said so far.
pub(crate) struct Answers {
    state: Mutex<State>,
    changed: Condvar,
    /// Whether there should be some: a file never answers, and has taken what was written.
    are_expected: bool,
}

#[derive(Default)]
struct State {
    taken: u64,
    refusal: Option<String>,
    /// Whether there will be no more answers.
    is_over: bool,
}

/// How long a listener may be silent before it is given up.
const PATIENCE: Duration = Duration::from_secs(30);

impl Answers {
    /// Those of a connection, read on a thread of its own until there are no more.
    fn of(mut reader: Box<dyn Read + Send>, are_expected: bool) -> Arc<Answers> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let all = Arc::new(Answers { state, changed, are_expected });
        let answers = Arc::clone(&all);
        std::thread::spawn(move || {
            while let Ok(Some((kind, text))) = answer(&mut reader) {
                answers.note(kind, &text);
            }
            if let Ok(mut state) = answers.state.lock() {
                state.is_over = true;
            }
            answers.changed.notify_all();
        });
        all
    }

    /// Frames that were acknowledged.
    fn taken(&self) -> u64 {
        self.state.lock().map_or(0, |state| state.taken)
    }

    /// Whether a listener answers no more.
    fn is_over_early(&self) -> bool {
        self.are_expected && self.state.lock().is_ok_and(|state| state.is_over)
    }

    fn note(&self, kind: u8, text: &[u8]) {
        let Ok(mut state) = self.state.lock() else { return };
        match kind {
            frame::TAKEN => {
                if let Some(count) = text.first_chunk() {
                    state.taken = u64::from_le_bytes(*count);
                }
            }
            frame::REFUSED => state.refusal = Some(String::from_utf8_lossy(text).into_owned()),
            _ => {}
        }
        self.changed.notify_all();
    }

    /// Fails if the listener has refused something.
    pub(crate) fn refusal(&self) -> io::Result<()> {
        match self.state.lock() {
            Ok(state) => refused(&state),
            Err(_) => Ok(()),
        }
    }

    /// Waits until so many frames are acknowledged.
    pub(crate) fn wait_for(&self, sent: u64) -> io::Result<()> {
        let state = self.state.lock().map_err(|_| crate::broken())?;
        let waiting =
            |state: &mut State| state.taken < sent && state.refusal.is_none() && !state.is_over;
        let (state, timeout) = self
            .changed
            .wait_timeout_while(state, PATIENCE, waiting)
            .map_err(|_| crate::broken())?;
        refused(&state)?;
        if timeout.timed_out() || (self.are_expected && state.taken < sent) {
            let message = format!("the listener acknowledged {} of {sent} frames", state.taken);
            return Err(io::Error::other(message));
        }
        Ok(())
    }
}

fn refused(state: &State) -> io::Result<()> {
    match &state.refusal {
        Some(message) => Err(io::Error::other(format!("the listener refused: {message}"))),
        None => Ok(()),
    }
}

/// One answer: its kind and the rest of its frame.
fn answer(reader: &mut dyn Read) -> io::Result<Option<(u8, Vec<u8>)>> {
    const ANSWER_BYTES_MAX: u64 = 1 << 16;
    let mut length = [0; 4];
    reader.read_exact(&mut length)?;
    let length = u64::from(u32::from_le_bytes(length)).min(ANSWER_BYTES_MAX);
    let mut frame = Vec::new();
    reader.take(length).read_to_end(&mut frame)?;
    Ok(frame.split_first().map(|(&kind, rest)| (kind, rest.to_vec())))
}
