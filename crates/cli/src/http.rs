//! As much of HTTP as a browser on the same machine needs: GET, one answer, close.
//!
//! Requests are small and must come soon; everything else is refused. The name of the host must be
//! one of ours, so that no page of somebody else can read answers by giving its own name our
//! address.
//!
//! By hand around a parser of heads: that a connection without a request costs no thread, and of
//! too many the oldest is closed, is what keeps others served, and libraries that do so bring a
//! runtime that the first build would wait for.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const REQUEST_BYTES_MAX: usize = 16 << 10;
/// Fields in the head of a request.
const FIELDS_MAX: usize = 100;
/// Connections that are kept without a request.
const WAITING_MAX: usize = 500;
const PATIENCE: Duration = Duration::from_secs(10);

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn html(body: String) -> Answer {
        Answer { status: "200 OK", kind: "text/html; charset=utf-8", body }
    }

    pub(crate) fn of(kind: &'static str, body: String) -> Answer {
        Answer { status: "200 OK", kind, body }
    }

    pub(crate) fn refusal(status: &'static str, message: &str) -> Answer {
        Answer { status, kind: "text/plain; charset=utf-8", body: message.to_owned() }
    }
}

/// The names under which a browser on this machine may know this server, beside its address.
pub(crate) fn hosts(address: SocketAddr) -> Vec<String> {
    let port = address.port();
    let mut hosts = Vec::new();
    if address.ip().is_loopback() || address.ip().is_unspecified() {
        hosts.extend(["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}")));
    }
    hosts
}

/// Whether a browser names the address that it is connected to, which no name of somebody else
/// stands for. Browsers leave out the port 80.
fn is_address(host: &str, local: SocketAddr) -> bool {
    let local = SocketAddr::new(local.ip().to_canonical(), local.port());
    let with_port = if local.port() == 80 { format!("{host}:80") } else { host.to_owned() };
    [host, with_port.as_str()].iter().any(|host| host.parse() == Ok(local))
}

/// Connections that have not asked for anything yet. They cost no thread, so that any number of
/// idle ones keeps nobody else from an answer.
#[derive(Default)]
pub(crate) struct Waiting {
    streams: Vec<(TcpStream, Instant)>,
}

impl Waiting {
    /// Adds a connection; of too many, the one that has waited longest is closed.
    pub(crate) fn add(&mut self, stream: TcpStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.streams.len() >= WAITING_MAX {
            self.streams.remove(0);
        }
        self.streams.push((stream, Instant::now()));
    }

    /// Takes at most so many of those whose request is there. Those that were closed, or have
    /// waited too long, are given up.
    pub(crate) fn asking(&mut self, count_max: usize) -> Vec<TcpStream> {
        let mut asking = Vec::new();
        for (stream, since) in std::mem::take(&mut self.streams) {
            match state(&stream) {
                State::Asks if asking.len() < count_max => asking.push(stream),
                State::Asks => self.streams.push((stream, since)),
                State::Waits if since.elapsed() < PATIENCE => self.streams.push((stream, since)),
                State::Waits | State::Closed => {}
            }
        }
        asking
    }
}

enum State {
    Asks,
    Waits,
    Closed,
}

/// Whether the whole head of a request has come.
fn state(stream: &TcpStream) -> State {
    let mut head = [0; REQUEST_BYTES_MAX];
    match stream.peek(&mut head) {
        Ok(0) => State::Closed,
        Ok(length) => {
            let is_there = length == head.len() || is_whole(&head[..length]);
            if is_there { State::Asks } else { State::Waits }
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => State::Waits,
        Err(_) => State::Closed,
    }
}

/// Whether bytes end a head somewhere.
fn is_whole(head: &[u8]) -> bool {
    let ends = |end: &[u8]| head.windows(end.len()).any(|it| it == end);
    ends(b"\r\n\r\n") || ends(b"\n\n")
}

/// Reads one request and answers it with what `answer` says for its path, which is decoded.
pub(crate) fn serve_one(
    stream: &TcpStream,
    hosts: &[String],
    answer: impl FnOnce(&str) -> Answer,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let local = stream.local_addr()?;
    let (answer, has_body) = match request(&head(stream)?) {
        Some(request) if !hosts.contains(&request.host) && !is_address(&request.host, local) => {
            let message = format!("this server is known by its address alone, http://{local}/");
            (Answer::refusal("403 Forbidden", &message), true)
        }
        Some(Request { method, .. }) if method != "GET" && method != "HEAD" => {
            (Answer::refusal("405 Method Not Allowed", "only GET is answered"), true)
        }
        Some(Request { path: Some(path), method, .. }) => (answer(&path), method == "GET"),
        _ => (Answer::refusal("400 Bad Request", "expected a request of HTTP"), true),
    };
    let mut out: &TcpStream = stream;
    write!(
        out,
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         X-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\n\r\n",
        answer.status,
        answer.kind,
        answer.body.len()
    )?;
    if has_body {
        out.write_all(answer.body.as_bytes())?;
    }
    out.flush()
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    method: String,
    /// `None` if it cannot be decoded.
    path: Option<String>,
    host: String,
}

/// The whole head of a request, or as much as came of it.
fn head(mut stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut head = vec![0; REQUEST_BYTES_MAX];
    let mut length = 0;
    while length < head.len() && !is_whole(&head[..length]) {
        match stream.read(&mut head[length..])? {
            0 => break,
            count => length += count,
        }
    }
    head.truncate(length);
    Ok(head)
}

/// The first line and the host; nothing if it is no request. One with two hosts is none: who
/// stands between might have looked at the other [RFC 9112 §3.2].
pub(crate) fn request(head: &[u8]) -> Option<Request> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    if !parsed.parse(head).is_ok_and(|status| status.is_complete()) {
        return None;
    }
    let mut hosts = parsed.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
    let host = match (hosts.next(), hosts.next()) {
        (host, None) => host.map_or(Ok(""), |field| std::str::from_utf8(field.value)).ok()?,
        (_, Some(_)) => return None,
    };
    let path = parsed.path?.split(['?', '#']).next()?;
    Some(Request {
        method: parsed.method?.to_owned(),
        path: decoded(path),
        host: host.trim().to_owned(),
    })
}

/// A path with its `%` escapes resolved; none if one of them is no escape.
pub(crate) fn decoded(path: &str) -> Option<String> {
    let is_escape = |rest: &str| {
        rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    // The library passes over what is none.
    if !path.split('%').skip(1).all(is_escape) {
        return None;
    }
    percent_decode_str(path).decode_utf8().ok().map(Cow::into_owned)
}

/// A name as one part of a path.
pub(crate) fn encoded(name: &str) -> String {
    const ESCAPED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(name, ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_a_method_a_path_and_a_host() {
        let text = "GET /run/a%20b?x=1 HTTP/1.1\r\nHost: localhost:1\r\nAccept: */*\r\n\r\n";
        let found = request(text.as_bytes());
        let expected = Request {
            method: "GET".into(),
            path: Some("/run/a b".into()),
            host: "localhost:1".into(),
        };
        assert_eq!(found, Some(expected));
        let hosts = "GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n";
        for wrong in ["", "GET\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n", hosts] {
            assert_eq!(request(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn the_address_of_the_connection_is_a_name_of_the_server() {
        for (host, local) in [
            ("10.1.2.3:7415", "10.1.2.3:7415"),
            ("10.1.2.3:7415", "[::ffff:10.1.2.3]:7415"),
            ("[fe80::1]:7415", "[fe80::1]:7415"),
            ("10.1.2.3", "10.1.2.3:80"),
        ] {
            assert!(is_address(host, local.parse().expect("an address")), "{host}");
        }
        for host in ["10.1.2.3", "10.1.2.3:80", "10.1.2.4:7415", "evil.example:7415", ""] {
            assert!(!is_address(host, "10.1.2.3:7415".parse().expect("an address")), "{host}");
        }
    }

    #[test]
    fn names_survive_being_part_of_a_path() {
        for name in ["plain", "a b/c", "../x", "ä%", "\u{1f600}"] {
            assert_eq!(decoded(&encoded(name)).as_deref(), Some(name));
        }
        assert_eq!(encoded("a/b c"), "a%2Fb%20c");
        assert_eq!(decoded("%ff"), None);
    }
}
