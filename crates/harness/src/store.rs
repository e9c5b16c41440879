//! Simulated stores: what they let transactions see.
//!
//! One file per way to store; a level is a setting of one of them. Keys and values
//! are numbers, and 0 is the value of a key that nobody wrote. Of a list, the
//! stores know the length alone: it is the value that is read.

mod in_place;
mod multi_version;
mod replicas;

pub(crate) use in_place::InPlace;
pub(crate) use multi_version::{Content, MultiVersion, Reads, Validation};
pub(crate) use replicas::{Delivery, Replicas};

use crate::clock::Stamps;
use crate::plan::{Action, Intent};
use crate::random::Random;

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
    /// What each operation of the plan reads, if the store decides that at once.
    pub(crate) decided: Vec<u32>,
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
}

/// What transactions run against.
pub(crate) trait Store {
    /// `txn` begins; its plan is made.
    fn begin(&mut self, txn: &mut OpenTxn, random: &mut Random);
    /// What `txn` reads of a key now, its own writes aside.
    fn read(&mut self, txn: &OpenTxn, key: u32) -> u32;
    /// `txn` writes.
    fn write(&mut self, txn: &mut OpenTxn, key: u32, value: u32) -> Result<(), Conflict>;
    /// `txn` commits, if the store lets it.
    fn commit(&mut self, txn: &OpenTxn) -> Result<(), Conflict>;
    /// `txn` was refused.
    fn undo(&mut self, txn: &OpenTxn);
}
