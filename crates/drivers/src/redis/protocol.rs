//! Redis's protocol, as far as it is needed: commands, and replies of its second version.

use crate::network::{Server, Stream};
use isolde_harness::Failure;
use std::io::{self, BufRead, BufReader, Read, Write};

/// What the server replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// A status such as `OK`.
    Status(String),
    /// A refusal, beginning with its code.
    Error(String),
    Number(i64),
    /// A text; `None` if there is none.
    Text(Option<Vec<u8>>),
    /// Several replies; `None` if a transaction was refused.
    Several(Option<Vec<Reply>>),
}

/// Arrays in arrays, at most.
const DEPTH_MAX: u32 = 8;
/// Bytes of one text or elements of one array, at most.
const LENGTH_MAX: usize = 1 << 24;

/// A connection to one server.
pub(super) struct Connection {
    reader: BufReader<Stream>,
    out: Vec<u8>,
}

impl Connection {
    pub(super) fn open(server: &Server) -> Result<Connection, Failure> {
        Ok(Connection { reader: BufReader::new(server.connect()?), out: Vec::new() })
    }

    /// Adds a command to those that the next [`Connection::flush`] sends.
    pub(super) fn add<Part: AsRef<[u8]>>(&mut self, parts: &[Part]) {
        self.out.extend_from_slice(format!("*{}\r\n", parts.len()).as_bytes());
        for part in parts {
            let part = part.as_ref();
            self.out.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
            self.out.extend_from_slice(part);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    /// Sends the commands.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let stream = self.reader.get_mut();
        let sent = stream.write_all(&self.out).and_then(|()| stream.flush());
        self.out.clear();
        sent
    }

    /// Sends one command and reads its reply.
    pub(super) fn call<Part: AsRef<[u8]>>(&mut self, parts: &[Part]) -> io::Result<Reply> {
        self.add(parts);
        self.flush()?;
        self.reply()
    }

    /// The next reply.
    pub(super) fn reply(&mut self) -> io::Result<Reply> {
        read(&mut self.reader, DEPTH_MAX)
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("expected a reply of Redis, found {what}"))
}

fn read(source: &mut impl BufRead, depth: u32) -> io::Result<Reply> {
    let mut line = Vec::new();
    source.by_ref().take(LENGTH_MAX as u64).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let Some(line) = line.strip_suffix(b"\r\n") else { return Err(invalid("half a line")) };
    let (&first, rest) = line.split_first().ok_or_else(|| invalid("an empty line"))?;
    let text = String::from_utf8_lossy(rest).into_owned();
    let number = || text.parse::<i64>().map_err(|_| invalid(&text));
    // -1 stands for nothing.
    let length = || match number()? {
        -1 => Ok(None),
        length => match usize::try_from(length) {
            Ok(length) if length <= LENGTH_MAX => Ok(Some(length)),
            _ => Err(invalid(&text)),
        },
    };
    Ok(match first {
        b'+' => Reply::Status(text),
        b'-' => Reply::Error(text),
        b':' => Reply::Number(number()?),
        b'$' => Reply::Text(match length()? {
            None => None,
            Some(length) => {
                let mut bytes = Vec::new();
                source.by_ref().take(length as u64 + 2).read_to_end(&mut bytes)?;
                if bytes.len() < length + 2 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                bytes.truncate(length);
                Some(bytes)
            }
        }),
        b'*' if depth == 0 => return Err(invalid("arrays in arrays")),
        b'*' => Reply::Several(match length()? {
            None => None,
            Some(length) => {
                let mut replies = Vec::new();
                for _ in 0..length {
                    replies.push(read(source, depth - 1)?);
                }
                Some(replies)
            }
        }),
        _ => return Err(invalid(&String::from_utf8_lossy(line))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Reply, String> {
        read(&mut text.as_bytes(), DEPTH_MAX).map_err(|error| error.to_string())
    }

    #[test]
    fn every_kind_of_reply_is_read() {
        let reply = parsed("*5\r\n+OK\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n");
        assert_eq!(
            reply,
            Ok(Reply::Several(Some(vec![
                Reply::Status("OK".into()),
                Reply::Number(-7),
                Reply::Text(Some(b"a\r\n".to_vec())),
                Reply::Text(None),
                Reply::Several(None),
            ])))
        );
        assert_eq!(parsed("-ERR no\r\n"), Ok(Reply::Error("ERR no".into())));
    }

    #[test]
    fn damage_is_an_error() {
        let deep = "*1\r\n".repeat(100);
        for text in
            ["", "\r\n", "+OK", "$5\r\nab", "$-2\r\n", ":x\r\n", "*99999999999\r\n", "?\r\n", &deep]
        {
            assert!(parsed(text).is_err(), "{text:?}");
        }
    }
}
