//! Redis and etcd do what every database must, in all their styles.
//!
//! The servers are private ones, started from the installed programs.

use isolde_harness::{Address, Database, Failure, conformance};

fn open(address: &str) -> Result<Box<dyn Database>, Failure> {
    isolde_drivers::open(&Address::parse(address).expect("an address"))
}

/// A private server, or `None` and a line that says so.
fn private(name: &str) -> Option<Box<dyn Database>> {
    match open(name) {
        Ok(database) => Some(database),
        Err(Failure::Refused(reason)) if reason.starts_with("no server") => {
            #[expect(clippy::print_stderr, reason = "a skipped test says so")]
            {
                eprintln!("skipped: no server ({name})");
            }
            None
        }
        Err(failure) => panic!("{failure}"),
    }
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
