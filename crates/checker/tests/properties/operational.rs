//! The definitions agree with a database that does what the level says.
//!
//! A transaction takes a copy of the store when it begins, reads from that and
//! from its own writes, and applies its writes when it commits. Under snapshot
//! isolation it fails if somebody else wrote one of its keys meanwhile; under
//! serializability nothing happens between begin and commit. A small history
//! satisfies a level if and only if some interleaving of begins and commits
//! explains all its reads.

use crate::support::{Size, every_history, history};
use isolde_checker::Level;
use isolde_checker::reference::{Reference, decide};
use isolde_history::{History, KeyId, OpKind, SessionId, Value};

/// What a database of a level does.
#[derive(Clone, Copy)]
struct Database {
    level: Level,
    begin_and_commit: Pace,
    writers_of_a_key: Conflict,
    sessions: Sessions,
}

#[derive(Clone, Copy, PartialEq)]
enum Pace {
    Together,
    Apart,
}

#[derive(Clone, Copy, PartialEq)]
enum Conflict {
    SecondFails,
    BothCommit,
}

#[derive(Clone, Copy, PartialEq)]
enum Sessions {
    InOrder,
    InAnyOrder,
}

const fn database(level: Level, pace: Pace, conflict: Conflict, sessions: Sessions) -> Database {
    Database { level, begin_and_commit: pace, writers_of_a_key: conflict, sessions }
}

#[rustfmt::skip]
const DATABASES: [Database; 5] = [
    database(Level::Prefix, Pace::Apart, Conflict::BothCommit, Sessions::InOrder),
    database(Level::SnapshotIsolation, Pace::Apart, Conflict::SecondFails, Sessions::InAnyOrder),
    database(Level::SessionSnapshotIsolation, Pace::Apart, Conflict::SecondFails, Sessions::InOrder),
    database(Level::Serializable, Pace::Together, Conflict::SecondFails, Sessions::InAnyOrder),
    database(Level::SessionSerializable, Pace::Together, Conflict::SecondFails, Sessions::InOrder),
];

/// Current value of each key and how often it was written.
type Store = Vec<(Value, usize)>;

struct Txn {
    session: SessionId,
    ops: Vec<(OpKind, KeyId, Value)>,
}

#[derive(Clone)]
enum Stage {
    Waiting,
    Open(Store),
    Done,
}

fn can_happen(database: Database, txns: &[Txn], store: &Store, stages: &[Stage]) -> bool {
    if stages.iter().all(|stage| matches!(stage, Stage::Done)) {
        return true;
    }
    (0..txns.len()).any(|place| {
        let mut next = stages.to_vec();
        let mut after = store.clone();
        let may_begin = database.sessions == Sessions::InAnyOrder
            || (txns[..place].iter().zip(stages)).all(|(earlier, stage)| {
                earlier.session != txns[place].session || matches!(stage, Stage::Done)
            });
        match &stages[place] {
            Stage::Done => return false,
            Stage::Waiting => {
                if !may_begin || !reads_agree(&txns[place], store) {
                    return false;
                }
                next[place] = Stage::Open(store.clone());
                if database.begin_and_commit == Pace::Together {
                    apply(&txns[place], &mut after);
                    next[place] = Stage::Done;
                }
            }
            Stage::Open(snapshot) => {
                let must_fail = database.writers_of_a_key == Conflict::SecondFails
                    && (txns[place].ops.iter()).any(|&(kind, key, _)| {
                        kind == OpKind::Write && snapshot[key.index()].1 != store[key.index()].1
                    });
                if must_fail {
                    return false;
                }
                apply(&txns[place], &mut after);
                next[place] = Stage::Done;
            }
        }
        can_happen(database, txns, &after, &next)
    })
}

fn reads_agree(txn: &Txn, snapshot: &Store) -> bool {
    let mut own = snapshot.clone();
    txn.ops.iter().all(|&(kind, key, value)| {
        if kind == OpKind::Write {
            own[key.index()].0 = value;
        }
        own[key.index()].0 == value
    })
}

fn apply(txn: &Txn, store: &mut Store) {
    for &(kind, key, value) in &txn.ops {
        if kind == OpKind::Write {
            store[key.index()] = (value, store[key.index()].1 + 1);
        }
    }
}

fn txns_of(history: &History) -> Vec<Txn> {
    let op = |op| {
        let op = history.op(op);
        (op.kind, op.key, op.value)
    };
    (history.txns())
        .map(|txn| Txn {
            session: history.session_of(txn),
            ops: history.ops_of(txn).map(op).collect(),
        })
        .collect()
}

#[test]
fn a_level_holds_if_and_only_if_its_database_can_do_it() {
    let size = Size { txns_max: 3, ops_max: 2, keys_max: 2 };
    every_history(size, &mut |text| {
        let history = history(text);
        let txns = txns_of(&history);
        let store: Store = (history.keys()).map(|key| (history.initial(key), 0)).collect();
        for database in DATABASES {
            let waiting = vec![Stage::Waiting; txns.len()];
            let expected = if can_happen(database, &txns, &store, &waiting) {
                Reference::Satisfied
            } else {
                Reference::Violated
            };
            let found = decide(&history, database.level);
            assert_eq!(found, expected, "{}\n{text}", database.level);
        }
    });
}
