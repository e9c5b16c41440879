//! The listener: connections of others, each read on a thread of its own.
//!
//! `connection.rs` has what is done with each, and `admission.rs` says who has to go where too many
//! come.

use super::admission::{Close, Origin};
use super::connection::{ANSWER_TIME_MAX, Connection, LOOK, Reception};
use super::hub::Hub;
use super::now::now;
use super::save_file::SaveFile;
use super::threads;
use crate::exit::Failure;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::fs::FileTypeExt;
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

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
    reception: Reception,
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
        Ok((Listener { socket, reception: Reception::new(hub, token, saved) }, place))
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
                || deadline.is_some_and(|deadline| now() >= deadline)
                || connections_max.is_some_and(|max| ended.load(Ordering::Relaxed) >= max)
        };
        let closing = AtomicBool::new(false);
        std::thread::scope(|scope| {
            while !is_done() {
                self.reception.give_up_expired();
                let Ok(Caller { connection, origin, close }) = self.accept() else {
                    std::thread::sleep(LOOK / 5);
                    continue;
                };
                let place = self.reception.knock(origin, close);
                // If there is no thread for it, it is still here to be answered.
                let shared = Arc::new(Mutex::new(Some((connection, place))));
                let (ended, closing, taken) = (&ended, &closing, Arc::clone(&shared));
                let started = threads::start(scope, "connection", move || {
                    let Some((connection, place)) = take(&taken) else { return };
                    let is_admitted = self.reception.call(connection, place).serve(closing);
                    ended.fetch_add(usize::from(is_admitted), Ordering::Relaxed);
                });
                if let Err(error) = started
                    && let Some((mut connection, _)) = take(&shared)
                {
                    self.reception.turn_away(connection.as_mut(), &error.to_string());
                }
            }
            closing.store(true, Ordering::Relaxed);
        });
        self.reception.close();
    }

    /// Why nothing can be saved any more, if so.
    pub(super) fn failure(&self) -> Option<String> {
        self.reception.failure()
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
