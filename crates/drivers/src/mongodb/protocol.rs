//! `MongoDB`'s messages: a command is a document, and so is its reply.

use super::document;
use crate::network::{Server, Stream};
use bson::Document;
use isolde_harness::Failure;
use std::io::{self, BufReader, Read, Write};

/// The only kind of message that servers of today need.
const OP_MSG: u32 = 2013;
/// Bytes before a message's document: header, flags, the kind of the section.
pub(super) const BEFORE_DOCUMENT: usize = 16 + 4 + 1;
/// Bytes of one message, at most, as servers have it.
const LENGTH_MAX: usize = 48_000_000;
/// The flag of a message that ends with a checksum.
const HAS_CHECKSUM: u32 = 1;

/// A connection to one server.
pub(super) struct Connection {
    reader: BufReader<Stream>,
    request: u32,
}

impl Connection {
    pub(super) fn open(server: &Server) -> Result<Connection, Failure> {
        Ok(Connection { reader: BufReader::new(server.connect()?), request: 0 })
    }

    /// Sends a command and reads its reply, which may be a refusal.
    pub(super) fn call(&mut self, command: &Document) -> io::Result<Document> {
        self.request = self.request.wrapping_add(1);
        let stream = self.reader.get_mut();
        stream.write_all(&message(self.request, 0, command)?)?;
        stream.flush()?;
        let (answered, reply) = receive(&mut self.reader)?;
        if answered.responds_to == self.request {
            Ok(reply)
        } else {
            Err(invalid("the reply to another command"))
        }
    }
}

/// Which message it is, and which one it is the reply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) request: u32,
    pub(super) responds_to: u32,
}

/// The bytes of a message.
pub(super) fn message(request: u32, responds_to: u32, document: &Document) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    for number in [request, responds_to, OP_MSG, 0] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.push(0);
    document.to_writer(&mut bytes).map_err(io::Error::other)?;
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// The next message.
pub(super) fn receive(source: &mut impl Read) -> io::Result<(Numbers, Document)> {
    let mut start = [0; BEFORE_DOCUMENT];
    source.read_exact(&mut start)?;
    let word =
        |at: usize| u32::from_le_bytes([start[at], start[at + 1], start[at + 2], start[at + 3]]);
    let (length, kind, flags) = (word(0) as usize, word(12), word(16));
    if kind != OP_MSG || length > LENGTH_MAX || start[20] != 0 {
        return Err(invalid("something else"));
    }
    let length = length.checked_sub(BEFORE_DOCUMENT).ok_or_else(|| invalid("a wrong length"))?;
    let mut bytes = Vec::new();
    source.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if flags & HAS_CHECKSUM != 0 {
        bytes.truncate(length.saturating_sub(4));
    }
    Ok((Numbers { request: word(4), responds_to: word(8) }, document::read(&bytes)?))
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("expected a reply of MongoDB, found {what}"))
}
