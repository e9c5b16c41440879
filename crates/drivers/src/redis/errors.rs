//! What Redis's errors mean for a transaction.
//!
//! Nothing happens before `EXEC` or the script, so whatever fails earlier is an abort. A
//! connection that breaks while one of these is out leaves its outcome unknown.

use isolde_harness::Failure;
use redis::{ServerError, Value};
use std::io;

/// A connection that broke before anything was asked to happen.
pub(super) fn lost(error: &io::Error) -> Failure {
    Failure::Lost(error.to_string())
}

/// A connection that broke when something was asked to happen.
pub(super) fn unknown(error: &io::Error) -> Failure {
    Failure::Unknown(error.to_string())
}

/// An error that the server replied with: nothing of the command happened.
pub(super) fn replied(error: &ServerError) -> Failure {
    match error.code() {
        // A server that is starting, busy with a script, out of memory or without its
        // primary may be better later.
        "LOADING" | "BUSY" | "OOM" | "MASTERDOWN" | "TRYAGAIN" | "CLUSTERDOWN" | "EXECABORT"
        | "NOREPLICAS" => Failure::Aborted(error.code().to_owned()),
        code => {
            let details = error.details().unwrap_or_default();
            Failure::Refused(format!("Redis answered: {code} {details}"))
        }
    }
}

/// A reply that no command of ours has.
pub(super) fn unexpected(reply: &Value) -> Failure {
    match reply {
        Value::ServerError(message) => replied(message),
        other => Failure::Refused(format!("expected another reply of Redis, found {other:?}")),
    }
}
