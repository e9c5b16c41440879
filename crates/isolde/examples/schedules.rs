//! Test a database in all schedules: `cargo test -p isolde --example schedules`.
//!
//! Threads may never meet in the one bad moment. A simulator tries every order in which the steps
//! of a few transactions can happen, and asks about each history. Whoever uses `shuttle` or
//! `turmoil` asks in the same way at the end of each of their runs.

mod store;

use isolde::{History, Level, Txn, check};
use store::{OpenTxn, Protects, Store};

/// A client that checks one key and writes another.
struct Client {
    name: &'static str,
    checked: &'static str,
    written: &'static str,
}

/// Two doctors: each goes home (1) if the other one is on call (0).
const DOCTORS: [Client; 2] = [
    Client { name: "alice", checked: "bob", written: "alice" },
    Client { name: "bob", checked: "alice", written: "bob" },
];

/// Begin, check, and write with the commit.
const STEPS: usize = 3;

/// All orders of the steps of two clients, as the client whose turn it is.
fn schedules() -> Vec<Vec<usize>> {
    fn extend(prefix: &mut Vec<usize>, left: [usize; 2], found: &mut Vec<Vec<usize>>) {
        if left == [0, 0] {
            found.push(prefix.clone());
        }
        for client in 0..2 {
            if left[client] > 0 {
                let mut left = left;
                left[client] -= 1;
                prefix.push(client);
                extend(prefix, left, found);
                prefix.pop();
            }
        }
    }
    let mut found = Vec::new();
    extend(&mut Vec::new(), [STEPS; 2], &mut found);
    found
}

/// How far a client is.
enum Progress {
    Waiting,
    Begun(OpenTxn),
    /// With what it noted, and the value that it saw.
    Checked(OpenTxn, Txn, i64),
}

/// What the clients saw in one schedule.
fn recorded(protects: Protects, schedule: &[usize]) -> History {
    let (store, mut transcript) = (Store::new(protects), History::builder());
    transcript.initial(0);
    let mut clients = [Progress::Waiting, Progress::Waiting];
    for &turn in schedule {
        let client = &DOCTORS[turn];
        clients[turn] = match std::mem::replace(&mut clients[turn], Progress::Waiting) {
            Progress::Waiting => Progress::Begun(store.begin()),
            Progress::Begun(mut txn) => {
                let seen = store.read(&mut txn, client.checked);
                Progress::Checked(txn, Txn::of(client.name).read(client.checked, seen), seen)
            }
            Progress::Checked(mut txn, mut noted, seen) => {
                if seen == 0 {
                    txn.write(client.written, 1);
                    noted = noted.write(client.written, 1);
                }
                if store.commit(txn) {
                    transcript.commit(noted);
                } else {
                    transcript.abort(noted);
                }
                Progress::Waiting
            }
        };
    }
    transcript.finish().expect("a small history")
}

#[allow(clippy::print_stdout, reason = "an example")]
fn main() {
    for schedule in schedules() {
        let answer = check(&recorded(Protects::Writes, &schedule));
        println!("{schedule:?}: serializable: {:?}", answer.holds(Level::Serializable));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde::assert_serializable;

    #[test]
    fn no_schedule_breaks_a_store_that_protects_what_was_read() {
        for schedule in schedules() {
            assert_serializable!(recorded(Protects::WritesAndReads, &schedule));
        }
    }

    #[test]
    fn both_doctors_go_home_in_every_schedule_where_they_overlap() {
        for schedule in schedules() {
            let answer = check(&recorded(Protects::Writes, &schedule));
            assert_eq!(answer.holds(Level::SnapshotIsolation), Some(true), "{schedule:?}");
            // One after another, and never at the same time.
            let is_serial = schedule[..STEPS].iter().all(|&turn| turn == schedule[0]);
            assert_eq!(answer.holds(Level::Serializable), Some(is_serial), "{schedule:?}");
        }
    }
}
