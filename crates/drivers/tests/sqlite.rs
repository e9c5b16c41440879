//! SQLite does what every database must.

#![cfg(feature = "sqlite")]

use isolde_harness::{Address, Database, conformance};
use std::path::PathBuf;

fn open(address: &str) -> Result<Box<dyn Database>, isolde_harness::Failure> {
    isolde_drivers::open(&Address::parse(address).expect("an address"))
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()))
}

#[test]
fn a_temporary_file_conforms() {
    conformance::conform("memory", &|| open("sqlite").expect("SQLite is compiled in"));
}

#[test]
fn a_file_of_the_user_conforms_and_stays() {
    let path = path("users.db");
    std::fs::write(&path, b"").expect("a writable folder");
    let address = format!("sqlite:{}", path.display());
    conformance::conform("file", &|| open(&address).expect("a file"));
    assert!(path.exists(), "only tables of ours are removed");
    std::fs::remove_file(&path).expect("the file is there");
}

#[test]
fn a_file_that_we_created_is_gone_afterwards() {
    let path = path("ours.db");
    let database = open(&format!("sqlite:{}", path.display())).expect("a new file");
    assert!(path.exists());
    drop(database);
    assert!(!path.exists());
}

#[test]
fn what_cannot_be_opened_is_refused() {
    let message = conformance::refuses(open("sqlite:/no/such/folder/file.db"), "");
    assert!(message.starts_with("cannot use /no/such/folder/file.db: "), "{message}");
    let message = conformance::refuses(open("sqlite://user:hunter2@host/file"), "hunter2");
    assert_eq!(
        message,
        "expected the path of a file, as in sqlite:/path/to/file.db, found a server's address"
    );
    let path = path("text");
    std::fs::write(&path, "this is no database, it is only a longer text").expect("writable");
    let message = conformance::refuses(open(&format!("sqlite:{}", path.display())), "");
    assert!(message.ends_with("file is not a database"), "{message}");
    std::fs::remove_file(&path).expect("the file is there");
    let message = conformance::refuses(open("oracle://host"), "");
    assert!(message.ends_with("found oracle"), "{message}");
}
