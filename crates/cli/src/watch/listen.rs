//! The listener: connections of others, each read on a thread of its own.
//!
//! A message that cannot be read ends its connection with an answer that says what was
//! expected: a stream with a gap would accuse the database of what the gap hides. A connection
//! is not read while too much waits, so that a flood waits with its sender.

use super::hub::Hub;
use super::resume::{Clients, Parking};
use super::stream::{Saved, Stream};
use crate::exit::Failure;
use isolde_history::trace::{Decoder, Form, Sink};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::fs::FileTypeExt;
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Connections at the same time.
const CONNECTIONS_MAX: usize = 1024;
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

/// The open door.
pub(super) struct Listener {
    socket: Socket,
    hub: Arc<Hub>,
    token: Option<String>,
    saved: Option<Arc<Saved>>,
    parking: Arc<Parking>,
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

impl Listener {
    /// Opens the door, and tells where it is.
    pub(super) fn bind(
        address: &ListenAddress,
        hub: &Arc<Hub>,
        token: Option<String>,
        saved: Option<Arc<Saved>>,
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
        Ok((Listener { socket, hub, token, saved, parking: Arc::default() }, place))
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

    fn accept(&self) -> io::Result<Box<dyn Connection>> {
        match &self.socket {
            Socket::Network(listener) => {
                let (stream, _): (TcpStream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(LOOK))?;
                stream.set_write_timeout(Some(ANSWER_TIME_MAX))?;
                Ok(Box::new(stream))
            }
            #[cfg(unix)]
            Socket::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(LOOK))?;
                stream.set_write_timeout(Some(ANSWER_TIME_MAX))?;
                Ok(Box::new(stream))
            }
        }
    }

    /// Takes connections until it is over, or until so many have ended that were not turned
    /// away: who guesses a token keeps nobody out.
    pub(super) fn run(
        &self,
        is_over: &AtomicBool,
        deadline: Option<Instant>,
        connections_max: Option<usize>,
    ) {
        let (open, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let is_done = || {
            is_over.load(Ordering::Relaxed)
                || deadline.is_some_and(|deadline| Instant::now() >= deadline)
                || connections_max.is_some_and(|max| ended.load(Ordering::Relaxed) >= max)
        };
        let closing = AtomicBool::new(false);
        std::thread::scope(|scope| {
            while !is_done() {
                self.give_up(self.parking.take_expired());
                let Ok(mut connection) = self.accept() else {
                    std::thread::sleep(LOOK / 5);
                    continue;
                };
                if open.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
                    self.hub.refused.fetch_add(1, Ordering::Relaxed);
                    let message = format!("expected at most {CONNECTIONS_MAX} connections");
                    let _ = refuse(connection.as_mut(), Some(Form::Json), &message);
                    continue;
                }
                open.fetch_add(1, Ordering::Relaxed);
                let (open, ended, closing) = (&open, &ended, &closing);
                scope.spawn(move || {
                    let is_admitted = self.serve(connection.as_mut(), closing);
                    open.fetch_sub(1, Ordering::Relaxed);
                    ended.fetch_add(usize::from(is_admitted), Ordering::Relaxed);
                });
            }
            closing.store(true, Ordering::Relaxed);
        });
        self.give_up(self.parking.take_all());
    }

    /// Clients that did not come back after a cut.
    fn give_up(&self, streams: Vec<Clients>) {
        for clients in streams {
            let mut stream = self.stream().with_clients(clients);
            stream.end(false);
            let _ = stream.publish();
        }
    }

    fn stream(&self) -> Stream {
        Stream::new(&self.hub, self.token.clone(), self.saved.as_ref().map(Arc::clone))
    }

    /// Reads one connection to its end: whether it was not turned away.
    fn serve(&self, connection: &mut dyn Connection, closing: &AtomicBool) -> bool {
        let mut stream = self.stream().with_parking(&self.parking);
        let mut decoder = Decoder::new();
        let read = read_all(connection, &mut decoder, &mut stream, &self.hub, closing);
        let is_admitted = read.is_ok() || decoder.messages() > 0;
        let is_whole = match read {
            Ok(_) if stream.is_resumable() => {
                let _ = stream.publish();
                stream.park();
                true
            }
            Ok(is_whole) => is_whole,
            Err(message) => {
                let counter = if is_admitted { &self.hub.malformed } else { &self.hub.refused };
                counter.fetch_add(1, Ordering::Relaxed);
                self.hub.complain(&message);
                let _ = refuse(connection, decoder.form(), &message);
                false
            }
        };
        stream.end(is_whole);
        let _ = stream.publish();
        let _ = taken(connection, &decoder);
        is_admitted
    }
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

/// Reads until there is no more: whether the last message was whole.
fn read_all(
    connection: &mut dyn Connection,
    decoder: &mut Decoder,
    stream: &mut Stream,
    hub: &Hub,
    closing: &AtomicBool,
) -> Result<bool, String> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut hears = true;
    loop {
        hub.wait_for_room(closing);
        if closing.load(Ordering::Relaxed) {
            return Ok(!decoder.is_inside());
        }
        let count = match connection.read(&mut buffer) {
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
            Err(_) => return Ok(!decoder.is_inside()),
        };
        let read = decoder.take(&buffer[..count], stream as &mut dyn Sink);
        // What was read before the mistake counts.
        stream.publish().map_err(|error| format!("cannot save the trace: {error}"))?;
        read?;
        hears = hears && taken(connection, decoder).is_ok();
    }
    if decoder.is_inside() && !stream.is_resumable() {
        let number = decoder.messages() + 1;
        return Err(format!("message {number}: expected its end, found the end of the connection"));
    }
    Ok(true)
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
