//! What `MongoDB`'s errors mean for a transaction.
//!
//! A statement that fails in any way has aborted its transaction. Of a commit, only what
//! is labelled as transient certainly has no effect.

use super::document::{array, number};
use crate::sql::Stage;
use bson::{Bson, Document};
use isolde_harness::Failure;

/// Errors that abort a transaction, with or without a label.
const ABORTS: &[i64] = &[
    24,    // LockTimeout
    50,    // MaxTimeMSExpired
    112,   // WriteConflict
    246,   // SnapshotUnavailable
    251,   // NoSuchTransaction
    11000, // DuplicateKey
];

/// The reply, if it is not a refusal.
pub(super) fn accepted(reply: Document, stage: Stage) -> Result<Document, Failure> {
    if number(&reply, "ok") != Some(1) {
        return Err(refusal(&reply, stage));
    }
    if let Some(Bson::Document(error)) = array(&reply, "writeErrors").first() {
        return Err(refusal(error, stage));
    }
    match reply.get_document("writeConcernError") {
        // It happened here, but perhaps not where it has to.
        Ok(error) if stage == Stage::Commit => Err(Failure::Unknown(name(error))),
        _ => Ok(reply),
    }
}

fn refusal(error: &Document, stage: Stage) -> Failure {
    let labels = array(error, "errorLabels");
    let has = |label: &str| labels.contains(&Bson::from(label));
    if stage == Stage::Commit && has("UnknownTransactionCommitResult") {
        return Failure::Unknown(name(error));
    }
    let is_abort = number(error, "code").is_some_and(|code| ABORTS.contains(&code));
    if is_abort || has("TransientTransactionError") {
        return Failure::Aborted(name(error));
    }
    let text = error.get_str("errmsg").unwrap_or("an error without message");
    Failure::Refused(format!("MongoDB answered: {} ({})", text, name(error)))
}

/// The error's name, or else its code.
fn name(error: &Document) -> String {
    match (error.get_str("codeName").ok(), number(error, "code")) {
        (Some(name), _) => name.to_owned(),
        (None, Some(112)) => "WriteConflict".to_owned(),
        (None, Some(code)) => format!("code {code}"),
        (None, None) => "no code".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn error(code: i32, name: &str, label: &str) -> Document {
        doc! { "ok": 0.0, "code": code, "codeName": name, "errmsg": "no", "errorLabels": [label] }
    }

    #[test]
    fn labels_and_codes_tell_aborted_from_unknown() {
        let found = |reply: Document, stage| accepted(reply, stage).expect_err("an error");
        let aborted = |name: &str| Failure::Aborted(name.into());
        let unknown = |name: &str| Failure::Unknown(name.into());
        let conflict = || error(112, "WriteConflict", "TransientTransactionError");
        assert_eq!(found(conflict(), Stage::Statement), aborted("WriteConflict"));
        assert_eq!(found(conflict(), Stage::Commit), aborted("WriteConflict"));
        let gone = || error(251, "NoSuchTransaction", "");
        assert_eq!(found(gone(), Stage::Commit), aborted("NoSuchTransaction"));
        let unsure = || error(91, "ShutdownInProgress", "UnknownTransactionCommitResult");
        assert_eq!(found(unsure(), Stage::Commit), unknown("ShutdownInProgress"));
        let concern = doc! { "ok": 1, "writeConcernError": { "code": 64 } };
        assert_eq!(found(concern.clone(), Stage::Commit), unknown("code 64"));
        assert_eq!(accepted(concern.clone(), Stage::Statement), Ok(concern));
        let refused = Failure::Refused("MongoDB answered: no (Unauthorized)".into());
        assert_eq!(found(error(13, "Unauthorized", ""), Stage::Statement), refused);
    }
}
