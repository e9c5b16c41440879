//! The database of the examples: versions in memory, and a check when a transaction commits.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

/// Versions of each key, with the number of the commit that made them.
pub(crate) struct Store {
    state: Mutex<State>,
    protects: Protects,
}

/// What must not have changed when a transaction commits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protects {
    /// What it wrote. This is snapshot isolation.
    Writes,
    /// What it wrote and what it read. This is serializable.
    WritesAndReads,
}

#[derive(Default)]
struct State {
    commits: u64,
    versions: HashMap<&'static str, Vec<(u64, i64)>>,
}

/// A transaction that is open.
pub(crate) struct OpenTxn {
    snapshot: u64,
    reads: HashSet<&'static str>,
    writes: HashMap<&'static str, i64>,
}

impl OpenTxn {
    pub(crate) fn write(&mut self, key: &'static str, value: i64) {
        self.writes.insert(key, value);
    }
}

impl Store {
    pub(crate) fn new(protects: Protects) -> Store {
        Store { state: Mutex::default(), protects }
    }

    pub(crate) fn begin(&self) -> OpenTxn {
        let snapshot = self.state.lock().expect("nobody panics").commits;
        OpenTxn { snapshot, reads: HashSet::new(), writes: HashMap::new() }
    }

    /// The last value of its snapshot; every key begins with 0.
    pub(crate) fn read(&self, txn: &mut OpenTxn, key: &'static str) -> i64 {
        txn.reads.insert(key);
        if let Some(&own) = txn.writes.get(key) {
            return own;
        }
        let state = self.state.lock().expect("nobody panics");
        let versions = state.versions.get(key).map_or(&[][..], Vec::as_slice).iter();
        versions.rev().find(|it| it.0 <= txn.snapshot).map_or(0, |it| it.1)
    }

    /// Whether the transaction committed; else it is as if it had never been.
    pub(crate) fn commit(&self, txn: OpenTxn) -> bool {
        let mut state = self.state.lock().expect("nobody panics");
        let is_newer = |key: &&str| {
            let last = state.versions.get(key).and_then(|versions| versions.last());
            last.is_some_and(|it| it.0 > txn.snapshot)
        };
        let reads_matter = self.protects == Protects::WritesAndReads && !txn.writes.is_empty();
        if txn.writes.keys().any(&is_newer) || (reads_matter && txn.reads.iter().any(is_newer)) {
            return false;
        }
        state.commits += 1;
        let number = state.commits;
        for (key, value) in txn.writes {
            state.versions.entry(key).or_default().push((number, value));
        }
        true
    }
}
