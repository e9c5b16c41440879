//! Ends in the middle, and what is no message.

use super::raw::Raw;
use super::server::{Folder, Proxy, Server, output, run};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// What is answered to these bytes before the connection ends.
fn answer(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    stream.write_all(bytes).expect("it is open");
    let mut found = Vec::new();
    let _ = stream.read_to_end(&mut found);
    found
}

fn count(server: &Server, sql: &str) -> String {
    server.psql(&["-At", "-c", sql]).trim().to_owned()
}

#[test]
fn a_server_that_is_not_there_is_named_to_the_client() {
    let folder = Folder::new("gone");
    // Nobody listens at a port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("bound").port();
    drop(free);
    let proxy = Proxy::start(&folder, port, "--record run");
    let mut startup = 23u32.to_be_bytes().to_vec();
    startup.extend_from_slice(&196_608u32.to_be_bytes());
    startup.extend_from_slice(b"user\0someone\0\0");
    startup[3] = startup.len() as u8;
    let found = String::from_utf8_lossy(&answer(proxy.port, &startup)).into_owned();
    assert!(found.starts_with('E') && found.contains("08006"), "{found}");
    assert!(found.contains("the proxy cannot reach 127.0.0.1:"), "{found}");
    let (status, text, _) = proxy.end();
    assert_eq!(status, 0, "{text}");
}

#[test]
fn what_is_no_message_ends_its_connection_and_no_other() {
    let Some(server) = Server::start() else { return };
    let folder = Folder::new("noise");
    let proxy = Proxy::start(&folder, server.port, "--record run");
    let mut good = Raw::connect(proxy.port);
    // A startup without an end, one of no length, one of another version.
    for bytes in [&[0, 0, 0xff, 0xff, 0, 3, 0, 0][..], &[0, 0, 0, 3, 0, 3, 0, 0]] {
        let found = String::from_utf8_lossy(&answer(proxy.port, bytes)).into_owned();
        assert!(found.contains("08P01"), "{found}");
    }
    let other = [0, 0, 0, 9, 0, 9, 0, 0, 0];
    assert_eq!(answer(proxy.port, &other), answer(server.port, &other));
    // A message of a length that no message has.
    let mut bad = Raw::connect(proxy.port);
    bad.send(&[b'Q', 0xff, 0xff, 0xff, 0xff]);
    let mut found = Vec::new();
    let _ = bad.0.read_to_end(&mut found);
    assert!(String::from_utf8_lossy(&found).contains("08P01"), "{found:?}");
    assert_eq!(good.query("SELECT 1")[0], b'T');
    let (status, text, _) = proxy.end();
    assert_eq!(status, 0, "{text}");
}

#[test]
fn a_client_that_dies_leaves_an_abort_and_a_commit_without_an_answer_is_unknown() {
    let Some(server) = Server::start() else { return };
    let folder = Folder::new("dies");
    server.psql(&["-c", "CREATE TABLE t (id int PRIMARY KEY, v int)"]);
    let proxy = Proxy::start(&folder, server.port, "--record run");
    let mut dies = Raw::connect(proxy.port);
    dies.query("BEGIN");
    dies.query("INSERT INTO t VALUES (1, 1)");
    drop(dies);
    let mut killed = Raw::connect(proxy.port);
    killed.query("BEGIN");
    killed.query("INSERT INTO t VALUES (2, 2)");
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'";
    while count(&server, waits) != "1" {
        std::thread::sleep(Duration::from_millis(20));
    }
    // The server process ends before it can commit, or after: the client cannot know.
    killed.send(&super::raw::query("SELECT pg_terminate_backend(pg_backend_pid()); COMMIT"));
    let mut rest = Vec::new();
    let _ = killed.0.read_to_end(&mut rest);
    let (status, text, _) = proxy.end();
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("0 transactions committed, 1 aborted, 1 unknown"), "{text}");
    assert_eq!(count(&server, "SELECT count(*) FROM t"), "0");
}

#[test]
fn a_proxy_that_is_killed_leaves_a_recording_that_accuses_nobody() {
    let Some(server) = Server::start() else { return };
    let folder = Folder::new("killed");
    let (text, is_fine) = run("pgbench", server.port, &["-i", "-q", "postgres"], &[]);
    assert!(is_fine, "{text}");
    let proxy = Proxy::start(&folder, server.port, "--record run");
    let port = proxy.port;
    let bench = std::thread::spawn(move || {
        run("pgbench", port, &["-n", "-c", "4", "-T", "60", "postgres"], &[])
    });
    let log = folder.0.join("run/history.log");
    while std::fs::metadata(&log).map_or(0, |it| it.len()) < 200_000 {
        std::thread::sleep(Duration::from_millis(20));
    }
    proxy.kill();
    let _ = bench.join();
    let (status, text) = output(folder.isolde("check run --level serializable"));
    assert_eq!(status, 0, "{text}");
    let (status, text) = output(folder.isolde("advise run"));
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("no anomalies"), "{text}");
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_application() {
    let Some(server) = Server::start() else { return };
    let folder = Folder::new("full");
    server.psql(&["-c", "CREATE TABLE t (id int PRIMARY KEY, v int)"]);
    // A limit on the size of files stands for the disk.
    let program = env!("CARGO_BIN_EXE_isolde");
    let script = format!(
        "trap '' XFSZ; ulimit -f 1; exec {program} proxy postgres://127.0.0.1:{} \
         --listen 127.0.0.1:0 --record run",
        server.port
    );
    let proxy = Proxy::start_by(&folder, &script);
    let mut raw = Raw::connect(proxy.port);
    for id in 0..40 {
        let found = raw.query(&format!("INSERT INTO t VALUES ({id}, 1)"));
        assert_eq!(found[0], b'C', "{id}");
    }
    drop(raw);
    let (status, text, said) = proxy.end();
    assert_eq!(count(&server, "SELECT count(*) FROM t"), "40");
    assert_ne!(status, 0, "{text} {said}");
    assert!(said.contains("history.log"), "{said}");
    let (_, text) = output(folder.isolde("check run --level serializable"));
    assert!(!text.contains("violated"), "{text}");
}

#[test]
fn a_trigger_that_writes_elsewhere_is_found_by_those_who_read_that() {
    let Some(server) = Server::start() else { return };
    let folder = Folder::new("trigger");
    let schema = "CREATE TABLE t (id int PRIMARY KEY, v int); CREATE TABLE total (id int PRIMARY KEY, v int); \
        INSERT INTO t VALUES (1, 0); INSERT INTO total VALUES (1, 0); \
        CREATE FUNCTION tallied() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        BEGIN UPDATE total SET v = v + 1 WHERE id = 1; EXCEPTION WHEN division_by_zero THEN NULL; END; \
        RETURN NULL; END $$; \
        CREATE TRIGGER counts AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION tallied()";
    server.psql(&["-c", schema]);
    let proxy = Proxy::start(&folder, server.port, "--record run");
    let mut raw = Raw::connect(proxy.port);
    for sql in [
        "BEGIN",
        "SELECT v FROM total WHERE id = 1",
        "UPDATE t SET v = 1 WHERE id = 1",
        "SELECT v FROM total WHERE id = 1",
        "COMMIT",
        "SELECT v FROM total WHERE id = 1",
    ] {
        assert_ne!(raw.query(sql)[0], b'E', "{sql}");
    }
    drop(raw);
    let (status, text, _) = proxy.end();
    assert_eq!(status, 0, "{text}");
    let (status, text) = output(folder.isolde("check run --level serializable"));
    assert_eq!(status, 0, "{text}");
}
