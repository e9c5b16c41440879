//! What etcd's errors mean for a transaction.
//!
//! Reading changes nothing, so whatever fails before the transaction is sent is an abort.
//! Of a transaction that was sent, an error may mean that it was not done, or that etcd
//! gave up waiting: unless it is certain, the outcome is unknown.

use crate::http::Answered;
use isolde_harness::Failure;
use serde_json::Value;
use std::io;

/// What was asked when something went wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Nothing that changes anything.
    ToRead,
    /// A transaction.
    ToChange,
}

/// A connection that broke.
pub(super) fn broken(error: &io::Error, asked: Asked) -> Failure {
    match asked {
        Asked::ToRead => Failure::Lost(error.to_string()),
        Asked::ToChange => Failure::Unknown(error.to_string()),
    }
}

/// Codes of gRPC that etcd's gateway passes on.
const UNAVAILABLE: u64 = 14;
const DEADLINE_EXCEEDED: u64 = 4;
/// A server that shuts down cuts its gateway off first.
const CANCELLED: u64 = 1;
const RESOURCE_EXHAUSTED: u64 = 8;

/// The message, if the server did what it was asked.
pub(super) fn succeeded(answered: Answered, asked: Asked) -> Result<Value, Failure> {
    if answered.status == 200 {
        return Ok(answered.body);
    }
    let code = answered.body.get("code").and_then(Value::as_u64).unwrap_or_default();
    let text = ["message", "error"].iter().find_map(|name| answered.body.get(name)?.as_str());
    let text = text.unwrap_or("no message");
    Err(match code {
        RESOURCE_EXHAUSTED => Failure::Aborted("too many requests".to_owned()),
        UNAVAILABLE | DEADLINE_EXCEEDED | CANCELLED if asked == Asked::ToRead => {
            Failure::Aborted(text.to_owned())
        }
        UNAVAILABLE | DEADLINE_EXCEEDED | CANCELLED => Failure::Unknown(text.to_owned()),
        _ => Failure::Refused(format!("etcd answered: {text}")),
    })
}

/// A message without something that it must have.
pub(super) fn lacks(what: &str) -> Failure {
    Failure::Refused(format!("expected {what} in the answer of etcd"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_server_that_goes_away_refuses_nothing() {
        let failed = |code: u64, asked| {
            let body = json!({ "code": code, "message": "gone" });
            succeeded(Answered { status: 499, body }, asked)
        };
        for code in [1, 4, 14] {
            assert_eq!(failed(code, Asked::ToRead), Err(Failure::Aborted("gone".into())));
            assert_eq!(failed(code, Asked::ToChange), Err(Failure::Unknown("gone".into())));
        }
        let refused = Failure::Refused("etcd answered: gone".into());
        assert_eq!(failed(3, Asked::ToChange), Err(refused));
    }
}
