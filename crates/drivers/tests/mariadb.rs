//! MariaDB and Galera do what every database must, and private servers come and go.

#![cfg(feature = "mysql")]

mod install;

use install::Needed;
use isolde_harness::conformance;
use isolde_harness::{Access, Address, Answer, Database, Failure, Needs, Request, RequestKind};

const MARIADB: Needed = Needed {
    file: "/usr/lib/galera/libgalera_smm.so",
    packages: &["mariadb-server", "galera-4", "rsync", "socat", "iproute2"],
};

fn open(address: &str) -> Result<Box<dyn Database>, Failure> {
    isolde_drivers::open(&Address::parse(address).expect("an address"))
}

#[test]
fn a_private_server_conforms() {
    if !install::is_there(&MARIADB) {
        return;
    }
    let server = open("mariadb").expect("a private server");
    assert_eq!(server.name(), "MariaDB");
    let address = format!("mariadb://root@{}/test", server.endpoints()[0].name);
    conformance::conform("maria", &|| open(&address).expect("the server runs"));
    let message = conformance::refuses(open(&(address.clone() + "?ssl-mode=required")), "");
    assert!(
        message.ends_with(
            "Client requires secure connection but server does not have this capability"
        ),
        "{message}"
    );
    let message = conformance::refuses(open(&address.replace("/test", "/absent")), "");
    assert!(message.ends_with("Unknown database 'absent' (1049)"), "{message}");
    let message = conformance::refuses(open(&address.replace("root@", "eve:hunter2@")), "hunter2");
    assert!(message.ends_with("(using password: YES) (1045)"), "{message}");
    drop(server);
    let message = conformance::refuses(open(&address), "");
    assert!(message.starts_with("cannot connect to 127.0.0.1:"), "{message}");
}

#[test]
fn a_wait_that_is_too_long_takes_back_the_whole_transaction() {
    if !install::is_there(&MARIADB) {
        return;
    }
    let mut database = open("mariadb").expect("a private server");
    let requests = vec![RequestKind::Read, RequestKind::Write];
    let needs = Needs { prefix: "isolde_wait_".to_owned(), requests };
    database.prepare(&needs).expect("tables");
    let mut first = database.connect(0, "repeatable-read").expect("a session");
    let mut second = database.connect(0, "repeatable-read").expect("a session");
    first.begin(Access::ReadWrite).expect("a transaction");
    first.execute(&Request::Write { key: 1, value: 1 }).expect("a write");
    second.begin(Access::ReadWrite).expect("a transaction");
    second.execute(&Request::Write { key: 2, value: 2 }).expect("a write");
    let waited = second.execute(&Request::Write { key: 1, value: 3 });
    assert_eq!(waited, Err(Failure::Aborted("1205".to_owned())));
    first.commit().expect("a commit");
    first.begin(Access::ReadOnly).expect("a transaction");
    let seen = [1, 2].map(|key| first.execute(&Request::Read { key }).expect("a read"));
    assert_eq!(seen, [Answer::Value(Some(1)), Answer::Value(None)]);
    first.commit().expect("a commit");
    drop((first, second));
    database.clean_up().expect("tables can be dropped");
}

#[test]
fn a_private_cluster_conforms() {
    if !install::is_there(&MARIADB) {
        return;
    }
    let cluster = open("galera").expect("a private cluster");
    let names: Vec<&str> =
        cluster.endpoints().iter().map(|endpoint| endpoint.name.as_str()).collect();
    assert_eq!(names.len(), 3);
    let address = format!("galera://root@{}/test?wsrep_sync_wait=7", names.join(","));
    conformance::conform("galera", &|| open(&address).expect("the cluster runs"));
}

#[test]
fn a_wrong_address_is_refused_with_what_was_expected() {
    let refusals = [
        (
            "mysql",
            "expected the address of a server, as in mysql://user:password@host:3306/database",
        ),
        (
            "tidb:",
            "expected the address of a server, as in tidb://user:password@host:4000/database",
        ),
        (
            "mariadb://h",
            "expected the name of a database behind the server, as in mariadb://user@host:3306/test",
        ),
        (
            "mariadb://h/d?ssl-mode=maybe",
            "expected ssl-mode disabled, required, verify-ca or verify-identity, found `maybe`",
        ),
        (
            "mariadb://h/d?ssl-mode=verify-ca&ssl-ca=/no/such/file",
            "expected a file of certificates in ssl-ca, found none at /no/such/file",
        ),
        (
            "galera://h/d?wsrep_sync_wait=9",
            "expected wsrep_sync_wait to be one of 0, 1, 2, 3, 4, 5, 6, 7, found `9`",
        ),
        (
            "mariadb://h/d?password=hunter2",
            "expected one of the options ssl-mode, ssl-ca, wsrep_sync_wait, tidb_txn_mode in the \
             address, found `password`",
        ),
    ];
    for (address, expected) in refusals {
        assert_eq!(conformance::refuses(open(address), "hunter2"), expected);
    }
}
