//! What PostgreSQL's errors mean for a transaction.
//!
//! An error of the server during a statement leaves a transaction that can only be rolled
//! back. A commit that the server refuses has no effect, but one whose answer is lost, or
//! was interrupted, may have one.

use crate::PASSWORD_HINT;
use crate::sql::Stage;
use isolde_harness::Failure;
use postgres::Error;
use std::error::Error as _;

/// What a code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The transaction has no effect, the session goes on.
    Aborted,
    /// The same if no commit was asked for; else nobody knows.
    Interrupted,
    /// The session is over.
    Disconnected,
    /// Trying again does not help.
    Hopeless,
}

/// Codes, or their first characters, and what they say. The first row that fits counts.
const MEANINGS: &[(&str, Meaning)] = &[
    // The server itself does not know; CockroachDB says so for an ambiguous commit.
    ("40003", Meaning::Disconnected),
    // Serialization failure, deadlock, constraints at commit.
    ("40", Meaning::Aborted),
    // Lock not available.
    ("55P03", Meaning::Aborted),
    // Cancelled, by a timeout for example.
    ("57014", Meaning::Interrupted),
    // Unique violation and the like.
    ("23", Meaning::Aborted),
    // A standby cancels queries that stand in the way of the log: class 40, above.
    // Idle for too long inside a transaction, or a transaction for too long.
    ("25P03", Meaning::Disconnected),
    ("25P04", Meaning::Disconnected),
    // Shutdown, crash, starting up, database dropped.
    ("57P", Meaning::Disconnected),
    // Connection exceptions.
    ("08", Meaning::Disconnected),
    // Too many connections.
    ("53300", Meaning::Disconnected),
];

/// Whether a transaction that was aborted for this reason had waited too long: for a lock, or
/// for its statement.
pub(super) fn is_timeout(reason: &str) -> bool {
    ["55P03", "57014"].contains(&reason)
}

fn meaning(code: &str) -> Meaning {
    let row = MEANINGS.iter().find(|row| code.starts_with(row.0));
    row.map_or(Meaning::Hopeless, |row| row.1)
}

/// The failure that this error is.
pub(super) fn failure(error: &Error, stage: Stage) -> Failure {
    if let Some(server) = error.as_db_error() {
        let text = format!("{} {}", server.code().code(), server.message());
        return of_code(server.code().code(), stage, text);
    }
    let is_broken = error.is_closed() || is_about_the_network(error) || stage == Stage::Commit;
    if is_broken {
        stage.disconnected(described(error))
    } else {
        Failure::Refused(described(error))
    }
}

fn of_code(code: &str, stage: Stage, text: String) -> Failure {
    match (meaning(code), stage) {
        (Meaning::Aborted, _) | (Meaning::Interrupted, Stage::Statement) => {
            Failure::Aborted(code.to_owned())
        }
        (Meaning::Interrupted | Meaning::Disconnected, _) => stage.disconnected(text),
        (Meaning::Hopeless, _) => Failure::Refused(text),
    }
}

/// The failure to connect to a server of this name. One that is down may come up again,
/// one that refuses a login will not.
pub(super) fn connecting(error: &Error, server: &str) -> Failure {
    let text = format!("cannot connect to {server}: {}", described(error));
    match error.as_db_error().map(|server| meaning(server.code().code())) {
        Some(Meaning::Hopeless) => Failure::Refused(text),
        Some(_) => Failure::Lost(text),
        None if is_about_certificates(error) => Failure::Refused(format!(
            "{text} (sslmode verify-ca and verify-full trust the certificates in sslrootcert)"
        )),
        None if text.ends_with("password missing") => {
            Failure::Refused(format!("{text}; {PASSWORD_HINT}"))
        }
        None if error.is_closed() || is_about_the_network(error) => Failure::Lost(text),
        None => Failure::Refused(text),
    }
}

fn is_about_the_network(error: &Error) -> bool {
    let source = error.source();
    source.and_then(|source| source.downcast_ref::<std::io::Error>()).is_some()
}

fn is_about_certificates(error: &Error) -> bool {
    described(error).contains("certificate")
}

/// The error and what it came from, without the server's `db error`.
pub(super) fn described(error: &Error) -> String {
    if let Some(server) = error.as_db_error() {
        return format!("{} ({})", server.message(), server.code().code());
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_tell_what_became_of_the_transaction() {
        let of = |code: &str, stage| of_code(code, stage, "text".to_owned());
        for code in ["40001", "40P01", "55P03", "57014", "23505"] {
            assert_eq!(of(code, Stage::Statement), Failure::Aborted(code.to_owned()));
        }
        for code in ["40001", "40P01", "23505"] {
            assert_eq!(of(code, Stage::Commit), Failure::Aborted(code.to_owned()));
        }
        for code in ["40003", "57P01", "08006", "25P03"] {
            assert_eq!(of(code, Stage::Statement), Failure::Lost("text".to_owned()));
        }
        for code in ["40003", "57P01", "08006", "57014"] {
            assert_eq!(of(code, Stage::Commit), Failure::Unknown("text".to_owned()));
        }
        for code in ["42P01", "25006", "53100"] {
            assert_eq!(of(code, Stage::Statement), Failure::Refused("text".to_owned()));
        }
    }
}
