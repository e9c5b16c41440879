//! Stores that are compiled in: keys and values in order, in a folder or file of our own.
//!
//! `session.rs` makes requests out of what all of them can do: get, put, remove, and read
//! a range. `fjall.rs` and `redb.rs` do that, and say what their errors mean.

mod database;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "redb")]
mod redb;
mod session;

#[cfg(feature = "fjall")]
pub(crate) use fjall::TARGET as FJALL;
#[cfg(feature = "redb")]
pub(crate) use redb::TARGET as REDB;

use isolde_harness::{Access, Failure};

/// A store.
trait Store: Send + Sync {
    /// Begins a transaction, which may wait for another's end.
    fn begin(&self, access: Access) -> Result<Box<dyn Transaction>, Failure>;
}

/// A transaction of a store. Dropped, it has no effect.
trait Transaction: Send {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure>;
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure>;
    fn remove(&mut self, key: &[u8]) -> Result<(), Failure>;
    /// All keys from `low` to `high`, both included, with their values.
    fn range(&self, low: &[u8], high: &[u8]) -> Result<Pairs, Failure>;
    fn commit(self: Box<Self>) -> Result<(), Failure>;
}

/// Keys and values.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// The failure of a store that cannot be used.
fn unusable(error: &dyn std::fmt::Display) -> Failure {
    Failure::Refused(format!("the store cannot be used: {error}"))
}
