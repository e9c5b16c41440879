//! Test a database with real threads: `cargo test -p isolde --example threads`.
//!
//! Each client notes what it did and adds the transaction to a transcript when it is over. The
//! test fails with the transactions that contradict each other.

mod store;

use isolde::{History, Transcript, Txn, check};
use std::sync::Mutex;
use store::{Protects, Store};

const KEYS: [&str; 3] = ["x", "y", "z"];

/// Clients that read two keys and write one, all at the same time.
fn recorded(protects: Protects) -> History {
    let (store, transcript) = (Store::new(protects), Mutex::new(History::builder()));
    transcript.lock().expect("nobody panics").initial(0);
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (store, transcript) = (&store, &transcript);
            scope.spawn(move || {
                for number in 0..100 {
                    transact(store, transcript, client, number);
                }
            });
        }
    });
    transcript.into_inner().expect("nobody panics").finish().expect("a small history")
}

fn transact(store: &Store, transcript: &Mutex<Transcript>, client: usize, number: usize) {
    let [read, written] = [KEYS[number % 3], KEYS[(number + client) % 3]];
    // A value that nobody else writes says who wrote it.
    let value = 1 + i64::try_from(client * 1000 + number).expect("a small number");
    let mut open = store.begin();
    let txn = Txn::of(format!("client {client}"))
        .read(read, store.read(&mut open, read))
        .read(written, store.read(&mut open, written))
        .write(written, value);
    open.write(written, value);
    std::thread::yield_now();
    let is_committed = store.commit(open);
    let mut transcript = transcript.lock().expect("nobody panics");
    if is_committed { transcript.commit(txn) } else { transcript.abort(txn) }
}

#[allow(clippy::print_stdout, reason = "an example")]
fn main() {
    println!("{}", check(&recorded(Protects::Writes)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde::{Level, assert_level, assert_serializable};

    #[test]
    fn protecting_what_was_read_makes_it_serializable() {
        assert_serializable!(recorded(Protects::WritesAndReads));
    }

    #[test]
    fn protecting_what_was_written_makes_it_snapshot_isolation() {
        assert_level!(recorded(Protects::Writes), Level::SnapshotIsolation);
    }
}
