//! Sources of order: what is known about the graph of events before anything is
//! derived. Each file is one source and gives its edges with their evidence.
//!
//! Read-modify-writes, lists and orders given by a database are sources of version
//! order, found by [`Versions`](super::versions::Versions); `version_order` turns them
//! into edges.

mod initial;
mod reads_from;
mod real_time;
mod session;
mod version_order;

pub(super) use initial::Initial;
pub(super) use reads_from::ReadsFrom;
pub(super) use real_time::RealTimeOrder;
pub(super) use session::SessionOrder;
pub(super) use version_order::VersionOrder;

/// Which sources of version order are used.
///
/// Without read-modify-writes the same is found, later and at greater cost. Lists and
/// given orders are part of what a level means: without them another question is
/// answered, as if registers had been written blindly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sources {
    /// A transaction that reads a version and writes the key installs the next one.
    pub read_modify_write: bool,
    /// List reads show the order of appends.
    pub lists: bool,
    /// Version orders that came with the history.
    pub given: bool,
}

impl Sources {
    /// All of them.
    pub const ALL: Sources = Sources { read_modify_write: true, lists: true, given: true };
}
