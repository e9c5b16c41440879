//! `DuckDB` does what every database must.

#![cfg(feature = "duckdb")]

use isolde_harness::{
    Access, Address, Answer, Database, Failure, Filter, Needs, Request, RequestKind, conformance,
};

fn open(address: &str) -> Result<Box<dyn Database>, Failure> {
    isolde_drivers::open(&Address::parse(address).expect("an address"))
}

#[test]
fn a_database_in_memory_conforms() {
    conformance::conform("memory", &|| open("duckdb").expect("it is linked"));
}

#[test]
fn a_new_file_conforms_and_is_gone_afterwards() {
    let path = format!("{}/duckdb-{}.db", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let address = format!("duckdb:{path}");
    conformance::conform("file", &|| {
        // The suite opens a second one beside the first.
        open(&address).or_else(|_| open("duckdb")).expect("it is linked")
    });
    assert!(!std::path::Path::new(&path).exists());
    std::fs::write(&path, "not ours").expect("a writable folder");
    let message = conformance::refuses(open(&address), "");
    assert_eq!(message, format!("expected a path where nothing is yet, found {path}"));
    std::fs::remove_file(&path).expect("it is there");
}

#[test]
fn what_cannot_be_opened_is_refused() {
    let message = conformance::refuses(open("duckdb:/no/such/folder/file.db"), "");
    assert!(message.starts_with("cannot use /no/such/folder/file.db: "), "{message}");
    let message = conformance::refuses(open("duckdb://user:hunter2@host/file"), "hunter2");
    assert_eq!(
        message,
        "expected the path of a new file, as in duckdb:/path/to/new/file.db, found a server's \
         address"
    );
}

/// How the transactions of two sessions that both take a snapshot, and then write, end.
fn both_write(first: &Request, second: &Request) -> [Result<(), Failure>; 2] {
    let mut database = open("duckdb").expect("it is linked");
    let requests = RequestKind::ALL.to_vec();
    database.prepare(&Needs { prefix: "isolde_pair_".into(), requests }).expect("tables");
    let mut sessions = [(); 2].map(|()| database.connect(0, "snapshot").expect("a connection"));
    sessions[0].begin(Access::ReadWrite).expect("a transaction can begin");
    for key in [1, 2] {
        sessions[0].execute(&Request::Write { key, value: 10 }).expect("nobody else writes");
        sessions[0].execute(&Request::Append { key, value: 10 }).expect("nobody else writes");
    }
    sessions[0].commit().expect("nobody else writes");
    for session in &mut sessions {
        session.begin(Access::ReadWrite).expect("a transaction can begin");
        session.execute(&Request::Range { low: 0, high: 9 }).expect("rows can be read");
    }
    let mut requests = [first, second].into_iter();
    let wrote = sessions
        .each_mut()
        .map(|session| session.execute(requests.next().expect("one for each")).map(|_| ()));
    let mut wrote = wrote.into_iter();
    sessions
        .each_mut()
        .map(|session| wrote.next().expect("one for each").and_then(|()| session.commit()))
}

#[test]
fn who_writes_what_another_has_written_is_aborted() {
    let aborted = |reason: &str| Err(Failure::Aborted(reason.to_owned()));
    let write = |key, value| Request::Write { key, value };
    assert_eq!(both_write(&write(1, 20), &write(1, 30)), [Ok(()), aborted("conflict")]);
    assert_eq!(both_write(&write(3, 20), &write(3, 30)), [Ok(()), aborted("constraint")]);
    let append = |value| Request::Append { key: 1, value };
    assert_eq!(both_write(&append(20), &append(30)), [Ok(()), aborted("conflict")]);
    let delete = Request::Delete { key: 1 };
    assert_eq!(both_write(&delete, &delete), [Ok(()), aborted("conflict")]);
}

#[test]
fn write_skew_commits() {
    let write = |key| Request::Write { key, value: 20 };
    assert_eq!(both_write(&write(1), &write(2)), [Ok(()), Ok(())]);
}

/// Against what is promised: the claim has it as a deviation. If this fails, it is mended.
#[test]
fn a_delete_loses_what_an_upsert_has_changed() {
    let mut database = open("duckdb").expect("it is linked");
    let requests = RequestKind::ALL.to_vec();
    database.prepare(&Needs { prefix: "isolde_lost_".into(), requests }).expect("tables");
    let mut sessions = [(); 2].map(|()| database.connect(0, "snapshot").expect("a connection"));
    let [writer, deleter] = &mut sessions;
    let write = |value| Request::Write { key: 1, value };
    writer.begin(Access::ReadWrite).expect("a transaction can begin");
    writer.execute(&write(10)).expect("nobody else writes");
    writer.commit().expect("nobody else writes");
    for session in [&mut *writer, &mut *deleter] {
        session.begin(Access::ReadWrite).expect("a transaction can begin");
        session.execute(&Request::Read { key: 1 }).expect("rows can be read");
    }
    writer.execute(&write(20)).expect("nobody else has written");
    writer.commit().expect("nobody else has written");
    let delete = Request::DeleteWhere { filter: Filter::Values { low: 10, high: 19 } };
    assert_eq!(deleter.execute(&delete), Ok(Answer::Rows(vec![(1, 10)])));
    assert_eq!(deleter.commit(), Ok(()));
}
