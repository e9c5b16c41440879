//! As much of HTTP/1.1 as databases need that are asked by it: one request after another on
//! a connection that stays open, answers in JSON.

use crate::network::{Server, Stream};
use isolde_harness::Failure;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};

/// Bytes of a line of the head, and of the body.
const LINE_MAX: u64 = 1 << 16;
const BODY_MAX: u64 = 1 << 26;

/// A connection to one server.
pub(crate) struct Connection {
    host: String,
    token: Option<String>,
    reader: BufReader<Stream>,
}

/// What the server answered.
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Connection {
    pub(crate) fn open(server: &Server) -> Result<Connection, Failure> {
        let reader = BufReader::new(server.connect()?);
        Ok(Connection { host: server.name(), token: None, reader })
    }

    /// Sends this token from now on.
    pub(crate) fn authorize(&mut self, token: &str) {
        self.token = Some(token.to_owned());
    }

    /// Sends a message and reads the answer.
    pub(crate) fn post(&mut self, path: &str, message: &Value) -> io::Result<Answered> {
        let body = message.to_string();
        let token = self.token.as_ref().map(|token| format!("Authorization: {token}\r\n"));
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{}\
             Content-Length: {}\r\n\r\n{body}",
            self.host,
            token.unwrap_or_default(),
            body.len()
        );
        let stream = self.reader.get_mut();
        stream.write_all(request.as_bytes())?;
        stream.flush()?;
        read(&mut self.reader)
    }
}

impl Connection {
    /// Asks for what is at a path.
    #[cfg(feature = "mysql")]
    pub(crate) fn get(&mut self, path: &str) -> io::Result<Answered> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host);
        let stream = self.reader.get_mut();
        stream.write_all(request.as_bytes())?;
        stream.flush()?;
        read(&mut self.reader)
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("expected {what} in the server's answer"))
}

fn line(source: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    source.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let text = String::from_utf8(line).map_err(|_| invalid("UTF-8"))?;
    let text = text.strip_suffix('\n').ok_or_else(|| invalid("a whole line"))?;
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

fn read(source: &mut impl BufRead) -> io::Result<Answered> {
    let first = line(source)?;
    let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let status = status.ok_or_else(|| invalid("a status"))?;
    let (mut length, mut is_chunked) = (None, false);
    loop {
        let field = line(source)?;
        if field.is_empty() {
            break;
        }
        let Some((name, value)) = field.split_once(':') else { return Err(invalid("a field")) };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => {
                length = Some(value.parse::<u64>().map_err(|_| invalid("a length"))?);
            }
            "transfer-encoding" => is_chunked = value.eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
    let mut body = Vec::new();
    if is_chunked {
        loop {
            let size = line(source)?;
            let digits = size.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(digits, 16).map_err(|_| invalid("a size"))?;
            if size == 0 {
                break;
            }
            bytes(source, size, &mut body)?;
            if !line(source)?.is_empty() {
                return Err(invalid("the end of a part"));
            }
        }
        // Fields may follow the last part too: errors of etcd have some.
        while !line(source)?.is_empty() {}
    } else {
        bytes(source, length.ok_or_else(|| invalid("a length"))?, &mut body)?;
    }
    let body = serde_json::from_slice(&body).map_err(|_| invalid("JSON"))?;
    Ok(Answered { status, body })
}

fn bytes(source: &mut impl BufRead, count: u64, body: &mut Vec<u8>) -> io::Result<()> {
    if count + body.len() as u64 > BODY_MAX {
        return Err(invalid("fewer bytes"));
    }
    let found = source.by_ref().take(count).read_to_end(body)?;
    if (found as u64) < count { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<(u16, String), String> {
        let answered = read(&mut text.as_bytes()).map_err(|error| error.to_string())?;
        Ok((answered.status, answered.body.to_string()))
    }

    #[test]
    fn bodies_with_a_length_and_in_parts_are_read() {
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}";
        assert_eq!(parsed(whole), Ok((200, "{\"a\":1}".to_owned())));
        let parts = "HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n";
        assert_eq!(parsed(parts), Ok((400, "{\"a\":1}".to_owned())));
        let trailed = parts.replace("0\r\n\r\n", "0\r\nGrpc-Trailer-Code: 14\r\n\r\n");
        assert_eq!(parsed(&trailed), Ok((400, "{\"a\":1}".to_owned())));
    }

    #[test]
    fn damage_is_an_error() {
        for text in [
            "",
            "HTTP/1.1 xx\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n}{",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ] {
            assert!(parsed(text).is_err(), "{text:?}");
        }
    }
}
