//! A store that keeps every version: serializability, snapshot isolation and read
//! committed, by what is read and what is validated.
//!
//! Versions are installed in the order of commits, which is the witness:
//! serializable transactions that wrote take effect at their commit, read-only ones
//! at their begin. Under read committed whatever a transaction has seen was
//! committed before, and so is no later than what it sees next.
//!
//! A store with a bug asks [`Faults`] before it decides.

use super::{Conflict, Faults, OpenTxn, Store};
use crate::plan::Action;
use crate::random::Random;
use crate::simulated::Bug;

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
    /// A transaction that reads its own append shows where it stands in the list, and so
    /// nobody may come between.
    WrittenLists,
    Written,
    /// Read-only transactions need none: their snapshot is a moment of its own.
    ReadAndWritten,
}

/// What keys hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Registers,
    Lists,
    /// Even keys are registers, odd ones lists.
    Both,
}

impl Content {
    fn is_list(self, key: u32) -> bool {
        match self {
            Content::Registers => false,
            Content::Lists => true,
            Content::Both => key % 2 == 1,
        }
    }
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
    faults: Option<Box<Faults>>,
}

impl MultiVersion {
    pub(crate) fn new(
        reads: Reads,
        validation: Validation,
        content: Content,
        faults: Option<Faults>,
    ) -> Self {
        let (latest, versions) = (Vec::new(), Vec::new());
        let faults = faults.map(Box::new);
        MultiVersion { latest, versions, now: 0, reads, validation, content, faults }
    }

    fn version(&self, number: u32) -> Option<Version> {
        (number != NO_VERSION).then(|| self.versions[number as usize])
    }

    fn latest(&self, key: u32) -> Option<Version> {
        self.latest.get(key as usize).and_then(|&number| self.version(number))
    }

    /// The version of a key that a transaction should see.
    fn visible(&self, txn: &OpenTxn, key: u32) -> Option<Version> {
        let mut found = self.latest(key);
        if self.reads == Reads::Snapshot {
            while let Some(later) = found.filter(|version| !is_in_snapshot(txn, *version)) {
                found = self.version(later.previous);
            }
        }
        found
    }

    /// The commit that changed a key since the transaction's snapshot, if one did.
    fn changed(&self, txn: &OpenTxn, key: u32) -> Option<u32> {
        let latest = self.latest(key).filter(|version| !is_in_snapshot(txn, *version));
        latest.map(|version| version.committed)
    }

    /// Keys that must not have changed, but have.
    fn conflicts<'a>(&'a self, txn: &'a OpenTxn) -> impl Iterator<Item = (u32, u32)> + 'a {
        let is_read_only = txn.done.iter().all(|done| done.action == Action::Read);
        let guarded = (txn.done.iter()).filter(move |done| match self.validation {
            Validation::WrittenLists => {
                done.action == Action::Write && self.content.is_list(done.key)
            }
            Validation::Written => done.action == Action::Write,
            Validation::ReadAndWritten => !is_read_only,
        });
        guarded.filter_map(|done| self.changed(txn, done.key).map(|number| (done.key, number)))
    }

    fn is_refused(&mut self, txn: &OpenTxn) -> bool {
        if self.conflicts(txn).next().is_none() {
            return self.faults.as_ref().is_some_and(|faults| faults.epoch != txn.epoch);
        }
        if self.faults.is_none() {
            return true;
        }
        let conflicts: Vec<(u32, u32)> = self.conflicts(txn).collect();
        !self.faults.as_mut().is_some_and(|faults| faults.overlooks(txn, &conflicts))
    }

    fn install(&mut self, txn: &OpenTxn) {
        self.now += 1;
        for (key, value) in txn.writes() {
            let place = key as usize;
            if self.latest.len() <= place {
                self.latest.resize(place + 1, NO_VERSION);
            }
            let previous = self.latest[place];
            let value = if self.content.is_list(key) {
                self.version(previous).map_or(0, |version| version.value) + 1
            } else {
                value
            };
            self.latest[place] = self.versions.len() as u32;
            self.versions.push(Version { previous, committed: self.now, value });
        }
    }

    /// Loses all commits after this one.
    fn forget(&mut self, survivor: u32) {
        let Some(faults) = &self.faults else { return };
        for &key in faults.commits_after(survivor).flat_map(|commit| &commit.writes) {
            let mut number = self.latest[key as usize];
            while number != NO_VERSION && self.versions[number as usize].committed > survivor {
                number = self.versions[number as usize].previous;
            }
            self.latest[key as usize] = number;
        }
    }

    /// What a transaction reads that a fracture has led out of its snapshot: it stays outside,
    /// or what it has seen would vanish again, which is another bug.
    fn outside(&self, txn: &OpenTxn, key: u32) -> Option<u32> {
        if self.faults.as_ref()?.bug != Bug::FracturedRead {
            return None;
        }
        let mut reads = txn.done.iter().filter(|done| done.action == Action::Read);
        let is_outside = reads.clone().any(|done| {
            self.visible(txn, done.key).map_or(0, |version| version.value) != done.value
                && txn.writes().all(|write| write.1 != done.value)
        });
        let again = reads.find(|done| done.key == key).map(|done| done.value);
        is_outside.then(|| again.or_else(|| self.latest(key).map(|it| it.value)).unwrap_or(0))
    }

    /// What is read instead of the visible version, if that is another one and the bug
    /// can show here.
    fn wrong(&mut self, txn: &OpenTxn, key: u32, visible: Option<Version>) -> Option<u32> {
        let faults = self.faults.as_mut()?;
        let has_read =
            |key| txn.done.iter().any(|done| done.key == key && done.action == Action::Read);
        let wrong = match faults.bug {
            Bug::ThinAirRead => Some(faults.invent()),
            Bug::DirtyRead => faults.uncommitted(txn, key),
            Bug::IntermediateRead => {
                faults.commit(visible?.committed).and_then(|commit| commit.intermediate(key))
            }
            Bug::NonRepeatableRead => {
                self.latest(key).filter(|_| has_read(key)).map(|latest| latest.value)
            }
            Bug::FracturedRead => {
                let latest = self.latest(key).filter(|latest| latest.committed > txn.began)?;
                let commit = self.faults.as_ref()?.commit(latest.committed)?;
                let is_missed = commit.writes.iter().any(|&other| has_read(other));
                (is_missed && !has_read(key)).then_some(latest.value)
            }
            Bug::NonMonotonicRead => {
                let visible = visible?;
                let is_seen = |other: u32| {
                    let version = self.visible(txn, other);
                    version.is_some_and(|version| version.committed == visible.committed)
                };
                let seen = txn.done.iter().any(|done| done.key != key && is_seen(done.key));
                seen.then(|| self.version(visible.previous).map_or(0, |version| version.value))
            }
            _ => None,
        };
        let value = visible.map_or(0, |version| version.value);
        wrong.filter(|&wrong| wrong != value && self.faults.as_mut().is_some_and(|it| it.strikes()))
    }
}

fn is_in_snapshot(txn: &OpenTxn, version: Version) -> bool {
    version.committed <= txn.began && version.committed != txn.hidden
}

impl Store for MultiVersion {
    fn begin(&mut self, txn: &mut OpenTxn, _: &mut Random) {
        if let Some(survivor) = self.faults.as_mut().and_then(|faults| faults.crash(self.now)) {
            self.forget(survivor);
        }
        txn.began = self.now;
        if let Some(faults) = &mut self.faults {
            faults.begin(txn);
        }
    }

    fn read(&mut self, txn: &OpenTxn, key: u32) -> u32 {
        if let Some(value) = self.outside(txn, key) {
            return value;
        }
        let visible = self.visible(txn, key);
        if self.faults.is_some()
            && let Some(wrong) = self.wrong(txn, key, visible)
        {
            return wrong;
        }
        visible.map_or(0, |version| version.value)
    }

    fn read_own(&mut self, txn: &OpenTxn, key: u32, own: u32) -> u32 {
        let wrong = match self.faults.as_ref().map(|faults| faults.bug) {
            Some(Bug::NotMyOwnWrite) => {
                Some(self.visible(txn, key).map_or(0, |version| version.value))
            }
            Some(Bug::NotMyLastWrite) => {
                txn.writes().find(|write| write.0 == key && write.1 != own).map(|write| write.1)
            }
            _ => None,
        };
        let strikes = |_: &u32| self.faults.as_mut().is_some_and(|faults| faults.strikes());
        wrong.filter(strikes).unwrap_or(own)
    }

    fn foresees(&mut self) -> bool {
        let faults = self.faults.as_mut();
        faults.is_some_and(|faults| faults.bug == Bug::FutureRead && faults.strikes())
    }

    fn strays(&mut self) -> bool {
        self.faults.as_mut().is_some_and(|faults| faults.strikes())
    }

    fn write(&mut self, txn: &mut OpenTxn, key: u32, value: u32) -> Result<(), Conflict> {
        if let Some(faults) = &mut self.faults {
            faults.wrote(txn, key, value);
        }
        Ok(())
    }

    fn commit(&mut self, txn: &OpenTxn) -> Result<(), Conflict> {
        if self.is_refused(txn) {
            return Err(Conflict);
        }
        self.install(txn);
        if let Some(faults) = &mut self.faults {
            faults.committed(txn, self.now);
        }
        Ok(())
    }

    fn commits(&self) -> u32 {
        self.now
    }

    fn undo(&mut self, txn: &OpenTxn) {
        if self.faults.as_mut().is_some_and(|faults| faults.keeps(txn)) {
            self.install(txn);
            // Nobody is to take it for a commit, but the numbers go on.
            if let Some(faults) = &mut self.faults {
                faults.committed(txn, self.now);
            }
        }
    }
}
