//! A store that keeps every version: serializability, snapshot isolation and read
//! committed, by what is read and what is validated.
//!
//! Versions are installed in the order of commits, which is the witness:
//! serializable transactions that wrote take effect at their commit, read-only ones
//! at their begin. Under read committed whatever a transaction has seen was
//! committed before, and so is no later than what it sees next.

use super::{Conflict, OpenTxn, Store};
use crate::plan::Action;
use crate::random::Random;

/// Which version a transaction reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// The last one committed before the transaction began.
    Snapshot,
    /// The last one committed.
    Latest,
}

/// What must not have changed since a transaction began if it is to commit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Validation {
    Nothing,
    Written,
    /// Read-only transactions need none: their snapshot is a moment of its own.
    ReadAndWritten,
}

/// What a key holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Register,
    List,
}

#[derive(Clone, Copy)]
struct Version {
    /// The version before it, or [`NO_VERSION`].
    previous: u32,
    committed: u32,
    value: u32,
}

const NO_VERSION: u32 = u32::MAX;

/// See the module's documentation.
pub(crate) struct MultiVersion {
    /// The last version of each key.
    latest: Vec<u32>,
    versions: Vec<Version>,
    /// Commits so far.
    now: u32,
    reads: Reads,
    validation: Validation,
    content: Content,
}

impl MultiVersion {
    pub(crate) fn new(reads: Reads, validation: Validation, content: Content) -> Self {
        let (latest, versions) = (Vec::new(), Vec::new());
        MultiVersion { latest, versions, now: 0, reads, validation, content }
    }

    fn version(&self, number: u32) -> Option<Version> {
        (number != NO_VERSION).then(|| self.versions[number as usize])
    }

    fn latest(&self, key: u32) -> Option<Version> {
        self.latest.get(key as usize).and_then(|&number| self.version(number))
    }

    fn is_valid(&self, txn: &OpenTxn) -> bool {
        let changed = |key| self.latest(key).is_some_and(|version| version.committed > txn.began);
        match self.validation {
            Validation::Nothing => true,
            Validation::Written => !txn.writes().any(|(key, _)| changed(key)),
            Validation::ReadAndWritten => {
                txn.done.iter().all(|done| done.action == Action::Read)
                    || !txn.done.iter().any(|done| changed(done.key))
            }
        }
    }

    fn install(&mut self, key: u32, value: u32) {
        let place = key as usize;
        if self.latest.len() <= place {
            self.latest.resize(place + 1, NO_VERSION);
        }
        let previous = self.latest[place];
        let value = match self.content {
            Content::Register => value,
            Content::List => self.version(previous).map_or(0, |version| version.value) + 1,
        };
        self.latest[place] = self.versions.len() as u32;
        self.versions.push(Version { previous, committed: self.now, value });
    }
}

impl Store for MultiVersion {
    fn begin(&mut self, txn: &mut OpenTxn, _: &mut Random) {
        txn.began = self.now;
    }

    fn read(&mut self, txn: &OpenTxn, key: u32) -> u32 {
        let mut found = self.latest(key);
        if self.reads == Reads::Snapshot {
            while let Some(later) = found.filter(|version| version.committed > txn.began) {
                found = self.version(later.previous);
            }
        }
        found.map_or(0, |version| version.value)
    }

    fn write(&mut self, _: &mut OpenTxn, _: u32, _: u32) -> Result<(), Conflict> {
        Ok(())
    }

    fn commit(&mut self, txn: &OpenTxn) -> Result<(), Conflict> {
        if !self.is_valid(txn) {
            return Err(Conflict);
        }
        self.now += 1;
        for (key, value) in txn.writes() {
            self.install(key, value);
        }
        Ok(())
    }

    fn undo(&mut self, _: &OpenTxn) {}
}
