//! Redis and etcd do what every database must, in all their styles.
//!
//! The servers are private ones, started from the installed programs.

#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod install;

use install::Needed;
use isolde_harness::{Address, Database, Failure, conformance};

fn open(address: &str) -> Result<Box<dyn Database>, Failure> {
    isolde_drivers::open(&Address::parse(address).expect("an address"))
}

const REDIS: Needed = Needed { file: "/usr/bin/redis-server", packages: &["redis-server"] };
const ETCD: Needed = Needed { file: "/usr/bin/etcd", packages: &["etcd-server"] };

/// A private server, or `None` and a line that says so.
fn private(name: &str) -> Option<Box<dyn Database>> {
    let needed = if name.starts_with("redis") { REDIS } else { ETCD };
    install::is_there(&needed).then(|| open(name).expect("the server can be started"))
}

/// The suite, on the servers of a private database: that is the first that is opened,
/// and others find its servers under the address.
fn conforms(name: &str, scheme: &str, options: &str) {
    let Some(database) = private(name) else { return };
    let hosts: Vec<&str> = database.endpoints().iter().map(|it| it.name.as_str()).collect();
    let address = format!("{scheme}://{}{options}", hosts.join(","));
    conformance::conform(scheme, &|| open(&address).expect("the server runs"));
}

#[test]
fn redis_conforms_with_watched_keys() {
    conforms("redis", "redis", "");
}

#[test]
fn redis_conforms_with_scripts_and_a_replica() {
    conforms("redis+replica", "redis", "/3?style=lua");
}

#[test]
fn etcd_conforms_request_by_request() {
    conforms("etcd", "etcd", "");
}

#[test]
fn etcd_conforms_with_whole_transactions_on_a_cluster() {
    conforms("etcd+cluster", "etcd", "?style=txn");
}

#[test]
fn the_simulated_database_conforms_at_every_level() {
    for level in isolde_harness::Isolation::ALL {
        let address = format!("sim://{}", level.name());
        conformance::conform("sim", &|| open(&address).expect("a level"));
    }
    conformance::conform("all", &|| open("sim").expect("all levels"));
}

#[cfg(all(feature = "fjall", feature = "redb"))]
#[test]
fn stores_that_are_compiled_in_conform_and_leave_nothing() {
    for name in ["fjall", "redb"] {
        conformance::conform(name, &|| open(name).expect("it is compiled in"));
        let path = format!("{}/{name}-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
        let address = format!("{name}:{path}");
        conformance::conform(name, &|| {
            // The suite opens a second one beside the first.
            open(&address).or_else(|_| open(name)).expect("it is compiled in")
        });
        assert!(!std::path::Path::new(&path).exists());
        std::fs::write(&path, "not ours").expect("a writable folder");
        let message = conformance::refuses(open(&address), "");
        assert_eq!(message, format!("expected a path where nothing is yet, found {path}"));
        std::fs::remove_file(&path).expect("it is there");
        let message = conformance::refuses(open(&format!("{name}:/no/such/folder/store")), "");
        assert!(message.starts_with("the store cannot be used: "), "{message}");
    }
}

/// The example of the documentation, which is a database of its own for each file.
#[test]
fn a_program_that_speaks_the_protocol_conforms() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: no python3");
        return;
    }
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/databases/exec_sqlite.py");
    let file = format!("{}/exec-{}.db", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let address = format!("exec:python3 {program} {file}");
    conformance::conform("exec", &|| open(&address).expect("the program answers"));
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{file}{suffix}"));
    }
}

#[test]
fn a_program_that_does_not_speak_the_protocol_is_refused() {
    let refused = |address: &str| conformance::refuses(open(address), "");
    assert!(refused("exec:/no/such/program").starts_with("cannot start /no/such/program: "));
    assert_eq!(refused("exec:"), "expected a program, as in exec:python3 database.py file");
    assert_eq!(refused("exec:true"), "the program `true` ended (exit status: 0)");
    assert_eq!(refused("exec:false now"), "the program `false now` ended (exit status: 1)");
    assert!(refused("exec:echo hello").starts_with("expected a line of JSON"));
}

#[test]
fn what_cannot_be_opened_is_refused() {
    let refused = |address: &str| conformance::refuses(open(address), "hunter2");
    let message = refused("redis://u:hunter2@127.0.0.1:1");
    assert!(message.starts_with("cannot connect to 127.0.0.1:1: "), "{message}");
    let message = refused("etcd://u:hunter2@127.0.0.1:1");
    assert!(message.starts_with("cannot connect to 127.0.0.1:1: "), "{message}");
    assert_eq!(refused("redis://127.0.0.1/x"), "expected the number of a database, found x");
    assert_eq!(refused("redis://127.0.0.1/?style=fast"), "expected style watch or lua, found fast");
    assert_eq!(
        refused("etcd://127.0.0.1/?style=fast"),
        "expected style interactive or txn, found fast"
    );
    assert_eq!(
        refused("sim://causal?bug=long-fork"),
        "expected a level that can have long-fork, found causal"
    );
    assert!(refused("sim://no-such-level").ends_with("found no-such-level"));
    assert!(refused("sim://causal?bug=none").ends_with("found none"));
}

#[test]
fn a_refused_login_is_a_message_without_the_password() {
    let Some(database) = private("redis") else { return };
    let name = database.endpoints()[0].name.clone();
    let message = conformance::refuses(open(&format!("redis://:hunter2@{name}")), "hunter2");
    assert!(message.contains("without any password configured"), "{message}");
    let message = conformance::refuses(open(&format!("redis://bob:hunter2@{name}")), "hunter2");
    assert!(message.contains("WRONGPASS"), "{message}");
}
