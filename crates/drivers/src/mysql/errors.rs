//! What errors of MySQL, MariaDB, Galera and TiDB mean for a transaction.
//!
//! Some errors take back the whole transaction (1213, 1020), others only the statement
//! (1205, unless `innodb_rollback_on_timeout` is set). The driver rolls back after each.
//! A commit that fails in any way not listed may have had its effect.

use crate::PASSWORD_HINT;
use crate::sql::Stage;
use isolde_harness::Failure;
use mysql::Error;
use std::error::Error as _;
use std::io;

/// Aborted, also as the answer to a commit.
const ABORTED: &[u16] = &[
    1020, // the row has changed since the snapshot was taken
    1062, // duplicate entry
    1213, // deadlock; in a cluster, a write of another node came first
    1614, // the transaction branch was rolled back after a deadlock
    8002, // TiDB: conflict with SELECT FOR UPDATE
    8005, // TiDB: write conflict
    8022, // TiDB: commit refused, can be tried again
    8028, // TiDB: the schema changed
    9007, // TiDB: write conflict
];

/// Aborted if no commit was asked for.
const INTERRUPTED: &[u16] = &[
    1205, // lock wait timeout
    1317, // interrupted
    1969, // MariaDB: the statement took too long
    3024, // MySQL: the statement took too long
    3572, // NOWAIT
    9001, 9002, 9003, 9004, 9005, // TiDB: a part of it does not answer
];

/// The session, or its server, is gone.
const DISCONNECTED: &[u16] = &[
    1040, // too many connections
    1047, // the node is not part of its cluster
    1053, 1077, 1078, 1079, // shutdown
    1152, 1153, 1154, 1155, 1156, 1157, 1158, 1159, 1160, 1161, // the network
    1184, 1927, // killed
    2006, 2013, // gone
    4031, // idle for too long
];

/// Whether a transaction that was aborted for this reason had waited too long: for a lock, or
/// for its statement.
pub(super) fn is_timeout(reason: &str) -> bool {
    ["1205", "1969", "3024"].contains(&reason)
}

/// The failure that this error is.
pub(super) fn failure(error: &Error, stage: Stage) -> Failure {
    match error {
        Error::MySqlError(server) => of_code(server.code, stage, described(error)),
        Error::FromRowError(_) | Error::FromValueError(_) => Failure::Refused(described(error)),
        _ => stage.disconnected(described(error)),
    }
}

fn of_code(code: u16, stage: Stage, text: String) -> Failure {
    if ABORTED.contains(&code) || (stage == Stage::Statement && INTERRUPTED.contains(&code)) {
        Failure::Aborted(code.to_string())
    } else if stage == Stage::Commit || DISCONNECTED.contains(&code) {
        stage.disconnected(text)
    } else {
        Failure::Refused(text)
    }
}

/// The failure to connect to a server of this name. One that is down may come up again,
/// one that refuses a login will not.
pub(super) fn connecting(error: &Error, server: &str) -> Failure {
    let text = format!("cannot connect to {server}: {}", described(error));
    match error {
        Error::MySqlError(inner) if inner.message.ends_with("(using password: NO)") => {
            Failure::Refused(format!("{text}; {PASSWORD_HINT}"))
        }
        Error::MySqlError(inner) if !DISCONNECTED.contains(&inner.code) => Failure::Refused(text),
        // A server of this protocol speaks first.
        _ if text.ends_with(SILENT) => {
            Failure::Lost(format!("{text}; is it a server of MariaDB or MySQL?"))
        }
        _ if text.contains("certificate") => Failure::Refused(format!(
            "{text} (ssl-mode verify-ca and verify-identity trust the certificates in ssl-ca)"
        )),
        Error::TlsError(_) | Error::UrlError(_) => Failure::Refused(text),
        Error::DriverError(inner) if is_refusal(inner) => Failure::Refused(text),
        _ => Failure::Lost(text),
    }
}

fn is_refusal(error: &mysql::DriverError) -> bool {
    use mysql::DriverError;
    !matches!(error, DriverError::CouldNotConnect(_) | DriverError::ConnectTimeout)
}

const SILENT: &str = "no answer in time";

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The error as its server tells it.
pub(super) fn described(error: &Error) -> String {
    match error {
        Error::MySqlError(server) => format!("{} ({})", server.message, server.code),
        Error::IoError(inner) if is_silence(inner) => SILENT.to_owned(),
        Error::IoError(inner) => inner.to_string(),
        Error::CodecError(inner) => match inner.source().and_then(|it| it.downcast_ref()) {
            Some(inner) if is_silence(inner) => SILENT.to_owned(),
            _ => inner.to_string(),
        },
        // Whose address that is stands before it.
        Error::DriverError(mysql::DriverError::CouldNotConnect(Some((_, reason, _)))) => {
            reason.clone()
        }
        Error::DriverError(inner) => inner.to_string(),
        Error::TlsError(inner) => inner.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They said `Resource temporarily unavailable`, and the address twice.
    #[test]
    fn servers_that_are_silent_or_not_there_are_told_as_such() {
        let silence = || io::Error::from(io::ErrorKind::WouldBlock);
        assert_eq!(described(&Error::CodecError(silence().into())), SILENT);
        assert_eq!(described(&Error::IoError(silence())), SILENT);
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert!(described(&Error::CodecError(reset.into())).contains("connection reset"));
        let refused = ("host:1".to_owned(), "refused".to_owned(), io::ErrorKind::ConnectionRefused);
        let error = Error::DriverError(mysql::DriverError::CouldNotConnect(Some(refused)));
        let expected = Failure::Lost("cannot connect to host:1: refused".to_owned());
        assert_eq!(connecting(&error, "host:1"), expected);
    }

    #[test]
    fn codes_tell_what_became_of_the_transaction() {
        let of = |code, stage| of_code(code, stage, "text".to_owned());
        for code in [1020, 1213, 9007, 1062] {
            for stage in [Stage::Statement, Stage::Commit] {
                assert_eq!(of(code, stage), Failure::Aborted(code.to_string()));
            }
        }
        for code in [1205, 1317, 1969] {
            assert_eq!(of(code, Stage::Statement), Failure::Aborted(code.to_string()));
        }
        for code in [1205, 1047, 1180, 1053] {
            assert_eq!(of(code, Stage::Commit), Failure::Unknown("text".to_owned()));
        }
        for code in [1047, 1053, 1927] {
            assert_eq!(of(code, Stage::Statement), Failure::Lost("text".to_owned()));
        }
        for code in [1146, 1290, 1064] {
            assert_eq!(of(code, Stage::Statement), Failure::Refused("text".to_owned()));
        }
    }
}
