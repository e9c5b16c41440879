//! PostgreSQL does what every database must, and private servers come and go.

#![cfg(feature = "postgres")]

mod install;

use install::Needed;
use isolde_harness::conformance;
use isolde_harness::{
    Access, Address, Answer, Database, Failure, Filter, Identity, Needs, Past, Request,
    RequestKind, Session,
};

const POSTGRES: Needed =
    Needed { file: "/usr/lib/postgresql/*/bin/postgres", packages: &["postgresql"] };

fn open(address: &str) -> Result<Box<dyn Database>, Failure> {
    isolde_drivers::open(&Address::parse(address).expect("an address"))
}

#[test]
fn a_private_server_conforms() {
    if !install::is_there(&POSTGRES) {
        return;
    }
    let server = open("postgres").expect("a private server");
    let at = &server.endpoints()[0].name.clone();
    let address = format!("postgres://postgres@{at}/postgres");
    conformance::conform("pg", &|| open(&address).expect("the server runs"));
    let refused = |address: String| conformance::refuses(open(&address), "hunter2");
    let message = refused(format!("postgres://postgres@{at}/postgres?sslmode=require"));
    assert!(message.ends_with("server does not support TLS"), "{message}");
    let message = refused(format!("postgres://postgres@{at}/absent"));
    assert!(message.ends_with("database \"absent\" does not exist (3D000)"), "{message}");
    let message = refused(format!("postgres://eve:hunter2@{at}/postgres"));
    assert!(message.ends_with("role \"eve\" does not exist (28000)"), "{message}");
    drop(server);
    let message = refused(address);
    assert!(message.starts_with("cannot connect to 127.0.0.1:"), "{message}");
}

#[test]
fn a_standby_is_read_and_follows() {
    if !install::is_there(&POSTGRES) {
        return;
    }
    let mut database = open("postgres+standby").expect("private servers");
    let access: Vec<Access> = database.endpoints().iter().map(|endpoint| endpoint.access).collect();
    assert_eq!(access, [Access::ReadWrite, Access::ReadOnly]);
    let needs = Needs {
        prefix: "isolde_standby_".to_owned(),
        requests: vec![RequestKind::Read, RequestKind::Write],
    };
    database.prepare(&needs).expect("tables");
    let mut primary = database.connect(0, "repeatable-read").expect("a session");
    let mut standby = database.connect(1, "repeatable-read").expect("a session");
    primary.begin(Access::ReadWrite).expect("a transaction");
    primary.execute(&Request::Write { key: 1, value: 7 }).expect("a write");
    primary.commit().expect("a commit");
    let mut read = || {
        standby.begin(Access::ReadOnly).expect("a transaction");
        let answer = standby.execute(&Request::Read { key: 1 }).expect("a read");
        standby.commit().expect("a commit");
        answer
    };
    let followed = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        read() == Answer::Value(Some(7))
    });
    assert!(followed);
    drop(standby);
    drop(primary);
    database.clean_up().expect("tables can be dropped");
}

/// A client of the server at this address.
fn client(at: &str, user: &str) -> postgres::Client {
    let (host, port) = at.split_once(':').expect("host and port");
    let options = format!("host={host} port={port} user={user} dbname=postgres");
    postgres::Client::connect(&options, postgres::NoTls).expect("the server runs")
}

fn prepared(at: &str, user: &str, part: &str) -> Box<dyn Database> {
    let mut database = open(&format!("postgres://{user}@{at}/postgres")).expect("the server runs");
    let requests = vec![RequestKind::Read, RequestKind::Write, RequestKind::Select];
    let needs = Needs { prefix: format!("isolde_{part}_"), requests };
    database.prepare(&needs).expect("tables");
    database
}

#[test]
fn snapshots_name_the_transactions_that_were_seen() {
    if !install::is_there(&POSTGRES) {
        return;
    }
    let server = open("postgres").expect("a private server");
    let database = prepared(&server.endpoints()[0].name, "postgres", "seen");
    let evidence = database.evidence().expect("it can be asked");
    let write = |session: &mut dyn Session, key, value| {
        session.begin(Access::ReadWrite).expect("a transaction");
        session.execute(&Request::Write { key, value }).expect("a write");
        session.identity().expect("an identity").number.expect("it has written")
    };
    let connected = |isolation| database.connect(0, isolation).expect("a session");
    let (mut first, mut second) = (connected("serializable"), connected("serializable"));
    let mut reader = connected("repeatable-read");
    let committed = write(&mut *first, 1, 10);
    first.commit().expect("a commit");
    let open = write(&mut *second, 2, 20);
    reader.begin(Access::ReadWrite).expect("a transaction");
    let filter = Filter::Values { low: 1, high: 100 };
    let rows = reader.execute(&Request::Select { filter }).expect("rows");
    assert_eq!((rows, reader.snapshot()), (Answer::Rows(vec![(1, 10)]), None));
    second.commit().expect("a commit");
    let later = write(&mut *first, 3, 30);
    let Identity { number, snapshot: Some(seen) } = reader.identity().expect("an identity") else {
        panic!("repeatable read has a snapshot")
    };
    assert_eq!(number, None, "it has not written");
    assert_eq!([committed, open, later].map(|it| seen.sees(it)), [true, false, false]);
    reader.commit().expect("a commit");
    // At read committed each read has its own.
    let mut reader = connected("read-committed");
    reader.begin(Access::ReadWrite).expect("a transaction");
    for (filter, rows) in [(filter, 2), (Filter::Keys { low: 7, high: 9 }, 0)] {
        let Answer::Rows(found) = reader.execute(&Request::Select { filter }).expect("rows") else {
            panic!("rows are rows")
        };
        assert_eq!(found.len(), rows);
        let seen = reader.snapshot().expect("its own snapshot");
        assert_eq!([committed, open, later].map(|it| seen.sees(it)), [true, true, false]);
    }
    assert_eq!(reader.identity(), Ok(Identity::default()));
    drop((first, second, reader, evidence));
}

#[test]
fn a_slot_tells_of_the_past_and_what_is_missing_for_one_is_told() {
    if !install::is_there(&POSTGRES) {
        return;
    }
    let server = open("postgres").expect("a private server");
    let at = server.endpoints()[0].name.clone();
    let mut root = client(&at, "postgres");
    let create = "SELECT pg_create_logical_replication_slot($1, 'test_decoding')";
    root.execute(create, &[&"kept"]).expect("a slot");
    let database = prepared(&at, "postgres", "past");
    let mut session = database.connect(0, "serializable").expect("a session");
    session.begin(Access::ReadWrite).expect("a transaction");
    for value in [5, 6] {
        session.execute(&Request::Write { key: 1, value }).expect("a write");
    }
    session.commit().expect("a commit");
    let recall = |slot: Option<&str>| {
        let past = Past { slot: slot.map(str::to_owned), ..Past::default() };
        let told = database.recall(&past)?;
        Ok::<_, Failure>(told.iter().map(|it| (it.key, it.value)).collect::<Vec<_>>())
    };
    // Looking does not use it up.
    for _ in 0..2 {
        assert_eq!(recall(Some("kept")), Ok(vec![(1, Some(5)), (1, Some(6))]));
    }
    let refused = recall(None).expect_err("a slot is needed").to_string();
    assert!(
        refused.starts_with("expected --slot: PostgreSQL keeps its log for those"),
        "{refused}"
    );
    let refused = recall(Some("absent")).expect_err("there is none").to_string();
    assert!(refused.contains("\"absent\" does not exist"), "{refused}");
    assert!(refused.contains("create it before the run"), "{refused}");
    unusable_slots_are_told_apart(&at, &mut root, &|slot| {
        recall(Some(slot)).expect_err("it cannot be read").to_string()
    });
    for number in 1..8 {
        root.execute(create, &[&format!("full{number}")]).expect("a slot");
    }
    let refused = database.evidence().map(drop).expect_err("no slot is free").to_string();
    assert_eq!(
        refused,
        "cannot follow the log: all replication slots are in use (53400); drop one that nobody \
         needs: SELECT slot_name FROM pg_replication_slots WHERE NOT active, then SELECT \
         pg_drop_replication_slot('name'); or raise max_replication_slots and restart the server"
    );
    root.batch_execute("CREATE ROLE eve LOGIN; GRANT CREATE ON SCHEMA public TO eve").expect("eve");
    let limited = prepared(&at, "eve", "limited");
    let refused = limited.evidence().map(drop).expect_err("eve may not").to_string();
    assert!(
        refused
            .ends_with("; the user needs the attribute REPLICATION, which a superuser gives by ALTER ROLE name REPLICATION"),
        "{refused}"
    );
    drop((session, limited));
}

/// Slots that are there and cannot be read: each says what to do.
fn unusable_slots_are_told_apart(
    at: &str,
    root: &mut postgres::Client,
    refused: &dyn Fn(&str) -> String,
) {
    let mut other = client(at, "postgres");
    other
        .execute("SELECT pg_create_logical_replication_slot('busy', 'test_decoding', true)", &[])
        .expect("a slot");
    let text = refused("busy");
    assert!(text.contains("is active for PID") && text.contains("(55006)"), "{text}");
    assert!(text.contains("SELECT pg_terminate_backend(active_pid)"), "{text}");
    drop(other);
    root.execute("SELECT pg_create_physical_replication_slot('physical')", &[]).expect("a slot");
    let text = refused("physical");
    assert!(text.contains("(55000); expected a logical slot: SELECT pg_create"), "{text}");
    root.execute("SELECT pg_drop_replication_slot('physical')", &[]).expect("it was there");
}

#[test]
fn a_wrong_address_is_refused_with_what_was_expected() {
    let refusals = [
        ("postgres:", "expected the address of a server, as in postgres://user@host:5432/postgres"),
        (
            "cockroach",
            "expected the address of a server, as in cockroach://user@host:26257/defaultdb",
        ),
        (
            "postgres://h/d?sslmode=maybe",
            "expected sslmode disable, prefer, require, verify-ca or verify-full, found `maybe`",
        ),
        (
            "postgres://h/d?sslmode=verify-full",
            "expected sslrootcert, a file of certificates or `system`, beside sslmode verify-ca \
             and verify-full",
        ),
        (
            "postgres://h/d?password=hunter2",
            "expected one of the options sslmode, sslrootcert, sslcert, sslkey, synchronous_commit in \
             the address, found `password`",
        ),
        (
            "postgres+standby://h",
            "expected postgres+standby alone; servers that exist are \
             postgres://user@primary:5432,standby:5432/database",
        ),
    ];
    for (address, expected) in refusals {
        assert_eq!(conformance::refuses(open(address), "hunter2"), expected);
    }
    let message = conformance::refuses(
        open("postgres://h/d?sslmode=verify-ca&sslrootcert=/no/such/file"),
        "",
    );
    assert!(
        message.starts_with("cannot read certificates from sslrootcert /no/such/file: "),
        "{message}"
    );
}
