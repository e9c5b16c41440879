//! What `DuckDB`'s errors mean for a transaction.
//!
//! There is no connection that could break, so no answer is ever lost: a commit that
//! fails has no effect. The library gives no codes, so the kind at the beginning of
//! the message is what there is to go by.

use duckdb::Error;
use isolde_harness::Failure;

/// The failure that this error is, inside a transaction.
pub(super) fn failure(error: &Error) -> Failure {
    let Error::DuckDBFailure(_, Some(message)) = error else {
        return Failure::Refused(error.to_string());
    };
    match reason(message) {
        Some(reason) => Failure::Aborted(reason.to_owned()),
        None => Failure::Refused(format!("DuckDB answered: {message}")),
    }
}

/// Why the transaction was aborted, if that is what the message says.
fn reason(message: &str) -> Option<&'static str> {
    // A commit that is refused repeats in its message why, with the kind of that.
    if message.contains("onflict") && message.starts_with("TransactionContext Error") {
        return Some("conflict");
    }
    if message.contains("Constraint Error") || message.contains("constraint violat") {
        return Some("constraint");
    }
    if message.contains("write-write conflict") || message.contains("Transaction conflict") {
        return Some("conflict");
    }
    message.starts_with("INTERRUPT Error").then_some("interrupt")
}
