//! What is done with a connection, from its head to its end, a step at a time.
//!
//! A message that cannot be read ends its connection with an answer that says what was
//! expected: a stream with a gap would accuse the database of what the gap hides. A connection
//! is not read while too much waits, so that a flood waits with its sender. One that does not say
//! soon what it wants is ended.

use super::admission::{Admission, Close, Origin, Place};
use super::hub::Hub;
use super::now::now;
use super::resume::{Clients, Parking};
use super::save_file::{SaveFile, Unsaved};
use super::stream::{End, Stream};
use isolde_history::trace::{Decoder, Form, Sink};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long a connection may take to say what it wants, and in how many bytes: names and a token.
const HEAD_TIME_MAX: Duration = Duration::from_secs(5);
const HEAD_BYTES_MAX: usize = 8 << 10;
/// How long a connection is read that does not fall silent when the watch ends.
const READ_OUT_MAX: Duration = Duration::from_millis(500);
/// How often the end is looked for.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// How long an answer may take; who does not read answers gets none.
pub(super) const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
/// Between two acknowledgements, unless the sender waits for one.
const CHUNK_BYTES: usize = 1 << 16;

/// Any kind of connection.
pub(super) trait Connection: Read + Write + Send {}
impl<T: Read + Write + Send> Connection for T {}

/// Those who are let in, and what they share.
pub(super) struct Reception {
    hub: Arc<Hub>,
    token: Option<String>,
    saved: Option<Arc<SaveFile>>,
    parking: Arc<Parking>,
    door: Arc<Admission>,
    /// Whether somebody had more to say when the watch ended.
    is_any_cut_off: Arc<AtomicBool>,
}

impl Reception {
    pub(super) fn new(
        hub: &Arc<Hub>,
        token: Option<String>,
        saved: Option<Arc<SaveFile>>,
    ) -> Reception {
        let (parking, door, is_any_cut_off) = Default::default();
        Reception { hub: Arc::clone(hub), token, saved, parking, door, is_any_cut_off }
    }

    /// A connection comes, and gets a place.
    pub(super) fn knock(&self, origin: Origin, close: Close) -> Place {
        let (place, is_any_closed) = self.door.knock(origin, close);
        if is_any_closed {
            self.hub.refused.fetch_add(1, Relaxed);
        }
        place
    }

    /// Says why a connection is not read.
    pub(super) fn turn_away(&self, connection: &mut dyn Connection, message: &str) {
        self.hub.refused.fetch_add(1, Relaxed);
        self.hub.complain(message);
        let _ = refuse(connection, Some(Form::Json), message);
    }

    /// Clients that did not come back in time after a cut.
    pub(super) fn give_up_expired(&self) {
        self.give_up(self.parking.take_expired(), End::Broken);
    }

    /// Nobody may come or come back any more.
    pub(super) fn close(&self) {
        self.give_up(self.parking.take_all(), End::Broken);
        if let Some(saved) = self.saved.as_ref().filter(|_| !self.is_any_cut_off.load(Relaxed)) {
            saved.end();
        }
    }

    fn give_up(&self, streams: Vec<Clients>, end: End) {
        for clients in streams {
            let mut stream = self.stream().with_clients(clients);
            stream.end(end);
            // What cannot be saved ends the watch, and is told then.
            let _ = stream.publish();
        }
    }

    /// Why nothing can be saved any more, if so.
    pub(super) fn failure(&self) -> Option<String> {
        self.saved.as_ref().and_then(|saved| saved.failure())
    }

    fn stream(&self) -> Stream {
        Stream::new(&self.hub, self.token.clone(), self.saved.as_ref().map(Arc::clone))
    }

    /// Begins to read a connection.
    pub(super) fn call(&self, connection: Box<dyn Connection>, place: Place) -> Call {
        Call {
            connection,
            decoder: Decoder::new(),
            stream: self.stream().with_parking(&self.parking),
            unfinished: Unfinished(Arc::clone(&self.hub), 0),
            hub: Arc::clone(&self.hub),
            place,
            deadline: now() + HEAD_TIME_MAX,
            head_bytes: 0,
            buffer: vec![0; HEAD_BYTES_MAX],
            hears: true,
            is_silent: false,
            is_any_cut_off: Arc::clone(&self.is_any_cut_off),
        }
    }
}

/// A connection that is being read.
pub(super) struct Call {
    connection: Box<dyn Connection>,
    decoder: Decoder,
    stream: Stream,
    unfinished: Unfinished,
    hub: Arc<Hub>,
    place: Place,
    /// Until when its head has to be there.
    deadline: Instant,
    head_bytes: usize,
    buffer: Vec<u8>,
    /// Whether answers reach it.
    hears: bool,
    /// Whether nothing came when it was last read.
    is_silent: bool,
    is_any_cut_off: Arc<AtomicBool>,
}

impl Call {
    /// Reads it to its end: whether it was not turned away.
    pub(super) fn serve(mut self, closing: &AtomicBool) -> bool {
        let read = loop {
            if closing.load(Relaxed) {
                break self.read_out();
            }
            if self.stream.is_admitted() {
                self.hub.wait_for_room(closing);
            }
            if let Some(read) = self.turn(false).transpose() {
                break read;
            }
        };
        self.end(read, closing.load(Relaxed))
    }

    /// Reads what was sent before the watch ends: others may have seen what it wrote. What comes
    /// later is of no interest.
    pub(super) fn read_out(&mut self) -> Result<bool, Ended> {
        let until = now() + READ_OUT_MAX;
        self.is_silent = false;
        loop {
            let is_enough = self.is_silent || now() >= until;
            if let Some(read) = self.turn(is_enough).transpose() {
                return read;
            }
        }
    }

    /// Reads once, unless it is to end: whether the last message was whole, if that was the end.
    pub(super) fn turn(&mut self, is_closing: bool) -> Result<Option<bool>, Ended> {
        if self.stream.is_admitted() {
            self.buffer.resize(CHUNK_BYTES, 0);
        } else if self.head_bytes >= HEAD_BYTES_MAX {
            let message = format!("expected the head in the first {HEAD_BYTES_MAX} bytes");
            return Err(message.into());
        } else if now() >= self.deadline {
            let seconds = HEAD_TIME_MAX.as_secs();
            let message = format!("expected the head within {seconds} s, found none");
            return Err(message.into());
        }
        if is_closing {
            return Ok(Some(true));
        }
        self.is_silent = false;
        match self.connection.read(&mut self.buffer) {
            Ok(0) => self.is_over().map(Some),
            Ok(count) => self.take(count).map(|()| None),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                self.is_silent = true;
                Ok(None)
            }
            // The system has thrown away what was on its way.
            Err(_) => Ok(Some(false)),
        }
    }

    /// Takes so many bytes that were read.
    fn take(&mut self, count: usize) -> Result<(), Ended> {
        if !self.stream.is_admitted() {
            self.head_bytes += count;
        }
        let read = self.decoder.take(&self.buffer[..count], &mut self.stream as &mut dyn Sink);
        if self.stream.is_admitted() {
            self.place.enter().map_err(Ended::TurnedAway)?;
        }
        // What was read before the mistake counts.
        self.stream.publish().map_err(|Unsaved(message)| Ended::Unsaved(message))?;
        read?;
        self.unfinished.set(self.decoder.unfinished())?;
        if self.stream.is_admitted() {
            self.hears = self.hears && taken(self.connection.as_mut(), &self.decoder).is_ok();
        }
        Ok(())
    }

    /// Nothing more comes.
    fn is_over(&self) -> Result<bool, Ended> {
        if self.decoder.is_inside() && !self.stream.is_resumable() {
            let number = self.decoder.messages() + 1;
            let message =
                format!("message {number}: expected its end, found the end of the connection");
            return Err(message.into());
        }
        Ok(true)
    }

    /// After the last turn, of which this was said: whether it was not turned away.
    pub(super) fn end(self, read: Result<bool, Ended>, is_closing: bool) -> bool {
        let Call { mut connection, decoder, mut stream, hub, place, unfinished, .. } = self;
        drop((place, unfinished));
        let is_cut_off = is_closing && stream.is_admitted() && !stream.is_over();
        let connection = connection.as_mut();
        let is_admitted = stream.is_admitted() && !matches!(read, Err(Ended::TurnedAway(_)));
        if is_admitted && !matches!(read, Ok(true)) {
            stream.miss_unnamed();
        }
        let is_whole = match read {
            Ok(_) if stream.is_resumable() && !is_closing => {
                if let Err(Unsaved(message)) = stream.publish() {
                    let _ = refuse(connection, decoder.form(), &message);
                }
                stream.park()
            }
            Ok(is_whole) => is_whole,
            Err(Ended::Unsaved(message)) => {
                let _ = refuse(connection, decoder.form(), &message);
                false
            }
            Err(Ended::Unreadable(message) | Ended::TurnedAway(message)) => {
                let counter = if is_admitted { &hub.malformed } else { &hub.refused };
                counter.fetch_add(1, Relaxed);
                hub.complain(&message);
                let _ = refuse(connection, decoder.form(), &message);
                false
            }
        };
        let end = match is_whole {
            false => End::Broken,
            true if is_cut_off => End::CutOff,
            true => End::Whole,
        };
        if end == End::CutOff {
            self.is_any_cut_off.store(true, Relaxed);
        }
        stream.end(end);
        // What is not in the file is not acknowledged.
        if stream.publish().is_ok() {
            let _ = taken(connection, &decoder);
        }
        is_admitted
    }
}

/// Why a connection was ended.
pub(super) enum Ended {
    /// By what it says, or does not say in time.
    Unreadable(String),
    /// By a file that cannot be written.
    Unsaved(String),
    /// By how many others there are.
    TurnedAway(String),
}

impl From<String> for Ended {
    fn from(message: String) -> Ended {
        Ended::Unreadable(message)
    }
}

/// Bytes of messages that are not whole, as they count among those of all connections.
struct Unfinished(Arc<Hub>, usize);

impl Unfinished {
    /// An error if there are too many, and these are a good part of them.
    fn set(&mut self, bytes: usize) -> Result<(), String> {
        let Unfinished(hub, before) = self;
        let all = hub.unfinished.fetch_add(bytes, Relaxed) + bytes;
        hub.unfinished.fetch_sub(*before, Relaxed);
        *before = bytes;
        let max = hub.unfinished_max();
        if all > max && bytes > CHUNK_BYTES * 2 {
            return Err(format!(
                "expected messages that are not whole of at most {max} bytes in all connections, \
                 found {all}"
            ));
        }
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.unfinished.fetch_sub(self.1, Relaxed);
    }
}

/// Acknowledges everything so far.
fn taken(connection: &mut dyn Connection, decoder: &Decoder) -> io::Result<()> {
    let count = decoder.messages();
    match decoder.form() {
        Some(Form::Binary) => {
            let mut frame = 9u32.to_le_bytes().to_vec();
            frame.push(128);
            frame.extend_from_slice(&count.to_le_bytes());
            connection.write_all(&frame)
        }
        _ => connection.write_all(format!("{{\"taken\":{count}}}\n").as_bytes()),
    }
}

fn refuse(connection: &mut dyn Connection, form: Option<Form>, message: &str) -> io::Result<()> {
    if form == Some(Form::Binary) {
        let mut frame = (message.len() as u32 + 1).to_le_bytes().to_vec();
        frame.push(129);
        frame.extend_from_slice(message.as_bytes());
        return connection.write_all(&frame);
    }
    let line = serde_json::json!({ "error": message });
    connection.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::hub::State;
    use super::*;

    /// A sender that says this, and whose connection is reset then, or ends.
    struct Sender {
        said: &'static [u8],
        is_reset: bool,
    }

    impl Read for Sender {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.said.read(buffer)? {
                0 if self.is_reset => Err(ErrorKind::ConnectionReset.into()),
                count => Ok(count),
            }
        }
    }

    impl Write for Sender {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Who of all streams is there or was lost after this one, and how.
    fn after(reception: &Reception, said: &'static str, is_reset: bool) -> Vec<(String, State)> {
        let place = reception.knock(Origin::Local, Box::new(|| {}));
        let sender = Sender { said: said.as_bytes(), is_reset };
        reception.call(Box::new(sender), place).serve(&AtomicBool::new(false));
        left(&reception.hub)
    }

    fn left(hub: &Hub) -> Vec<(String, State)> {
        let all = hub.inboxes();
        let told = all.iter().map(|inbox| (hub.name(inbox.id), inbox.state()));
        told.filter(|(_, state)| *state != State::Closed).collect()
    }

    const HEAD: &str =
        "{\"isolde\":\"trace 1\",\"client\":\"a\"}\n{\"client\":\"a\",\"bye\":true}\n";
    const AGAIN: &str = "{\"isolde\":\"trace 1\",\"client\":\"a\",\"resume\":\"x\"}\n\
                         {\"client\":\"a\",\"bye\":true}\n";
    const NAMED: &str = "{\"isolde\":\"trace 1\",\"client\":\"a\",\"resume\":\"x\"}\n\
                         {\"client\":\"a\",\"bye\":true}\n{\"client\":\"b\"}\n";

    /// World 144823: the head's own client had said goodbye, and a session had committed, of which
    /// the name was on its way. Nobody was missing then, and what it wrote was nobody's.
    #[test]
    fn who_was_not_named_yet_is_missing_after_a_reset() {
        let reception = || Reception::new(&Arc::new(Hub::new(None)), None, None);
        let unnamed = "whoever was not named yet".to_owned();
        assert_eq!(after(&reception(), HEAD, true), [(unnamed, State::Broken)]);
        assert_eq!(after(&reception(), HEAD, false), []);
        let is_over = "{\"isolde\":\"trace 1\",\"client\":\"a\"}\n{\"bye\":true}\n";
        assert_eq!(after(&reception(), is_over, true), []);
        let named = "{\"isolde\":\"trace 1\",\"client\":\"a\"}\n";
        assert_eq!(after(&reception(), named, true), [("a".to_owned(), State::Broken)]);
        assert_eq!(after(&reception(), "", true), []);
    }

    /// The same of a stream that may come back: nobody would wait for its sessions.
    #[test]
    fn who_was_not_named_yet_is_waited_for_until_a_stream_is_back() {
        let reception = Reception::new(&Arc::new(Hub::new(None)), None, None);
        let unnamed = "whoever was not named yet".to_owned();
        for _ in 0..2 {
            assert_eq!(after(&reception, AGAIN, true), [(unnamed.clone(), State::Open)]);
        }
        assert_eq!(after(&reception, NAMED, true), [("b".to_owned(), State::Open)]);
        reception.close();
        assert_eq!(left(&reception.hub), [("b".to_owned(), State::Broken)]);

        let reception = Reception::new(&Arc::new(Hub::new(None)), None, None);
        assert_eq!(after(&reception, AGAIN, true), [(unnamed.clone(), State::Open)]);
        reception.close();
        assert_eq!(left(&reception.hub), [(unnamed, State::Broken)]);
        // A stream that ended was not reset.
        let reception = Reception::new(&Arc::new(Hub::new(None)), None, None);
        assert_eq!(after(&reception, AGAIN, false), []);
        reception.close();
        assert_eq!(left(&reception.hub), []);
    }
}
