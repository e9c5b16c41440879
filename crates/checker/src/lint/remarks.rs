//! Mistakes that only an importer can see, told by its remarks.

use super::{Certainty, Examples, Recording, Rule};

pub(super) const REUSED_PROCESS: Rule = Rule {
    name: "reused-process",
    certainty: Certainty::Certain,
    meaning: "a process went on after an operation of unknown outcome, or had two open at once, \
              so its operations have no order",
    advice: "give the client a new process id after every timeout, and each thread its own",
    find: |recording| of(recording, "reused-process"),
};

pub(super) const COMPLETION_WITHOUT_INVOCATION: Rule = Rule {
    name: "completion-without-invocation",
    certainty: Certainty::Certain,
    meaning: "an operation was recorded as completed and never as invoked, so when it began is lost",
    advice: "record the invocation before the request is sent, in the same log",
    find: |recording| of(recording, "completion-without-invocation"),
};

pub(super) const DUPLICATE_INDEX: Rule = Rule {
    name: "duplicate-index",
    certainty: Certainty::Certain,
    meaning: "two records have the same index, so logs were joined or a counter is not shared",
    advice: "number the records of all clients with one counter, and do not concatenate runs",
    find: |recording| of(recording, "duplicate-index"),
};

pub(super) const REUSED_TRANSACTION_ID: Rule = Rule {
    name: "reused-transaction-id",
    certainty: Certainty::Certain,
    meaning: "two transactions have the same id, so their operations cannot be told apart",
    advice: "make transaction ids unique over all sessions",
    find: |recording| of(recording, "reused-transaction-id"),
};

/// What an importer remarked of this kind.
pub(super) fn of(recording: &Recording<'_>, kind: &str) -> Examples {
    let mut examples = Examples::default();
    examples.add_remarks(recording, kind);
    examples
}
