//! PostgreSQL does what every database must, and private servers come and go.

#![cfg(feature = "postgres")]

mod install;

use install::Needed;
use isolde_harness::conformance;
use isolde_harness::{Access, Address, Answer, Database, Failure, Needs, Request, RequestKind};

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
