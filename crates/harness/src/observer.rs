//! Looking on while a run is recorded, for whoever judges it as it happens.
//!
//! Everything that a session records is told to its observer in the same order, right
//! after it happened and on the session's own thread: an observer that takes its time
//! slows the session down, and nothing else does.

use crate::database::Failure;
use crate::request::{Answer, Request};
use isolde_history::{Interval, Time};

/// Looks on at a run.
pub trait Observer: Send + Sync {
    /// A session of this number begins on the endpoint of this name. Everything that it
    /// sends is sent later than `now`.
    fn session(&self, number: u64, endpoint: &str, now: Time) -> Box<dyn SessionObserver>;

    /// Something happened beside the transactions, such as a fault.
    fn event(&self, now: Time, what: &str);
}

/// Looks on at one session. When it is dropped, the session is over.
pub trait SessionObserver: Send {
    /// The session is about to begin a transaction, and holds nothing that others wait for: an
    /// observer may let it wait.
    fn ready(&mut self) {}

    /// A transaction began.
    fn begun(&mut self, interval: Interval);

    /// A request was answered. For a transaction that is sent as a whole, this is told
    /// of each of its requests, with the times of the whole.
    fn answered(&mut self, request: &Request, answer: &Answer, interval: Interval);

    /// A request was not: nobody knows whether it had an effect within its transaction.
    fn unanswered(&mut self, request: &Request, interval: Interval);

    /// The transaction was committed.
    fn committed(&mut self, interval: Interval);

    /// The transaction ended otherwise.
    fn failed(&mut self, failure: &Failure, interval: Interval);
}
