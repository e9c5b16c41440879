//! Transactions that are in no log: what is satisfied rests on their commits.

use crate::prose::safe;
use crate::terminal::counted;
use isolde_history::History;
use serde::Serialize;

/// Transactions that are in no log, although somebody read what they wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnloggedReport {
    /// How many there are.
    pub count: usize,
    /// The first of them, at most [`UNLOGGED_SHOWN_MAX`].
    pub transactions: Vec<String>,
    /// What levels that are satisfied rest on, as a sentence without its full stop.
    pub meaning: String,
}

/// At most this many transactions that are in no log are named.
pub const UNLOGGED_SHOWN_MAX: usize = 10;

/// How to do without the assumption.
pub(crate) const UNLOGGED_ADVICE: &str =
    "if the log lacks nothing, check with --complete-log: nobody wrote what they wrote";

impl UnloggedReport {
    /// What to say of a history, if anything.
    pub fn of(history: &History) -> Option<UnloggedReport> {
        let count = history.unlogged().count();
        if count == 0 {
            return None;
        }
        let first = history.unlogged().take(UNLOGGED_SHOWN_MAX);
        let transactions: Vec<String> =
            first.map(|txn| safe(&history.readable_name(txn))).collect();
        let (counted, be) = (counted(count, "transaction"), if count == 1 { "is" } else { "are" });
        let meaning = format!("satisfied if {counted} that {be} not in the log committed");
        Some(UnloggedReport { count, transactions, meaning })
    }

    /// The names, and how many have none here.
    pub(crate) fn names(&self) -> String {
        let names = self.transactions.join(", ");
        match self.count - self.transactions.len() {
            0 => names,
            more => format!("{names} and {more} more"),
        }
    }
}
