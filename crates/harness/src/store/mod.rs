//! Simulated stores: what they let transactions see.
//!
//! One file per way to store; a level is a setting of one of them. Keys and values
//! are numbers, and 0 is the value of a key that nobody wrote. Of a list, the
//! stores know the length alone: it is the value that is read.

mod faults;
mod in_place;
mod multi_version;
mod replicas;

pub(crate) use faults::Faults;
pub(crate) use multi_version::Content;
pub(crate) use replicas::REPLICAS;

use crate::clock::Stamps;
use crate::parameters::Isolation;
use crate::plan::{Action, Intent};
use crate::random::Random;
use crate::request::Filter;
use in_place::InPlace;
use isolde_history::Snapshot;
use multi_version::{MultiVersion, Reads, Validation};
use replicas::{Delivery, Known, Replicas};

/// The store of a level. Bugs are for the snapshot levels alone.
pub(crate) fn open(
    isolation: Isolation,
    content: Content,
    faults: Option<Faults>,
) -> Box<dyn Store + Send> {
    let versions =
        |reads, validation| Box::new(MultiVersion::new(reads, validation, content, faults));
    match isolation {
        Isolation::ReadUncommitted => Box::new(InPlace::default()),
        Isolation::ReadCommitted => versions(Reads::Latest, Validation::WrittenLists),
        Isolation::ReadAtomic => Box::new(Replicas::new(Delivery::Eager)),
        Isolation::Causal => Box::new(Replicas::new(Delivery::Causal)),
        Isolation::SnapshotIsolation => versions(Reads::Snapshot, Validation::Written),
        Isolation::Serializable => versions(Reads::Snapshot, Validation::ReadAndWritten),
    }
}

/// The store refuses a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict;

/// An operation that happened. A write's value is what it wrote; a read's is what
/// the store answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) action: Action,
    pub(crate) key: u32,
    pub(crate) value: u32,
}

/// The transaction that a session is in.
#[derive(Default)]
pub(crate) struct OpenTxn {
    pub(crate) session: u32,
    pub(crate) plan: Vec<Intent>,
    pub(crate) done: Vec<Done>,
    pub(crate) stamps: Stamps,
    /// When it began, in the store's own time.
    pub(crate) began: u32,
    /// A commit that its snapshot misses, or 0.
    pub(crate) hidden: u32,
    /// Crashes of the store before it began.
    pub(crate) epoch: u32,
    /// What its replica had when it began.
    pub(crate) known: Known,
    /// Keys and values that it has read and is going to write.
    pub(crate) foreseen: Vec<(u32, u32)>,
    /// Conditions that it has read by.
    pub(crate) filters: Vec<Filter>,
    /// What its last request saw, if that was not its snapshot.
    pub(crate) strayed: Option<Snapshot>,
    /// What the database calls it.
    pub(crate) number: u64,
    /// Whose writes it sees, if somebody wants to know.
    pub(crate) snapshot: Option<Snapshot>,
    /// What its writes replaced, if they are in place already.
    pub(crate) replaced: Vec<(u32, u32)>,
}

impl OpenTxn {
    /// Keys and values of its writes so far.
    pub(crate) fn writes(&self) -> impl DoubleEndedIterator<Item = (u32, u32)> {
        let writes = self.done.iter().filter(|done| done.action == Action::Write);
        writes.map(|done| (done.key, done.value))
    }

    /// The value it last wrote to `key`.
    pub(crate) fn own_value(&self, key: u32) -> Option<u32> {
        self.writes().rev().find(|write| write.0 == key).map(|write| write.1)
    }

    /// Whether its plan has a write of `key` after what is done, which was not read yet.
    pub(crate) fn is_future(&self, key: u32) -> bool {
        if self.foreseen.iter().any(|write| write.0 == key) {
            return false;
        }
        let later = self.plan[self.done.len()..].iter();
        let mut writes = later.filter(|intent| intent.action == Action::Write);
        writes.any(|intent| intent.key == key)
    }

    /// The value of `key` that it has read and is going to write.
    pub(crate) fn foretold(&mut self, key: u32) -> Option<u32> {
        let place = self.foreseen.iter().position(|write| write.0 == key)?;
        Some(self.foreseen.swap_remove(place).1)
    }
}

/// What transactions run against.
pub(crate) trait Store {
    /// `txn` begins; its plan is made.
    fn begin(&mut self, txn: &mut OpenTxn, random: &mut Random);
    /// What `txn` reads of a key now, its own writes aside.
    fn read(&mut self, txn: &OpenTxn, key: u32) -> u32;
    /// What `txn` reads of a key whose last own value is this.
    fn read_own(&mut self, txn: &OpenTxn, key: u32, own: u32) -> u32 {
        let _ = (txn, key);
        own
    }
    /// Whether a read by condition is to leave the snapshot.
    fn strays(&mut self) -> bool {
        false
    }
    /// Whether a read is to return what its transaction writes later.
    fn foresees(&mut self) -> bool {
        false
    }
    /// `txn` writes.
    fn write(&mut self, txn: &mut OpenTxn, key: u32, value: u32) -> Result<(), Conflict>;
    /// `txn` commits, if the store lets it.
    fn commit(&mut self, txn: &OpenTxn) -> Result<(), Conflict>;
    /// Commits so far, in the numbers that snapshots have.
    fn commits(&self) -> u32 {
        0
    }
    /// `txn` was refused.
    fn undo(&mut self, txn: &OpenTxn);
}
