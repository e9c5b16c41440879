//! Mistakes in recording how transactions ended.

use super::{Certainty, Examples, Recording, Rule};
use hashbrown::{HashMap, HashSet};
use isolde_history::{
    ALWAYS, Datum, ExternalRead, KeyId, MisreadKind, NEVER, OpId, Origin, Outcome, Time, TxnId,
};

pub(super) const TIMEOUT_AS_FAILURE: Rule = Rule {
    name: "timeout-as-failure",
    certainty: Certainty::Likely,
    meaning: "a transaction that ended in a timeout or a lost connection was recorded as aborted, \
              although it may have committed",
    advice: "record it as unknown (Jepsen's :info) unless the database said that it aborted",
    find: timeout_as_failure,
};

pub(super) const FAILED_BUT_SEEN: Rule = Rule {
    name: "failed-but-seen",
    certainty: Certainty::Possible,
    meaning: "a transaction recorded as aborted was seen by others: it committed after all, or the \
              database shows aborted writes",
    advice: "look at the error it was given; unless it says that the transaction was rolled back, \
             the outcome is unknown",
    find: failed_but_seen,
};

pub(super) const RECORDED_BEFORE_COMMIT: Rule = Rule {
    name: "recorded-before-commit",
    certainty: Certainty::Possible,
    meaning: "a write was missed by a transaction that began after its own was recorded as \
              committed, and seen later: the commit came after its record, or reads are stale",
    advice: "record the outcome only after the answer to COMMIT (auto-commit off, flush before \
             reply); if it is so already, check read-your-writes or strict-serializable",
    find: recorded_before_commit,
};

/// Words of errors that do not tell whether a transaction committed.
const INDEFINITE: [&str; 7] = [
    "timeout",
    "timed out",
    "timed-out",
    "connection reset",
    "connection closed",
    "connection lost",
    "broken pipe",
];
/// Words of errors that do: a lock's timeout is a definite answer of the database.
const DEFINITE: [&str; 5] = ["lock", "statement timeout", "rolled back", "rollback", "abort"];

fn timeout_as_failure(recording: &Recording<'_>) -> Examples {
    let history = recording.history;
    let mut examples = Examples::default();
    examples.add_remarks(recording, "fail-after-timeout");
    if examples.total > 0 {
        // The importer has seen the same transactions.
        return examples;
    }
    let aborted = |txn: &TxnId| history.outcome(*txn) == Outcome::Aborted;
    for txn in history.txns().filter(aborted) {
        let error = match history.datum(history.error(txn)) {
            Datum::Text(text) | Datum::Keyword(text) | Datum::Other(text) => {
                text.to_ascii_lowercase()
            }
            _ => continue,
        };
        let contains = |words: &[&str]| words.iter().any(|word| error.contains(word));
        let writes = |op: &OpId| history.op(*op).kind.is_write();
        if let Some(write) = history.ops_of(txn).find(writes)
            && contains(&INDEFINITE)
            && !contains(&DEFINITE)
        {
            examples.add(Some(write), || {
                let told = recording.value(history.error(txn));
                format!("{} is recorded as aborted, its client was told {told}", recording.txn(txn))
            });
        }
    }
    examples
}

fn failed_but_seen(recording: &Recording<'_>) -> Examples {
    let mut examples = Examples::default();
    for misread in recording.index.misreads() {
        let MisreadKind::Aborted { write } = misread.kind else { continue };
        examples.add(Some(misread.read), || {
            format!(
                "{} read {} = {} from {}, recorded as aborted",
                recording.txn_of(misread.read),
                recording.key(misread.key),
                recording.value(recording.history.op(write).value),
                recording.txn_of(write)
            )
        });
    }
    examples
}

/// A committed writer whose write a later reader missed, and that somebody saw.
/// *Later* is by time, or without times within the writer's session.
fn recorded_before_commit(recording: &Recording<'_>) -> Examples {
    let missed = if recording.history.has_times() {
        missed_in_time(recording)
    } else {
        missed_in_session(recording)
    };
    let mut examples = Examples::default();
    if missed.is_empty() {
        return examples;
    }
    let seen = seen_writes(recording);
    for Missed { writer, reader, read } in missed {
        if seen.contains(&(writer, read.key)) {
            examples.add(Some(read.op), || {
                format!(
                    "{} did not see {} as {} had written it, although that had ended before; \
                     others saw it",
                    recording.txn(reader),
                    recording.key(read.key),
                    recording.txn(writer)
                )
            });
        }
    }
    examples
}

/// A write that should have been seen and was not.
struct Missed {
    writer: TxnId,
    reader: TxnId,
    read: ExternalRead,
}

/// Writes that a transaction other than their own saw.
fn seen_writes(recording: &Recording<'_>) -> HashSet<(TxnId, KeyId)> {
    let (history, index) = (recording.history, recording.index);
    let mut seen = HashSet::new();
    for reader in history.txns() {
        for read in index.reads_of(reader) {
            if let Origin::Txn(writer) = read.origin
                && writer != reader
            {
                seen.insert((writer, read.key));
            }
        }
    }
    seen
}

/// Reads that saw the initial state, or an earlier write of their session, after a
/// committed write of the same session.
fn missed_in_session(recording: &Recording<'_>) -> Vec<Missed> {
    let (history, index) = (recording.history, recording.index);
    let mut missed = Vec::new();
    let mut last_writer: HashMap<KeyId, TxnId> = HashMap::new();
    for session in history.sessions() {
        last_writer.clear();
        let start = history.session_range(session).start;
        for reader in history.txns_of(session) {
            for read in index.reads_of(reader) {
                let Some(&writer) = last_writer.get(&read.key) else { continue };
                let is_older = match read.origin {
                    Origin::Initial => true,
                    Origin::Txn(origin) => (start..writer.0).contains(&origin.0),
                    Origin::Several | Origin::Nobody => false,
                };
                if is_older {
                    missed.push(Missed { writer, reader, read });
                }
            }
            if history.outcome(reader) == Outcome::Committed {
                last_writer.extend(index.written_by(reader).iter().map(|&key| (key, reader)));
            }
        }
    }
    missed
}

/// Reads that began after a committed write had ended, and saw the initial state or
/// a write that had ended before that one was invoked.
///
/// Per key, committed writes are sorted by their ends. Of those that had ended when
/// a reader began, the one invoked last is the one to compare with.
fn missed_in_time(recording: &Recording<'_>) -> Vec<Missed> {
    let (history, index) = (recording.history, recording.index);
    let mut reads: Vec<(TxnId, ExternalRead)> = history
        .txns()
        .filter(|&txn| history.txn_interval(txn).invoked != ALWAYS)
        .flat_map(|txn| index.reads_of(txn).map(move |read| (txn, read)))
        .collect();
    reads.sort_by_key(|(_, read)| read.key);
    let mut missed = Vec::new();
    for of_key in reads.chunk_by(|one, other| one.1.key == other.1.key) {
        let ended = last_invoked_by_end(recording, of_key[0].1.key);
        for &(reader, read) in of_key {
            let origin_end = match read.origin {
                Origin::Initial => ALWAYS,
                Origin::Txn(origin) => history.txn_interval(origin).completed,
                Origin::Several | Origin::Nobody => continue,
            };
            let began = history.txn_interval(reader).invoked;
            let before = ended.partition_point(|write| write.end < began);
            let Some(write) = ended[..before].last() else { continue };
            if origin_end < write.last_invoked && write.last != reader {
                missed.push(Missed { writer: write.last, reader, read });
            }
        }
    }
    missed.sort_by_key(|missed| missed.read.op);
    missed
}

/// A write's end, and which of it and those that ended earlier was invoked last.
struct EndedWrite {
    end: Time,
    last: TxnId,
    last_invoked: Time,
}

fn last_invoked_by_end(recording: &Recording<'_>, key: KeyId) -> Vec<EndedWrite> {
    let history = recording.history;
    let committed = |txn: &&TxnId| history.outcome(**txn) == Outcome::Committed;
    let mut ended: Vec<EndedWrite> = recording
        .index
        .writers_of(key)
        .iter()
        .filter(committed)
        .map(|&txn| {
            let interval = history.txn_interval(txn);
            EndedWrite { end: interval.completed, last: txn, last_invoked: interval.invoked }
        })
        .filter(|write| write.end != NEVER && write.last_invoked != ALWAYS)
        .collect();
    ended.sort_by_key(|write| write.end);
    for index in 1..ended.len() {
        if ended[index - 1].last_invoked > ended[index].last_invoked {
            ended[index].last = ended[index - 1].last;
            ended[index].last_invoked = ended[index - 1].last_invoked;
        }
    }
    ended
}
