//! Recordings that cannot show anything, whatever the database did.

use super::{Certainty, Examples, Recording, Rule};
use crate::anomaly::found_by_reading;
use isolde_history::{
    ALWAYS, ExternalRead, Interval, KeyId, OpId, OpKind, Origin, Outcome, SessionId, Time, TxnId,
};

pub(super) const NOTHING_COMMITTED: Rule = Rule {
    name: "nothing-committed",
    certainty: Certainty::Certain,
    meaning: "no transaction committed, so every level holds and nothing was tested",
    advice: "see that the recording is whole; where everything was refused, look at the errors the \
             clients were given",
    find: nothing_committed,
};

pub(super) const NO_DEPENDENCY: Rule = Rule {
    name: "no-dependency",
    certainty: Certainty::Certain,
    meaning: "no transaction read what another one wrote, or a key before another one wrote it, so \
              every history like this one passes",
    advice: "run longer, with fewer keys, and read the keys that are written",
    find: no_dependency,
};

pub(super) const NO_CONCURRENCY: Rule = Rule {
    name: "no-concurrency",
    certainty: Certainty::Certain,
    meaning: "no two transactions of different sessions were open at the same time, so isolation \
              was not tested",
    advice: "run several sessions at once, each on a connection of its own",
    find: no_concurrency,
};

pub(super) const KEYS_NEVER_READ: Rule = Rule {
    name: "keys-never-read",
    certainty: Certainty::Certain,
    meaning: "more than half of the keys that were written were never read, so most writes could be \
              lost unnoticed",
    advice: "use fewer keys, more reads, or read every key at the end",
    find: keys_never_read,
};

fn nothing_committed(recording: &Recording<'_>) -> Examples {
    let outcomes = recording.history.outcomes();
    let count = |wanted| outcomes.iter().filter(|&&outcome| outcome == wanted).count();
    let mut examples = Examples::default();
    if count(Outcome::Committed) == 0 {
        let (aborted, unknown) = (count(Outcome::Aborted), count(Outcome::Unknown));
        examples.add(None, || {
            let total = outcomes.len();
            if total == 0 {
                return "there is no transaction".into();
            }
            format!("of {total} transactions {aborted} aborted and {unknown} are unknown")
        });
    }
    examples
}

/// Histories of calls that are neither reads nor writes depend in ways of their own.
fn no_dependency(recording: &Recording<'_>) -> Examples {
    let (history, index) = (recording.history, recording.index);
    let committed = history.outcomes().contains(&Outcome::Committed);
    let calls = history.op_kinds().contains(&OpKind::Call);
    let any_read = |concerns: &dyn Fn(TxnId, ExternalRead) -> bool| {
        history.txns().any(|reader| index.reads_of(reader).any(|read| concerns(reader, read)))
    };
    let sees_another = |reader, read: ExternalRead| match read.origin {
        Origin::Txn(writer) => writer != reader,
        // What no write explains is wrong, so not everything passes.
        Origin::Several | Origin::Nobody => true,
        Origin::Initial => false,
    };
    // Conditions are about all rows, and orders that the database told about all versions. What
    // was found by condition may be wrong even if no writer is sure to have committed.
    let told = !index.steps().is_empty() || !index.conflicts().is_empty();
    let by_condition = || {
        let kinds = (0..).zip(history.op_kinds());
        let mut found = kinds.filter(|it| !it.1.has_key()).map(|it| history.txn_of(OpId(it.0)));
        found.any(|reader| index.is_counted(reader))
    };
    let misses_another = |reader, read: ExternalRead| {
        read.origin == Origin::Initial
            && index.writers_of(read.key).iter().any(|&writer| writer != reader)
    };
    // What a transaction got wrong all by itself did not pass.
    let is_wrong = || {
        let found = found_by_reading(history, index);
        found.iter().any(|anomaly| !anomaly.kind.refutes().is_empty())
    };
    // Seldom are the last questions asked, and only they need the writers of keys.
    let depends = told
        || any_read(&sees_another)
        || by_condition()
        || any_read(&misses_another)
        || is_wrong();
    let mut examples = Examples::default();
    if committed && !calls && !depends {
        examples.add(None, || {
            let (txns, reads) = (index.counted_txns(), index.read_count());
            format!(
                "transactions that count: {txns}, reads that concern another's write: 0 of {reads}"
            )
        });
    }
    examples
}

fn no_concurrency(recording: &Recording<'_>) -> Examples {
    let history = recording.history;
    let active = history.sessions().filter(|&session| !history.session_range(session).is_empty());
    let sessions = active.count();
    let mut examples = Examples::default();
    if history.txn_count() < 2 {
        return examples;
    }
    if sessions < 2 {
        examples.add(None, || "all transactions are of one session".into());
    } else if history.has_times() && !any_overlap(recording) {
        examples
            .add(None, || format!("the transactions of {sessions} sessions ran one after another"));
    }
    examples
}

/// Whether two sessions had transactions open at once. Transactions without a
/// beginning may have overlapped with anything.
fn any_overlap(recording: &Recording<'_>) -> bool {
    let history = recording.history;
    let mut open: Vec<(Interval, SessionId)> = history
        .sessions()
        .flat_map(|session| {
            history.txns_of(session).map(move |txn| (history.txn_interval(txn), session))
        })
        .collect();
    open.sort_by_key(|(interval, _)| interval.invoked);
    // The latest end so far, and the latest of any other session.
    let mut latest: Option<(Time, SessionId)> = None;
    let mut latest_other: Option<Time> = None;
    for (Interval { invoked, completed }, session) in open {
        let others = match latest {
            Some((end, of)) if of != session => Some(end),
            Some(_) => latest_other,
            None => None,
        };
        if invoked == ALWAYS || others.is_some_and(|end| invoked < end) {
            return true;
        }
        match latest {
            Some((end, of)) if of == session => latest = Some((end.max(completed), session)),
            Some((end, _)) if end > completed => latest_other = latest_other.max(Some(completed)),
            previous => {
                latest_other = latest_other.max(previous.map(|(end, _)| end));
                latest = Some((completed, session));
            }
        }
    }
    false
}

fn keys_never_read(recording: &Recording<'_>) -> Examples {
    let (history, index) = (recording.history, recording.index);
    let mut is_read = vec![false; history.key_count()];
    for op in history.txns().flat_map(|txn| history.ops_of(txn)) {
        let it = history.op(op);
        match it.kind {
            OpKind::Read | OpKind::ReadList | OpKind::ReadOther => is_read[it.key.index()] = true,
            OpKind::PredicateRead | OpKind::PredicateUpdate => {
                for row in &history.predicate(op).rows {
                    is_read[row.key.index()] = true;
                }
            }
            _ => {}
        }
    }
    let written: Vec<KeyId> =
        history.keys().filter(|&key| !index.versions_of(history, key).is_empty()).collect();
    let unread: Vec<KeyId> = written.iter().copied().filter(|key| !is_read[key.index()]).collect();
    let mut examples = Examples::default();
    if 2 * unread.len() > written.len() {
        examples.add(None, || {
            const NAMED_MAX: usize = 5;
            let mut names: Vec<String> =
                unread.iter().take(NAMED_MAX).map(|&key| recording.key(key)).collect();
            if unread.len() > NAMED_MAX {
                names.push("…".into());
            }
            let (count, all) = (unread.len(), written.len());
            format!("{count} of {all} written keys: {}", names.join(", "))
        });
    }
    examples
}
