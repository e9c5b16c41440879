//! What clients of a database saw.
//!
//! A [`History`] holds sessions of transactions of operations, with times and
//! orders where they are known. It comes from a [`HistoryBuilder`] or from a file
//! in one of the [formats](mod@format); a [`trace`] comes while it happens. An [`Index`] joins reads to the transactions they
//! read from.

pub mod format;
pub mod trace;

mod builder;
mod condition_sql;
mod database_order;
mod error;
mod history;
mod index;
mod interpretation;
mod lists;
mod operation;
mod part;
mod predicate;
mod prefetch;
mod selection;
mod snapshot;
mod source;
#[cfg(test)]
pub(crate) mod testing;
mod transcript;
mod tree;
mod value;
mod without;

pub use builder::{CONTRADICTING_ORDERS, DraftTxn, HistoryBuilder, REPEATED_NUMBER};
pub use database_order::Named;
pub use error::{Place, ReadError, excerpt, memory_size};
pub use history::{
    ALWAYS, Event, GivenOrders, History, Interval, KeyId, NEVER, Op, OpId, OpKind, Outcome,
    PositionUnit, Remark, SessionId, Time, Timestamp, Timestamps, TxnId, TxnTimes, VersionChain,
};

pub use index::{
    Candidates, Choice, ExternalRead, Index, KeyMarks, Misread, MisreadKind, Origin, ReadId,
    SeveralOrigins, Version, VersionConflict, VersionEvidence, VersionStep,
};
pub use part::Part;
pub use predicate::{Aggregate, Computed, Condition, Function, Predicate, PredicateRow, Share};
pub use prefetch::prefetch;
pub use selection::Selection;
pub use snapshot::Snapshot;
pub use source::Source;
pub use transcript::{Content, Transcript, Txn};
pub use tree::Tree;
pub use value::{Datum, Value, Values, is_bare_word, is_visible};
