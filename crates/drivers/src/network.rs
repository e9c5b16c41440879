//! Connections of the drivers that speak a protocol themselves.

use crate::tls;
use isolde_harness::{Address, Failure};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take to answer a request.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// How long it may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Whether the connections of an address are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encryption {
    Never,
    Always,
}

/// A server, and the way to it.
#[derive(Clone)]
pub(crate) struct Server {
    host: String,
    port: u16,
    /// Where to connect to instead: what passes everything on to the server.
    route: Option<SocketAddr>,
    tls: Option<Arc<ClientConfig>>,
}

impl Server {
    /// A server whose connections are not encrypted.
    pub(crate) fn plain(host: &str, port: u16) -> Server {
        Server { host: host.to_owned(), port, route: None, tls: None }
    }

    /// The servers of an address, or the one on this machine if it names none.
    pub(crate) fn all(
        address: &Address,
        default_port: u16,
        encryption: Encryption,
    ) -> Result<Vec<Server>, Failure> {
        let is_about_encryption =
            |option: &&(String, String)| tls::OPTIONS.contains(&option.0.as_str());
        let tls = match encryption {
            Encryption::Always => Some(tls::always(address)?),
            Encryption::Never => match address.options.iter().find(is_about_encryption) {
                None => None,
                Some((name, _)) => {
                    return Err(Failure::Refused(format!(
                        "expected {name} beside an encrypted address, found {}://, which is not",
                        address.scheme
                    )));
                }
            },
        };
        let server = |(host, port)| Server { host, port, route: None, tls: tls.clone() };
        if address.hosts.is_empty() {
            return Ok(vec![server(("127.0.0.1".to_owned(), default_port))]);
        }
        Ok(address.hosts.iter().map(|host| server(host.with_port(default_port))).collect())
    }

    /// Host and port.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Makes new connections go to another address.
    pub(crate) fn reroute(&mut self, address: SocketAddr) {
        self.route = Some(address);
    }

    /// A connection.
    pub(crate) fn connect(&self) -> Result<Stream, Failure> {
        let stream = self.reach()?;
        let Some(config) = &self.tls else { return Ok(Stream::Plain(stream)) };
        let refused = |error: &dyn std::fmt::Display| {
            Failure::Refused(format!("{} cannot be trusted: {error}", self.name()))
        };
        let name = ServerName::try_from(self.host.clone()).map_err(|error| refused(&error))?;
        let connection =
            ClientConnection::new(Arc::clone(config), name).map_err(|error| refused(&error))?;
        let mut stream = StreamOwned::new(connection, stream);
        match stream.conn.complete_io(&mut stream.sock) {
            Ok(_) => Ok(Stream::Encrypted(Box::new(stream))),
            // What is wrong with a certificate will be wrong later.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(refused(&error)),
            Err(error) => Err(self.lost(&error)),
        }
    }

    fn reach(&self) -> Result<TcpStream, Failure> {
        let addresses = match self.route {
            Some(address) => vec![address],
            // A name that nobody knows will not be known later.
            None => (self.host.as_str(), self.port)
                .to_socket_addrs()
                .map_err(|error| Failure::Refused(format!("cannot find {}: {error}", self.host)))?
                .collect(),
        };
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
                Ok(stream) => {
                    stream
                        .set_nodelay(true)
                        .and_then(|()| stream.set_read_timeout(Some(ANSWER_LIMIT)))
                        .and_then(|()| stream.set_write_timeout(Some(ANSWER_LIMIT)))
                        .map_err(|error| self.lost(&error))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(self.lost(&last))
    }

    fn lost(&self, error: &io::Error) -> Failure {
        Failure::Lost(format!("{}: {error}", self.name()))
    }
}

/// A connection to a server.
pub(crate) enum Stream {
    Plain(TcpStream),
    Encrypted(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.read(buffer),
            Stream::Encrypted(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.write(bytes),
            Stream::Encrypted(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(stream) => stream.flush(),
            Stream::Encrypted(stream) => stream.flush(),
        }
    }
}

/// The options that a driver knows beside those about encryption.
pub(crate) fn refuse_other_options(address: &Address, known: &[&str]) -> Result<(), Failure> {
    let is_known = |name: &str| known.contains(&name) || tls::OPTIONS.contains(&name);
    match address.options.iter().find(|option| !is_known(&option.0)) {
        None => Ok(()),
        Some((name, _)) => Err(Failure::Refused(format!(
            "expected one of the options {}, {} in the address, found `{name}`",
            known.join(", "),
            tls::OPTIONS.join(", ")
        ))),
    }
}

/// The failure of a first connection: the address is wrong or the server is not there.
pub(crate) fn unreachable(failure: Failure) -> Failure {
    match failure {
        Failure::Lost(reason) | Failure::Unknown(reason) => {
            Failure::Refused(format!("cannot connect to {reason}"))
        }
        other => other,
    }
}
