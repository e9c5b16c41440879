//! A connection to Redis: the client of its makers packs commands and reads replies, on a
//! stream of ours.
//!
//! Its own connections cannot go by way of a proxy to a server whose certificate they verify.

use crate::network::{Server, Stream};
use isolde_harness::Failure;
use redis::{Cmd, Parser, Value};
use std::io::{self, Write};

/// A connection to one server.
pub(super) struct Connection {
    stream: Stream,
    parser: Parser,
    out: Vec<u8>,
}

impl Connection {
    pub(super) fn open(server: &Server) -> Result<Connection, Failure> {
        Ok(Connection { stream: server.connect()?, parser: Parser::new(), out: Vec::new() })
    }

    /// Adds a command to those that the next [`Connection::flush`] sends.
    pub(super) fn add<Part: AsRef<[u8]>>(&mut self, parts: &[Part]) {
        let mut command = Cmd::new();
        for part in parts {
            command.arg(part.as_ref());
        }
        self.out.extend_from_slice(&command.get_packed_command());
    }

    /// Sends the commands.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let sent = self.stream.write_all(&self.out).and_then(|()| self.stream.flush());
        self.out.clear();
        sent
    }

    /// Sends one command and reads its reply.
    pub(super) fn call<Part: AsRef<[u8]>>(&mut self, parts: &[Part]) -> io::Result<Value> {
        self.add(parts);
        self.flush()?;
        self.reply()
    }

    /// The next reply, which may be a refusal.
    pub(super) fn reply(&mut self) -> io::Result<Value> {
        self.parser.parse_value(&mut self.stream).map_err(io::Error::other)
    }
}
