//! What SQLite's errors mean for a transaction.
//!
//! There is no connection that could break, so no answer is ever lost: a commit that
//! fails has no effect.

use isolde_harness::Failure;
use rusqlite::{Error, ErrorCode};

/// The failure that this error is, inside a transaction.
pub(super) fn failure(error: &Error) -> Failure {
    let Error::SqliteFailure(inner, _) = error else {
        return Failure::Refused(error.to_string());
    };
    match inner.code {
        ErrorCode::DatabaseBusy if inner.extended_code == rusqlite::ffi::SQLITE_BUSY_SNAPSHOT => {
            Failure::Aborted("BUSY_SNAPSHOT".to_owned())
        }
        ErrorCode::DatabaseBusy => Failure::Aborted("BUSY".to_owned()),
        ErrorCode::DatabaseLocked => Failure::Aborted("LOCKED".to_owned()),
        ErrorCode::ConstraintViolation => Failure::Aborted("CONSTRAINT".to_owned()),
        ErrorCode::OperationInterrupted => Failure::Aborted("INTERRUPT".to_owned()),
        _ => Failure::Refused(error.to_string()),
    }
}
