//! The same messages with and without the proxy: every byte of the answers is the same.

use super::server::{Folder, Proxy, Server};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A connection that sends messages as they are.
pub(crate) struct Raw(pub(crate) TcpStream);

impl Raw {
    pub(crate) fn connect(port: u16) -> Raw {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
        stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a socket");
        let mut raw = Raw(stream);
        let mut body = 196_608u32.to_be_bytes().to_vec();
        body.extend_from_slice(b"user\0postgres\0database\0postgres\0\0");
        let mut message = (body.len() as u32 + 4).to_be_bytes().to_vec();
        message.extend(body);
        raw.0.write_all(&message).expect("it is open");
        raw.answers(1);
        raw
    }

    /// Everything up to so many `ReadyForQuery`.
    pub(crate) fn answers(&mut self, count: usize) -> Vec<u8> {
        let (mut bytes, mut ready) = (Vec::new(), 0);
        while ready < count {
            let start = bytes.len();
            bytes.resize(start + 5, 0);
            self.0.read_exact(&mut bytes[start..]).expect("an answer");
            let head = &bytes[start + 1..start + 5];
            let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
            bytes.resize(start + 1 + length, 0);
            self.0.read_exact(&mut bytes[start + 5..]).expect("the rest of it");
            ready += usize::from(bytes[start] == b'Z');
        }
        bytes
    }

    pub(crate) fn query(&mut self, sql: &str) -> Vec<u8> {
        self.send(&query(sql));
        self.answers(1)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("it is open");
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn query(sql: &str) -> Vec<u8> {
    message(b'Q', format!("{sql}\0").as_bytes())
}

fn parse(name: &str, sql: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{sql}\0\0\0").as_bytes())
}

/// Binds text parameters, with these formats of columns.
fn bind(portal: &str, name: &str, values: &[&str], formats: &[u16]) -> Vec<u8> {
    let mut body = format!("{portal}\0{name}\0").into_bytes();
    body.extend_from_slice(&[0, 0]);
    body.extend_from_slice(&(values.len() as u16).to_be_bytes());
    for value in values {
        body.extend_from_slice(&(value.len() as u32).to_be_bytes());
        body.extend_from_slice(value.as_bytes());
    }
    body.extend_from_slice(&(formats.len() as u16).to_be_bytes());
    body.extend(formats.iter().flat_map(|format| format.to_be_bytes()));
    message(b'B', &body)
}

fn describe(kind: char, name: &str) -> Vec<u8> {
    message(b'D', format!("{kind}{name}\0").as_bytes())
}

fn execute(portal: &str, limit: u32) -> Vec<u8> {
    let mut body = format!("{portal}\0").into_bytes();
    body.extend_from_slice(&limit.to_be_bytes());
    message(b'E', &body)
}

fn sync() -> Vec<u8> {
    message(b'S', &[])
}

/// One statement with parameters, described both ways.
fn whole(sql: &str, values: &[&str], formats: &[u16], limit: u32) -> Vec<u8> {
    let parts = [
        parse("", sql),
        describe('S', ""),
        bind("", "", values, formats),
        describe('P', ""),
        execute("", limit),
        sync(),
    ];
    parts.concat()
}

const SCHEMA: &str = "CREATE TABLE t(id int PRIMARY KEY, v int, w text); \
    CREATE TABLE two(a int, b text, c int, PRIMARY KEY (b, a)); CREATE TABLE nokey(a int, b text); \
    CREATE TABLE parts(id int PRIMARY KEY, v int) PARTITION BY RANGE (id); \
    CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (100); \
    CREATE TABLE high PARTITION OF parts FOR VALUES FROM (100) TO (1000); \
    CREATE VIEW seen AS SELECT id FROM t; \
    CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql AS 'select 2 * $1'";

/// Each with how often the server is ready after it.
fn simple() -> Vec<(Vec<u8>, usize)> {
    let texts = [
        SCHEMA,
        "INSERT INTO t VALUES (1, 10, 'a'), (2, NULL, 'it''s'), (3, 30, NULL)",
        "INSERT INTO two VALUES (1, 'x', 1), (1, 'y,z', 2); INSERT INTO nokey VALUES (1, 'n')",
        "INSERT INTO parts VALUES (5, 5), (500, 7)",
        "SELECT * FROM t ORDER BY id; SELECT 1; SELECT w, id FROM t LIMIT 1;",
        "SELECT count(*), sum(v) FROM t; SELECT v, count(*) FROM t GROUP BY v ORDER BY v",
        "SELECT DISTINCT v FROM t; SELECT 1 UNION SELECT 2 ORDER BY 1",
        "SELECT t.id, two.c FROM t LEFT JOIN two ON two.a = t.id AND b = 'x' ORDER BY t.id, c FOR UPDATE OF t",
        "UPDATE t SET v = v + 1 WHERE id = 1",
        "UPDATE t AS x SET v = 0 WHERE id > 1 RETURNING *, x.v + 1",
        "DELETE FROM t WHERE id = 3; DELETE FROM t WHERE id = 2 RETURNING w",
        "INSERT INTO t VALUES (1, 1, 'again')",
        "INSERT INTO t VALUES (1, 1, 'u') ON CONFLICT (id) DO UPDATE SET w = excluded.w",
        "INSERT INTO t VALUES (1, 1, 'u') ON CONFLICT DO NOTHING",
        "SELECT nothing FROM t",
        "SELECT id FROM t WHERE nothing = 1",
        "SELECT id FROM",
        "UPDATE parts SET id = 200 WHERE id = 5",
        "SELECT * FROM parts ORDER BY id; SELECT id FROM seen; SELECT twice(id) FROM t",
        "DELETE FROM parts WHERE id = 200",
        "BEGIN",
        "SAVEPOINT a; INSERT INTO t VALUES (9, 9, 'nine'); ROLLBACK TO a",
        "SELECT * FROM t ORDER BY id",
        "SELECT nothing",
        "SELECT 1",
        "COMMIT",
        "BEGIN; UPDATE t SET v = 7; COMMIT AND CHAIN; SELECT v FROM t; ROLLBACK",
        "WITH q AS (SELECT * FROM t) SELECT count(*) FROM q",
        "WITH d AS (DELETE FROM nokey RETURNING *) INSERT INTO nokey SELECT * FROM d",
        "COPY t TO STDOUT",
        "LISTEN bell; NOTIFY bell, 'ding'",
        "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM t; FETCH 1 FROM c; CLOSE c",
        "PREPARE p AS SELECT * FROM t WHERE id = $1; EXECUTE p(1); DEALLOCATE p",
        "SET client_min_messages = notice; DO $$ BEGIN RAISE NOTICE 'hello'; END $$",
        "",
        ";;",
        "SELECT E'a\\'b', $$do$$, \"id\" FROM \"t\" AS \"X\" WHERE \"X\".v IS DISTINCT FROM 10 -- end",
        "EXPLAIN (COSTS OFF) SELECT * FROM t",
        "TRUNCATE nokey; TABLE t; VALUES (1)",
    ];
    texts.iter().map(|text| (query(text), 1)).collect()
}

const SELECT: &str = "SELECT id, v, w FROM t WHERE id >= $1::int ORDER BY id";

/// Single statements with parameters, in all formats.
fn extended() -> Vec<(Vec<u8>, usize)> {
    let select = SELECT;
    vec![
        (
            query(
                "DELETE FROM t; INSERT INTO t SELECT n, n * 10, 'row ' || n FROM generate_series(1, 9) n",
            ),
            1,
        ),
        (whole(select, &["3"], &[], 0), 1),
        (whole(select, &["3"], &[1], 0), 1),
        (whole(select, &["3"], &[0, 1, 0], 0), 1),
        (whole("UPDATE t SET v = 5 WHERE id > $1::int", &["7"], &[], 1), 1),
        (whole("UPDATE t SET v = 5 WHERE id > $1::int", &["7"], &[1], 0), 1),
        (whole("UPDATE t SET v = 6 WHERE id > $1::int RETURNING id, v", &["5"], &[1, 1], 0), 1),
        (whole("DELETE FROM t WHERE id = $1::int", &["9"], &[0], 0), 1),
        (whole("INSERT INTO t VALUES ($1::int, 1, 'new')", &["77"], &[], 0), 1),
        (whole("SELECT count(*) FROM t", &[], &[1], 0), 1),
        (whole("SELECT nothing FROM t", &[], &[], 0), 1),
        (whole("SELECT id FROM t WHERE nothing = $1", &["1"], &[], 0), 1),
        (whole("BEGIN", &[], &[], 0), 1),
        (whole("", &[], &[], 0), 1),
    ]
}

/// Cursors, batches, pipelines and copies; the transaction of the cursor is open.
fn batches() -> Vec<(Vec<u8>, usize)> {
    let select = SELECT;
    let mut all = Vec::new();
    // A cursor: rows in parts, and the rest after another statement.
    let portal = [
        parse("s", select),
        bind("p", "s", &["1"], &[]),
        execute("p", 2),
        parse("u", "UPDATE t SET v = 8 WHERE id = 1"),
        bind("", "u", &[], &[]),
        execute("", 0),
        execute("p", 3),
        sync(),
    ];
    all.push((portal.concat(), 1));
    all.push(([execute("p", 0), message(b'C', b"Pp\0"), sync()].concat(), 1));
    all.push((whole("COMMIT", &[], &[], 0), 1));
    // A named statement, used again; and one that fails in the middle of a batch.
    let again = [
        bind("", "s", &["6"], &[1]),
        execute("", 0),
        bind("", "s", &["7"], &[]),
        execute("", 0),
        sync(),
    ];
    all.push((again.concat(), 1));
    let fails = [
        bind("", "s", &["6"], &[]),
        execute("", 0),
        parse("s", "SELECT 1"),
        bind("", "s", &["8"], &[]),
        execute("", 0),
        sync(),
        bind("", "s", &["8"], &[]),
        describe('P', ""),
        execute("", 0),
        sync(),
    ];
    all.push((fails.concat(), 2));
    // Many queries at once, without waiting.
    let pipeline: Vec<u8> = (1..40)
        .flat_map(|n| {
            if n % 3 == 0 {
                whole(select, &["5"], &[], 0)
            } else {
                query("SELECT * FROM t; UPDATE t SET v = v + 1 WHERE id = 2")
            }
        })
        .collect();
    all.push((pipeline, 39));
    all.push((message(b'C', b"Ss\0").into_iter().chain(sync()).collect(), 1));
    // A copy into a table.
    let mut copy = query("COPY nokey FROM STDIN");
    copy.extend(message(b'd', b"5\tfive\n6\tsix\n"));
    copy.extend(message(b'c', &[]));
    all.push((copy, 1));
    all.push((query("SELECT * FROM nokey; SELECT * FROM t ORDER BY id"), 1));
    all
}

/// The same without numbers that differ from run to run: those of tables in what rows look like,
/// and that of the process that notifies.
fn masked(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let length =
            u32::from_be_bytes([bytes[at + 1], bytes[at + 2], bytes[at + 3], bytes[at + 4]]);
        let end = at + 1 + length as usize;
        match bytes[at] {
            b'T' => {
                let mut place = at + 7;
                while place < end {
                    let name =
                        bytes[place..end].iter().position(|&byte| byte == 0).expect("a name");
                    bytes[place + name + 1..place + name + 5].fill(0);
                    place += name + 19;
                }
            }
            b'A' => bytes[at + 5..at + 9].fill(0),
            _ => {}
        }
        at = end;
    }
    bytes
}

#[test]
fn every_answer_is_byte_for_byte_the_one_without_the_proxy() {
    let Some(server) = Server::start() else { return };
    let folder = Folder::new("bytes");
    let reset = || {
        let drop = "DROP SCHEMA public CASCADE; CREATE SCHEMA public";
        server.psql(&["-c", "SET client_min_messages = warning", "-c", drop]);
    };
    let answers = |port: u16| -> Vec<Vec<u8>> {
        reset();
        let mut raw = Raw::connect(port);
        let all = simple().into_iter().chain(extended()).chain(batches());
        all.map(|(bytes, count)| {
            raw.send(&bytes);
            masked(&raw.answers(count))
        })
        .collect()
    };
    let direct = answers(server.port);
    let proxy = Proxy::start(&folder, server.port, "--record run");
    // Twice: the second time, every statement is known.
    for _ in 0..2 {
        let proxied = answers(proxy.port);
        for (place, (direct, proxied)) in direct.iter().zip(&proxied).enumerate() {
            let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert!(direct == proxied, "answer {place}:\n{}\n{}", shown(direct), shown(proxied));
        }
    }
    let (_, text, _) = proxy.end();
    assert!(text.contains("transactions committed"), "{text}");
    let (status, text) = super::server::output(folder.isolde("check run --level serializable"));
    assert_eq!(status, 0, "{text}");
}
