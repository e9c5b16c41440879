//! The listener: connections of others, each read on a thread of its own.
//!
//! A message that cannot be read ends its connection with an answer that says what was
//! expected: a stream with a gap would accuse the database of what the gap hides. A connection
//! is not read while too much waits, so that a flood waits with its sender. One that does not say
//! soon what it wants is ended; `admission.rs` says who has to go where too many come.

use super::admission::{Admission, Close, Origin, Place};
use super::hub::Hub;
use super::resume::{Clients, Parking};
use super::save_file::{SaveFile, Unsaved};
use super::stream::Stream;
use super::threads;
use crate::exit::Failure;
use isolde_history::trace::{Decoder, Form, Sink};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::fs::FileTypeExt;
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a connection may take to say what it wants, and in how many bytes: names and a token.
const HEAD_TIME_MAX: Duration = Duration::from_secs(5);
const HEAD_BYTES_MAX: usize = 8 << 10;
/// How often the end is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How long an answer may take; who does not read answers gets none.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
/// Between two acknowledgements, unless the sender waits for one.
const CHUNK_BYTES: usize = 1 << 16;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListenAddress {
    Network(SocketAddr),
    #[cfg(unix)]
    Unix(PathBuf),
}

/// `127.0.0.1:7416`, a port alone, or `unix:/run/isolde.sock`.
pub(super) fn parse_address(text: &str) -> Result<ListenAddress, String> {
    #[cfg(unix)]
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(ListenAddress::Unix(path.into()));
    }
    if let Ok(port) = text.parse::<u16>() {
        return Ok(ListenAddress::Network(SocketAddr::from(([127, 0, 0, 1], port))));
    }
    text.parse().map(ListenAddress::Network).map_err(|_| {
        format!("expected a port, an address and port such as 127.0.0.1:7416, or unix:PATH, found `{text}`")
    })
}

/// Where traces come in.
pub(super) struct Listener {
    socket: Socket,
    hub: Arc<Hub>,
    token: Option<String>,
    saved: Option<Arc<SaveFile>>,
    parking: Arc<Parking>,
    admission: Arc<Admission>,
}

enum Socket {
    Network(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener, PathBuf),
}

impl Drop for Socket {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Socket::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Either kind of connection.
trait Connection: Read + Write + Send {}
impl<T: Read + Write + Send> Connection for T {}

/// One who has just connected.
struct Caller {
    connection: Box<dyn Connection>,
    origin: Origin,
    close: Close,
}

impl Listener {
    /// Opens it, and tells where it is.
    pub(super) fn bind(
        address: &ListenAddress,
        hub: &Arc<Hub>,
        token: Option<String>,
        saved: Option<Arc<SaveFile>>,
    ) -> Result<(Listener, String), Failure> {
        let failed = |error: io::Error| {
            let place = match address {
                ListenAddress::Network(address) => address.to_string(),
                #[cfg(unix)]
                ListenAddress::Unix(path) => path.display().to_string(),
            };
            Failure::Usage(format!("watch: cannot listen on {place}: {error}"))
        };
        let (socket, place) = match address {
            ListenAddress::Network(address) => {
                let listener = TcpListener::bind(address).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                let place = listener.local_addr().map_err(failed)?.to_string();
                (Socket::Network(listener), place)
            }
            #[cfg(unix)]
            ListenAddress::Unix(path) => {
                let listener = bind_unix(path).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                (Socket::Unix(listener, path.clone()), format!("unix:{}", path.display()))
            }
        };
        let hub = Arc::clone(hub);
        Ok((
            Listener {
                socket,
                hub,
                token,
                saved,
                parking: Arc::default(),
                admission: Arc::default(),
            },
            place,
        ))
    }

    /// Whether other machines may reach it.
    pub(super) fn is_public(&self) -> bool {
        match &self.socket {
            Socket::Network(listener) => {
                listener.local_addr().is_ok_and(|address| !address.ip().is_loopback())
            }
            #[cfg(unix)]
            Socket::Unix(..) => false,
        }
    }

    fn accept(&self) -> io::Result<Caller> {
        match &self.socket {
            Socket::Network(listener) => {
                let (stream, address): (TcpStream, SocketAddr) = listener.accept()?;
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(LOOK))?;
                stream.set_write_timeout(Some(ANSWER_TIME_MAX))?;
                let other_end = stream.try_clone()?;
                let close = move || drop(other_end.shutdown(Shutdown::Both));
                let origin = Origin::from(address.ip());
                Ok(Caller { connection: Box::new(stream), origin, close: Box::new(close) })
            }
            #[cfg(unix)]
            Socket::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(LOOK))?;
                stream.set_write_timeout(Some(ANSWER_TIME_MAX))?;
                let other_end = stream.try_clone()?;
                let close = move || drop(other_end.shutdown(Shutdown::Both));
                let origin = Origin::Local;
                Ok(Caller { connection: Box::new(stream), origin, close: Box::new(close) })
            }
        }
    }

    /// Takes connections until it is over, until so many have ended that were not turned away
    /// (who guesses a token keeps nobody out), or until nothing can be saved any more.
    pub(super) fn run(
        &self,
        is_over: &AtomicBool,
        deadline: Option<Instant>,
        connections_max: Option<usize>,
    ) {
        let ended = AtomicUsize::new(0);
        let is_done = || {
            is_over.load(Ordering::Relaxed)
                || self.failure().is_some()
                || deadline.is_some_and(|deadline| Instant::now() >= deadline)
                || connections_max.is_some_and(|max| ended.load(Ordering::Relaxed) >= max)
        };
        let closing = AtomicBool::new(false);
        std::thread::scope(|scope| {
            while !is_done() {
                self.give_up(self.parking.take_expired());
                let Ok(Caller { connection, origin, close }) = self.accept() else {
                    std::thread::sleep(LOOK / 5);
                    continue;
                };
                let (place, is_any_closed) = self.admission.knock(origin, close);
                if is_any_closed {
                    self.hub.refused.fetch_add(1, Ordering::Relaxed);
                }
                // If there is no thread for it, it is still here to be answered.
                let shared = Arc::new(Mutex::new(Some((connection, place))));
                let (ended, closing, taken) = (&ended, &closing, Arc::clone(&shared));
                let started = threads::start(scope, "connection", move || {
                    let Some((mut connection, place)) = take(&taken) else { return };
                    let is_admitted = self.serve(connection.as_mut(), place, closing);
                    ended.fetch_add(usize::from(is_admitted), Ordering::Relaxed);
                });
                if let Err(error) = started
                    && let Some((mut connection, _)) = take(&shared)
                {
                    self.turn_away(connection.as_mut(), &error.to_string());
                }
            }
            closing.store(true, Ordering::Relaxed);
        });
        self.give_up(self.parking.take_all());
    }

    /// Why nothing can be saved any more, if so.
    pub(super) fn failure(&self) -> Option<String> {
        self.saved.as_ref().and_then(|saved| saved.failure())
    }

    fn turn_away(&self, connection: &mut dyn Connection, message: &str) {
        self.hub.refused.fetch_add(1, Ordering::Relaxed);
        self.hub.complain(message);
        let _ = refuse(connection, Some(Form::Json), message);
    }

    /// Clients that did not come back after a cut.
    fn give_up(&self, streams: Vec<Clients>) {
        for clients in streams {
            let mut stream = self.stream().with_clients(clients);
            stream.end(false);
            // What cannot be saved ends the watch, and is told then.
            let _ = stream.publish();
        }
    }

    fn stream(&self) -> Stream {
        Stream::new(&self.hub, self.token.clone(), self.saved.as_ref().map(Arc::clone))
    }

    /// Reads one connection to its end: whether it was not turned away.
    fn serve(&self, connection: &mut dyn Connection, place: Place, closing: &AtomicBool) -> bool {
        let mut stream = self.stream().with_parking(&self.parking);
        let mut decoder = Decoder::new();
        let mut reading = Reading {
            connection: &mut *connection,
            decoder: &mut decoder,
            stream: &mut stream,
            hub: &self.hub,
            place,
            closing,
            unfinished: Unfinished(&self.hub, 0),
        };
        let read = reading.all();
        drop(reading);
        let is_admitted = stream.is_admitted() && !matches!(read, Err(Ended::TurnedAway(_)));
        let is_whole = match read {
            Ok(_) if stream.is_resumable() && !closing.load(Ordering::Relaxed) => {
                if let Err(Unsaved(message)) = stream.publish() {
                    let _ = refuse(connection, decoder.form(), &message);
                }
                stream.park();
                true
            }
            Ok(is_whole) => is_whole,
            Err(Ended::Unsaved(message)) => {
                let _ = refuse(connection, decoder.form(), &message);
                false
            }
            Err(Ended::Unreadable(message) | Ended::TurnedAway(message)) => {
                let counter = if is_admitted { &self.hub.malformed } else { &self.hub.refused };
                counter.fetch_add(1, Ordering::Relaxed);
                self.hub.complain(&message);
                let _ = refuse(connection, decoder.form(), &message);
                false
            }
        };
        stream.end(is_whole);
        // What is not in the file is not acknowledged.
        if stream.publish().is_ok() {
            let _ = taken(connection, &decoder);
        }
        is_admitted
    }
}

/// Whatever is still there: whoever comes first has it.
fn take<T>(shared: &Mutex<Option<T>>) -> Option<T> {
    shared.lock().expect("nobody panics while taking").take()
}

/// A socket at this path. One that is left over from a process that was killed is replaced,
/// after a call that nobody answers.
#[cfg(unix)]
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let in_use = match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => error,
        bound => return bound,
    };
    let is_socket = std::fs::symlink_metadata(path)?.file_type().is_socket();
    match UnixStream::connect(path) {
        Err(error) if is_socket && error.kind() == ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        _ => Err(in_use),
    }
}

/// Why a connection was ended.
enum Ended {
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
struct Unfinished<'a>(&'a Hub, usize);

impl Unfinished<'_> {
    /// An error if there are too many, and these are a good part of them.
    fn set(&mut self, bytes: usize) -> Result<(), String> {
        let Unfinished(hub, before) = self;
        let all = hub.unfinished.fetch_add(bytes, Ordering::Relaxed) + bytes;
        hub.unfinished.fetch_sub(*before, Ordering::Relaxed);
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

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0.unfinished.fetch_sub(self.1, Ordering::Relaxed);
    }
}

/// A connection that is being read.
struct Reading<'a> {
    connection: &'a mut dyn Connection,
    decoder: &'a mut Decoder,
    stream: &'a mut Stream,
    hub: &'a Hub,
    place: Place,
    closing: &'a AtomicBool,
    unfinished: Unfinished<'a>,
}

impl Reading<'_> {
    /// Reads until there is no more: whether the last message was whole.
    fn all(&mut self) -> Result<bool, Ended> {
        let deadline = Instant::now() + HEAD_TIME_MAX;
        let mut head_bytes = 0;
        let mut buffer = vec![0; HEAD_BYTES_MAX];
        let mut hears = true;
        loop {
            if self.stream.is_admitted() {
                buffer.resize(CHUNK_BYTES, 0);
                self.hub.wait_for_room(self.closing);
            } else if head_bytes >= HEAD_BYTES_MAX {
                let message = format!("expected the head in the first {HEAD_BYTES_MAX} bytes");
                return Err(message.into());
            } else if Instant::now() >= deadline {
                let seconds = HEAD_TIME_MAX.as_secs();
                let message = format!("expected the head within {seconds} s, found none");
                return Err(message.into());
            }
            if self.closing.load(Ordering::Relaxed) {
                // What it would have sent after the end is of no interest.
                return Ok(true);
            }
            let count = match self.connection.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) =>
                {
                    continue;
                }
                // Who is gone without a word is treated as one who ended.
                Err(_) => return Ok(!self.decoder.is_inside()),
            };
            if !self.stream.is_admitted() {
                head_bytes += count;
            }
            let read = self.decoder.take(&buffer[..count], self.stream as &mut dyn Sink);
            if self.stream.is_admitted() {
                self.place.enter().map_err(Ended::TurnedAway)?;
            }
            // What was read before the mistake counts.
            self.stream.publish().map_err(|Unsaved(message)| Ended::Unsaved(message))?;
            read?;
            self.unfinished.set(self.decoder.unfinished())?;
            if self.stream.is_admitted() {
                hears = hears && taken(self.connection, self.decoder).is_ok();
            }
        }
        if self.decoder.is_inside() && !self.stream.is_resumable() {
            let number = self.decoder.messages() + 1;
            let message =
                format!("message {number}: expected its end, found the end of the connection");
            return Err(message.into());
        }
        Ok(true)
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
    use super::*;

    #[test]
    fn a_socket_that_nobody_listens_on_is_replaced_and_no_other() {
        let folder = std::env::temp_dir().join(format!("isolde-listen-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("socket");
        let first = bind_unix(&path).expect("nothing is there");
        assert_eq!(
            bind_unix(&path).map_err(|error| error.kind()).err(),
            Some(ErrorKind::AddrInUse)
        );
        drop(first);
        drop(bind_unix(&path).expect("nobody listens any more"));
        std::fs::remove_file(&path).expect("a socket");
        std::fs::write(&path, "a file").expect("a file");
        assert!(bind_unix(&path).is_err());
        assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), Some("a file"));
        std::fs::remove_dir_all(&folder).expect("a folder");
    }

    #[test]
    fn a_port_alone_is_on_this_machine() {
        let network = |text: &str| Ok(ListenAddress::Network(text.parse().expect("an address")));
        assert_eq!(parse_address("7416"), network("127.0.0.1:7416"));
        assert_eq!(parse_address("0.0.0.0:1"), network("0.0.0.0:1"));
        assert_eq!(parse_address("unix:/x"), Ok(ListenAddress::Unix("/x".into())));
        assert!(parse_address("localhost").is_err());
    }
}
