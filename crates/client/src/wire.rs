//! The connection: what is sent, and what the listener answers.

use crate::frame::{self, NamedRow};
use crate::row::Row;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The sending side. Names of tables and columns are sent once.
pub(crate) struct Wire {
    out: Box<dyn Write + Send>,
    buffer: Vec<u8>,
    names: HashMap<String, u64>,
    clients: u64,
    /// Frames, also those that are in the buffer still.
    sent: u64,
}

impl Wire {
    pub(crate) fn new(out: Box<dyn Write + Send>, token: Option<&str>) -> io::Result<Wire> {
        let mut wire =
            Wire { out, buffer: frame::HEAD.to_vec(), names: HashMap::new(), clients: 0, sent: 0 };
        wire.frame(|out| {
            out.push(frame::HELLO);
            // The head's own client does nothing: sessions have names of their own.
            frame::text(out, &format!("process {}", std::process::id()));
            frame::text(out, token.unwrap_or(""));
            out.push(0);
        });
        wire.bye(0);
        wire.flush()?;
        Ok(wire)
    }

    fn frame(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        frame::framed(&mut self.buffer, write);
        self.sent += 1;
    }

    /// The number of a new client of this name.
    pub(crate) fn open(&mut self, name: &str) -> io::Result<u64> {
        self.clients += 1;
        self.frame(|out| {
            out.push(frame::CLIENT);
            frame::text(out, name);
        });
        self.flush()?;
        Ok(self.clients)
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
        while let Some((length, after)) = rest.split_first_chunk() {
            self.sent += 1;
            rest = after.get(u32::from_le_bytes(*length) as usize..).unwrap_or_default();
        }
        self.buffer.extend_from_slice(frames);
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            self.out.write_all(&self.buffer)?;
            self.out.flush()?;
            self.buffer.clear();
        }
        Ok(())
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }
}

/// What the listener has said so far.
#[derive(Default)]
pub(crate) struct Answers {
    state: Mutex<State>,
    changed: Condvar,
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
    /// Reads them on a thread of its own, until there are no more.
    pub(crate) fn read_from(self: &Arc<Self>, mut reader: Box<dyn Read + Send>) {
        let answers = Arc::clone(self);
        std::thread::spawn(move || {
            while let Ok(Some((kind, text))) = answer(&mut reader) {
                answers.note(kind, &text);
            }
            if let Ok(mut state) = answers.state.lock() {
                state.is_over = true;
            }
            answers.changed.notify_all();
        });
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

    /// Waits until so many frames are acknowledged. A file never answers, and has taken
    /// what was written.
    pub(crate) fn wait_for(&self, sent: u64) -> io::Result<()> {
        let state = self.state.lock().map_err(|_| crate::broken())?;
        let waiting =
            |state: &mut State| state.taken < sent && state.refusal.is_none() && !state.is_over;
        let (state, timeout) = self
            .changed
            .wait_timeout_while(state, PATIENCE, waiting)
            .map_err(|_| crate::broken())?;
        refused(&state)?;
        if timeout.timed_out() || (state.is_over && 0 < state.taken && state.taken < sent) {
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
