//! Mistakes that client-side times show.
//!
//! Times of different clients are compared only by [`READ_BEFORE_IT_WAS_SENT`];
//! the other rules stay within one client's clock.

use super::{Certainty, Examples, Recording, Rule};
use isolde_history::{ALWAYS, Interval, NEVER, Origin, Outcome, TxnId};

pub(super) const COMPLETED_BEFORE_INVOKED: Rule = Rule {
    name: "completed-before-invoked",
    certainty: Certainty::Certain,
    meaning: "a transaction or operation ended before it began; levels of real time take its \
              beginning for its end",
    advice: "take both times from one monotonic clock, and check that the columns are not swapped",
    find: completed_before_invoked,
};

pub(super) const ENDS_BEFORE_ITS_OPERATIONS: Rule = Rule {
    name: "ends-before-its-operations",
    certainty: Certainty::Certain,
    meaning: "a transaction was recorded as complete while one of its operations was still open, \
              or as invoked after one of them",
    advice: "record the outcome after the answer to COMMIT, and the invocation before BEGIN is sent",
    find: ends_before_its_operations,
};

pub(super) const READ_BEFORE_IT_WAS_SENT: Rule = Rule {
    name: "read-before-it-was-sent",
    certainty: Certainty::Certain,
    meaning: "a transaction that had completed saw a value whose writer was invoked only later: \
              the clients' clocks differ, or an invocation was recorded too late",
    advice: "record the invocation before the first statement is sent, with one clock for all clients",
    find: read_before_it_was_sent,
};

pub(super) const CLOCK_WENT_BACK: Rule = Rule {
    name: "clock-went-back",
    certainty: Certainty::Certain,
    meaning: "a session's next transaction was invoked before its previous one",
    advice: "use a monotonic clock; if times are right, the session's transactions are out of order",
    find: clock_went_back,
};

pub(super) const OVERLAPPING_SESSION: Rule = Rule {
    name: "overlapping-session",
    certainty: Certainty::Certain,
    meaning: "two transactions of one session were open at the same time, so session order is none",
    advice: "give every connection a session of its own; do not share an id between threads",
    find: overlapping_session,
};

pub(super) const MISSING_TIMES: Rule = Rule {
    name: "missing-times",
    certainty: Certainty::Certain,
    meaning: "committed transactions lack the time of their invocation or completion, so real time \
              says less of them than it could, and levels of real time hold more easily",
    advice: "record when each transaction was sent and when its outcome came back",
    find: missing_times,
};

/// Whether something recorded to have ended did so before it was recorded to begin.
const fn is_backwards(interval: Interval) -> bool {
    interval.invoked != ALWAYS
        && interval.completed != NEVER
        && interval.completed < interval.invoked
}

fn completed_before_invoked(recording: &Recording<'_>) -> Examples {
    let history = recording.history;
    let mut examples = Examples::default();
    if !history.has_times() && !history.has_op_times() {
        return examples;
    }
    for txn in history.txns() {
        let whole = history.txn_interval(txn);
        if is_backwards(whole) {
            let Interval { invoked, completed } = whole;
            examples.add(history.ops_of(txn).next(), || {
                format!("{} was invoked at {invoked} and ended at {completed}", recording.txn(txn))
            });
        }
        let backwards = |op: &_| is_backwards(history.op_interval(*op));
        if let Some(op) = history.ops_of(txn).find(backwards) {
            let Interval { invoked, completed } = history.op_interval(op);
            examples.add(Some(op), || {
                let txn = recording.txn(txn);
                format!("an operation of {txn} was invoked at {invoked} and ended at {completed}")
            });
        }
    }
    examples
}

fn ends_before_its_operations(recording: &Recording<'_>) -> Examples {
    let history = recording.history;
    let mut examples = Examples::default();
    if !history.has_op_times() || !history.has_times() {
        return examples;
    }
    for txn in history.txns() {
        let whole = history.txn_interval(txn);
        let outside = |op: &_| {
            let inner = history.op_interval(*op);
            inner.completed != NEVER && inner.completed > whole.completed
                || inner.invoked != ALWAYS && inner.invoked < whole.invoked
        };
        if let Some(op) = history.ops_of(txn).find(outside) {
            examples.add(Some(op), || {
                let inner = history.op_interval(op);
                format!(
                    "{} was recorded {}, one of its operations {}",
                    recording.txn(txn),
                    shown(whole),
                    shown(inner)
                )
            });
        }
    }
    examples
}

fn shown(interval: Interval) -> String {
    let invoked = match interval.invoked {
        ALWAYS => "?".into(),
        time => time.to_string(),
    };
    let completed = match interval.completed {
        NEVER => "?".into(),
        time => time.to_string(),
    };
    format!("from {invoked} to {completed}")
}

/// One finding for all of them: what matters is how many there are. Nobody knows when a
/// transaction of unknown outcome ended.
fn missing_times(recording: &Recording<'_>) -> Examples {
    let history = recording.history;
    let mut examples = Examples::default();
    if !history.has_times() {
        return examples;
    }
    let has_both = |txn: &TxnId| {
        let Interval { invoked, completed } = history.txn_interval(*txn);
        invoked != ALWAYS && completed != NEVER
    };
    let committed = || history.txns().filter(|&txn| history.outcome(txn) == Outcome::Committed);
    let mut others = committed().filter(|txn| !has_both(txn));
    if let Some(first) = others.next() {
        let (all, some) = (committed().count(), 1 + others.count());
        examples.add(history.ops_of(first).next(), || {
            let first = recording.txn(first);
            format!(
                "{} of {all} committed transactions have both times, {first} has not",
                all - some
            )
        });
    }
    examples
}

fn read_before_it_was_sent(recording: &Recording<'_>) -> Examples {
    let (history, index) = (recording.history, recording.index);
    let mut examples = Examples::default();
    if !history.has_times() {
        return examples;
    }
    for reader in history.txns() {
        let ended = history.txn_interval(reader).completed;
        for read in index.reads_of(reader) {
            let Origin::Txn(writer) = read.origin else { continue };
            let sent = history.txn_interval(writer).invoked;
            if ended < sent {
                examples.add(Some(read.op), || {
                    format!(
                        "{} ended at {ended} and had read {} from {}, which was invoked at {sent}",
                        recording.txn(reader),
                        recording.key(read.key),
                        recording.txn(writer)
                    )
                });
            }
        }
    }
    examples
}

/// Pairs of transactions that follow one another in a session.
fn successors(recording: &Recording<'_>) -> impl Iterator<Item = (TxnId, TxnId)> {
    let history = recording.history;
    let sessions = history.sessions().filter(|_| history.has_times());
    sessions.flat_map(|session| history.txns_of(session).zip(history.txns_of(session).skip(1)))
}

fn clock_went_back(recording: &Recording<'_>) -> Examples {
    let history = recording.history;
    let mut examples = Examples::default();
    for (txn, next) in successors(recording) {
        let (first, second) = (history.txn_interval(txn), history.txn_interval(next));
        if second.invoked != ALWAYS && second.invoked < first.invoked {
            examples.add(history.ops_of(next).next(), || {
                format!(
                    "{} was invoked at {}, the session's next, {}, at {}",
                    recording.txn(txn),
                    first.invoked,
                    recording.txn(next),
                    second.invoked
                )
            });
        }
    }
    examples
}

/// A transaction that has no recorded end may have ended in time.
fn overlapping_session(recording: &Recording<'_>) -> Examples {
    let history = recording.history;
    let mut examples = Examples::default();
    for (txn, next) in successors(recording) {
        let (first, second) = (history.txn_interval(txn), history.txn_interval(next));
        let in_order = first.invoked <= second.invoked && !is_backwards(first);
        let both_known = first.completed != NEVER && second.invoked != ALWAYS;
        if in_order && both_known && second.invoked < first.completed {
            examples.add(history.ops_of(next).next(), || {
                format!(
                    "{} ended at {}, the session's next, {}, was invoked at {}",
                    recording.txn(txn),
                    first.completed,
                    recording.txn(next),
                    second.invoked
                )
            });
        }
    }
    examples
}
