//! MariaDB and Galera do what every database must, and private servers come and go.

#![cfg(feature = "mysql")]

mod install;

use install::Needed;
use isolde_harness::conformance;
use isolde_harness::{
    Access, Address, Answer, Database, Evidence, Failure, Fault, Filter, Needs, Request,
    RequestKind,
};
use mysql::prelude::Queryable;

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

/// Servers are started without `fsync`: what a process has written, the system keeps.
#[test]
fn what_was_committed_survives_a_killed_server() {
    if !install::is_there(&MARIADB) {
        return;
    }
    let mut database = open("mariadb").expect("a private server");
    let requests = vec![RequestKind::Read, RequestKind::Write];
    let needs = Needs { prefix: "isolde_kill_".to_owned(), requests };
    database.prepare(&needs).expect("tables");
    let mut session = database.connect(0, "serializable").expect("a session");
    for value in 1..=100 {
        session.begin(Access::ReadWrite).expect("a transaction");
        session.execute(&Request::Write { key: 1, value }).expect("a write");
        session.commit().expect("a commit");
    }
    database.disturb(Fault::Kill, 0).expect("a private server can be killed");
    drop(session);
    database.recover(Fault::Kill, 0).expect("the server comes back");
    let mut session = database.connect(0, "serializable").expect("a session");
    session.begin(Access::ReadOnly).expect("a transaction");
    let seen = session.execute(&Request::Read { key: 1 }).expect("a read");
    assert_eq!(seen, Answer::Value(Some(100)));
    session.commit().expect("a commit");
    drop(session);
    database.clean_up().expect("tables can be dropped");
}

/// Updates read their rows again to tell them. A plain read did so, and took the snapshot of
/// its transaction, which no update takes: a watch called later reads stale.
#[test]
fn an_update_of_several_rows_takes_no_snapshot() {
    if !install::is_there(&MARIADB) {
        return;
    }
    let mut database = open("mariadb").expect("a private server");
    let requests = vec![
        RequestKind::Read,
        RequestKind::Write,
        RequestKind::UpdateRange,
        RequestKind::UpdateWhere,
    ];
    let needs = Needs { prefix: "isolde_update_".to_owned(), requests };
    database.prepare(&needs).expect("tables");
    for (round, isolation) in ["repeatable-read", "repeatable-read-snapshot"].iter().enumerate() {
        let first = (round as u64 + 1) << 40;
        let filter = Filter::Keys { low: 1, high: 2 };
        let updates = [
            Request::UpdateRange { low: 1, high: 2, first: first + 1000 },
            Request::UpdateWhere { filter, first: first + (1 << 20) },
        ];
        for (place, update) in updates.into_iter().enumerate() {
            let mut one = database.connect(0, isolation).expect("a session");
            let mut two = database.connect(0, isolation).expect("a session");
            one.begin(Access::ReadWrite).expect("a transaction");
            for key in 1..=60 {
                let value = first + 100 * place as u64 + key;
                one.execute(&Request::Write { key, value }).expect("a write");
            }
            one.commit().expect("a commit");
            one.begin(Access::ReadWrite).expect("a transaction");
            let Ok(Answer::Rows(rows)) = one.execute(&update) else { panic!("rows: {update:?}") };
            assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [1, 2], "{update:?}");
            two.begin(Access::ReadWrite).expect("a transaction");
            let value = first + 5000 + place as u64;
            two.execute(&Request::Write { key: 50, value }).expect("a write");
            two.commit().expect("a commit");
            let seen = one.execute(&Request::Read { key: 50 }).expect("a read");
            assert_eq!(seen, Answer::Value(Some(value)), "{isolation}, {update:?}");
            one.commit().expect("a commit");
        }
    }
    database.clean_up().expect("tables can be dropped");
}

/// The version of each key that a database told, in its order.
fn told(evidence: &mut dyn Evidence) -> Vec<(u64, Option<u64>)> {
    let mut found = Vec::new();
    evidence.collect(&mut found).expect("the log can be read");
    found.into_iter().map(|installed| (installed.key, installed.value)).collect()
}

#[test]
fn the_binary_log_tells_every_version_in_its_order() {
    if !install::is_there(&MARIADB) {
        return;
    }
    let mut database = open("mariadb").expect("a private server");
    let requests = vec![RequestKind::Read, RequestKind::Write, RequestKind::UpdateRange];
    let needs = Needs { prefix: "isolde_told_".to_owned(), requests };
    database.prepare(&needs).expect("tables");
    let mut evidence = database.evidence().expect("a log");
    let mut session = database.connect(0, "repeatable-read").expect("a session");
    let mut transaction = |requests: &[Request], is_kept: bool| {
        session.begin(Access::ReadWrite).expect("a transaction");
        for request in requests {
            session.execute(request).expect("an answer");
        }
        if is_kept { session.commit() } else { session.rollback() }.expect("an end");
    };
    let write = |key, value| Request::Write { key, value };
    transaction(&[write(1, 10), write(2, 11), write(1, 12)], true);
    transaction(&[write(1, 13), Request::Delete { key: 2 }], false);
    assert_eq!(told(&mut *evidence), [(1, Some(10)), (2, Some(11)), (1, Some(12))]);
    assert_eq!(told(&mut *evidence), []);
    transaction(&[Request::Delete { key: 1 }, Request::Insert { key: 1, value: 14 }], true);
    transaction(&[Request::UpdateRange { low: 1, high: 5, first: 1 << 40 }], true);
    let large = 1 << 40;
    assert_eq!(
        told(&mut *evidence),
        [(1, None), (1, Some(14)), (1, Some(large)), (2, Some(large + 1))]
    );
    drop((session, evidence));
    database.clean_up().expect("tables can be dropped");
}

#[test]
fn a_snapshot_sees_what_was_in_the_log_when_it_was_taken() {
    if !install::is_there(&MARIADB) {
        return;
    }
    let mut database = open("mariadb").expect("a private server");
    let requests = vec![RequestKind::Write, RequestKind::Select, RequestKind::UpdateWhere];
    let needs = Needs { prefix: "isolde_seen_".to_owned(), requests };
    database.prepare(&needs).expect("tables");
    let mut evidence = database.evidence().expect("a log");
    let connect = || database.connect(0, "repeatable-read-snapshot").expect("a session");
    let (mut reader, mut writer) = (connect(), connect());
    let mut write = |key, value| {
        writer.begin(Access::ReadWrite).expect("a transaction");
        writer.execute(&Request::Write { key, value }).expect("nobody else writes");
        writer.commit().expect("nobody else writes");
    };
    let filter = Filter::Values { low: 0, high: 99 };
    write(1, 10);
    reader.begin(Access::ReadWrite).expect("a transaction");
    write(2, 11);
    let found = reader.execute(&Request::Select { filter }).expect("an answer");
    assert_eq!(found, Answer::Rows(vec![(1, 10)]));
    let seen = reader.snapshot().expect("it is told");
    // What changes rows looks at the latest ones, and at no snapshot.
    let _ = reader.execute(&Request::UpdateWhere { filter, first: 1 << 40 });
    assert_eq!(reader.snapshot(), None);
    reader.rollback().ok();
    assert_eq!(told(&mut *evidence), [(1, Some(10)), (2, Some(11))]);
    let numbers = evidence.numbers();
    let sees: Vec<_> = numbers.iter().map(|it| (it.key, it.value, seen.sees(it.number))).collect();
    assert_eq!(sees, [(1, 10, true), (2, 11, false)]);
    drop((reader, writer, evidence));
    database.clean_up().expect("tables can be dropped");
}

/// What was read is locked until the end, so it stands in the log as it was read.
#[test]
fn what_is_locked_was_in_the_log_before_the_commit() {
    if !install::is_there(&MARIADB) {
        return;
    }
    let mut database = open("mariadb").expect("a private server");
    let requests = vec![RequestKind::Write, RequestKind::Select];
    let needs = Needs { prefix: "isolde_locks_".to_owned(), requests };
    database.prepare(&needs).expect("tables");
    let mut evidence = database.evidence().expect("a log");
    let connect = || database.connect(0, "serializable").expect("a session");
    let (mut reader, mut writer) = (connect(), connect());
    let mut write = |keys: std::ops::RangeInclusive<u64>, more: u64| {
        writer.begin(Access::ReadWrite).expect("a transaction");
        for key in keys {
            let write = Request::Write { key, value: key + more };
            writer.execute(&write).expect("nobody holds this row");
        }
        writer.commit().expect("nobody holds this row");
    };
    // So many that nobody reads all of them for the first two.
    write(1..=60, 10);
    reader.begin(Access::ReadWrite).expect("a transaction");
    let filter = Filter::Keys { low: 1, high: 2 };
    let found = reader.execute(&Request::Select { filter }).expect("an answer");
    assert_eq!(found, Answer::Rows(vec![(1, 11), (2, 12)]));
    write(50..=50, 100);
    let seen = reader.identity().expect("an answer").snapshot.expect("it is told");
    reader.commit().expect("a commit");
    write(1..=1, 200);
    told(&mut *evidence);
    let numbers = evidence.numbers();
    let sees: Vec<_> = numbers.iter().map(|it| (it.value, seen.sees(it.number))).collect();
    assert_eq!(sees, [(11, true), (150, true), (201, false)]);
    drop((reader, writer, evidence));
    database.clean_up().expect("tables can be dropped");
}

/// Runs statements as root.
fn administer(server: &str, statements: &[&str]) {
    let (host, port) = server.split_once(':').expect("host and port");
    let options = mysql::OptsBuilder::new()
        .ip_or_hostname(Some(host))
        .tcp_port(port.parse().expect("a port"))
        .prefer_socket(false)
        .user(Some("root"));
    let mut conn = mysql::Conn::new(options).expect("root may do everything");
    for statement in statements {
        conn.query_drop(statement).expect(statement);
    }
}

const GRANT: &str = "; the user needs two privileges: GRANT REPLICATION SLAVE, REPLICATION CLIENT \
                     ON *.* TO name (MariaDB calls the second one BINLOG MONITOR)";

/// Settings that leave something out of the log, what to set them to, and what is said.
const LACKING: &[(&str, &str, &str, &str)] = &[
    (
        "binlog_format",
        "STATEMENT",
        "ROW",
        "expected binlog_format to be ROW for --white-box, found STATEMENT: the log has \
         statements and not the rows that they changed; SET GLOBAL binlog_format = ROW",
    ),
    (
        "binlog_row_image",
        "MINIMAL",
        "FULL",
        "expected binlog_row_image to be FULL for --white-box, found MINIMAL: the log has \
         parts of rows; SET GLOBAL binlog_row_image = FULL",
    ),
    (
        "log_bin_compress",
        "ON",
        "OFF",
        "expected log_bin_compress to be OFF for --white-box, found ON: SET GLOBAL \
         log_bin_compress = OFF",
    ),
];

#[test]
fn a_binary_log_that_lacks_something_is_refused_with_what_to_do() {
    if !install::is_there(&MARIADB) {
        return;
    }
    let server = open("mariadb").expect("a private server");
    let at = server.endpoints()[0].name.clone();
    let requests = vec![RequestKind::Read, RequestKind::Write];
    let needs = Needs { prefix: "isolde_lacks_".to_owned(), requests };
    let evidence = |user: &str| {
        let mut database = open(&format!("mariadb://{user}@{at}/test")).expect("the server runs");
        database.prepare(&needs).expect("tables");
        database.evidence().map(|evidence| (database, evidence))
    };
    let refused = |user: &str| match evidence(user) {
        Err(Failure::Refused(message)) => message,
        Err(other) => panic!("expected a refusal, found {other}"),
        Ok(_) => panic!("expected a refusal"),
    };
    for &(variable, wrong, right, expected) in LACKING {
        administer(&at, &[&format!("SET GLOBAL {variable} = {wrong}")]);
        assert_eq!(refused("root"), expected);
        administer(&at, &[&format!("SET GLOBAL {variable} = {right}")]);
    }
    administer(&at, &["CREATE USER eve@'127.0.0.1'", "GRANT ALL ON test.* TO eve@'127.0.0.1'"]);
    let denied = |reason: &str| format!("cannot read the binary log: Access denied{reason}{GRANT}");
    assert_eq!(
        refused("eve"),
        denied(
            "; you need (at least one of) the SUPER, BINLOG MONITOR privilege(s) for this operation (1227)"
        )
    );
    administer(&at, &["GRANT REPLICATION CLIENT ON *.* TO eve@'127.0.0.1'"]);
    assert_eq!(refused("eve"), denied(" for user 'eve'@'127.0.0.1' (using password: NO) (1045)"));
    administer(&at, &["GRANT REPLICATION SLAVE ON *.* TO eve@'127.0.0.1'"]);
    let (database, mut evidence) = evidence("eve").expect("now it is enough");
    administer(&at, &["FLUSH BINARY LOGS", "FLUSH BINARY LOGS"]);
    // What was read goes on in the next file.
    assert_eq!(told(&mut *evidence), []);
    administer(&at, &["FLUSH BINARY LOGS", "RESET MASTER"]);
    let lost = evidence.collect(&mut Vec::new()).expect_err("it is gone");
    assert_eq!(
        lost.to_string(),
        "cannot read the binary log: Could not find first log file name in binary log index file \
         (1236); a part of the binary log was removed before it was read: do not purge it during \
         the run, and let binlog_expire_logs_seconds be longer"
    );
    drop(database);
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
    let mut database = open(&address).expect("the cluster runs");
    let requests = vec![RequestKind::Read, RequestKind::Write];
    let needs = Needs { prefix: "isolde_silent_".to_owned(), requests };
    database.prepare(&needs).expect("tables");
    let refused = database.evidence().map(drop).expect_err("it has no log");
    assert_eq!(
        refused.to_string(),
        "expected log_bin to be ON for --white-box, found OFF: start the server with --log-bin"
    );
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
            "expected one of the options ssl-mode, ssl-ca, ssl-cert, ssl-key, wsrep_sync_wait, \
             tidb_txn_mode in the address, found `password`",
        ),
    ];
    for (address, expected) in refusals {
        assert_eq!(conformance::refuses(open(address), "hunter2"), expected);
    }
}
