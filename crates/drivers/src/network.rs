//! Connections of the drivers that speak a protocol themselves.

use isolde_harness::Failure;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long a server may take to answer a request.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// How long it may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// A connection to a server.
pub(crate) fn connect(host: &str, port: u16) -> Result<TcpStream, Failure> {
    let failed = |error: &io::Error| Failure::Lost(format!("{host}:{port}: {error}"));
    // A name that nobody knows will not be known later.
    let addresses = (host, port)
        .to_socket_addrs()
        .map_err(|error| Failure::Refused(format!("cannot find {host}: {error}")))?;
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
            Ok(stream) => {
                stream
                    .set_nodelay(true)
                    .and_then(|()| stream.set_read_timeout(Some(ANSWER_LIMIT)))
                    .and_then(|()| stream.set_write_timeout(Some(ANSWER_LIMIT)))
                    .map_err(|error| failed(&error))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(failed(&last))
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
