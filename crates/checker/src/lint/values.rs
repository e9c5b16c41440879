//! Mistakes in the values that a workload writes and starts with.

use super::{Certainty, Examples, Recording, Rule};
use hashbrown::HashMap;
use isolde_history::{ALWAYS, Datum, KeyId, MisreadKind, OpId, OpKind, Origin, Value};
use std::collections::BTreeMap;

pub(super) const OTHER_INITIAL_VALUE: Rule = Rule {
    name: "other-initial-value",
    certainty: Certainty::Likely,
    meaning: "a value that nobody wrote was read where nobody had written yet, or of several keys: \
              the keys start with it",
    advice: "say so with `--initial NUMBER`, or with an `init` line of the text format",
    find: |recording| Unwritten::of(recording).initial(recording),
};

pub(super) const MISSING_WRITER: Rule = Rule {
    name: "missing-writer",
    certainty: Certainty::Possible,
    meaning: "a value was read that no recorded transaction wrote: the recording lacks \
              transactions, or the database made it up",
    advice: "record every transaction, also those that load the data and those that failed",
    find: missing_writer,
};

pub(super) const REPEATED_WRITE: Rule = Rule {
    name: "repeated-write",
    certainty: Certainty::Certain,
    meaning: "one value was written to one key more than once, so a reader of it does not tell \
              which write it saw",
    advice: "write every value once; a retry of a transaction is a new transaction with new values",
    find: repeated_write,
};

/// Reads of values that nobody wrote, by whether the value looks initial.
struct Unwritten {
    initial: Vec<(KeyId, OpId, Value)>,
    other: Vec<(KeyId, OpId, Option<Value>)>,
}

impl Unwritten {
    /// A value looks initial if most reads that nothing explains saw it and none that something
    /// does speaks against it, and it was read of several keys, or of a key nobody
    /// writes, or by a transaction that ended before the key's first write began.
    fn of(recording: &Recording<'_>) -> Unwritten {
        let (history, index) = (recording.history, recording.index);
        let thin_air = || {
            let misreads = index.misreads().iter();
            misreads.filter(|misread| misread.kind == MisreadKind::ThinAir)
        };
        let value_of = |op: OpId, key: KeyId| match history.op(op).kind {
            OpKind::Read => Some(history.op(op).value),
            OpKind::PredicateRead | OpKind::PredicateUpdate => {
                let rows = &history.predicate(op).rows;
                rows.iter().find(|row| row.key == key).map(|row| row.value)
            }
            // Which element of a list is at fault the misread does not say.
            _ => None,
        };
        let mut keys: HashMap<Value, Keys> = HashMap::new();
        for misread in thin_air() {
            if let Some(value) = value_of(misread.read, misread.key) {
                keys.entry(value).or_insert(Keys::One(misread.key)).add(misread.key);
            }
        }
        let common = common(recording, thin_air().filter_map(|it| value_of(it.read, it.key)));
        let mut first_writes: HashMap<KeyId, i64> = HashMap::new();
        let mut unwritten = Unwritten { initial: Vec::new(), other: Vec::new() };
        for misread in thin_air() {
            let (key, read) = (misread.key, misread.read);
            let value = value_of(read, key);
            let looks_initial = value.filter(|_| value == common).is_some_and(|value| {
                let first_write = *first_writes.entry(key).or_insert_with(|| {
                    let writers = index.versions_of(history, key).iter();
                    let invoked = writers.map(|write| history.txn_interval(write.txn).invoked);
                    invoked.min().unwrap_or(i64::MAX)
                });
                let reader_end = history.txn_interval(history.txn_of(read)).completed;
                keys[&value] == Keys::Several
                    || index.versions_of(history, key).is_empty()
                    || first_write != ALWAYS && reader_end < first_write
            });
            match value {
                Some(value) if looks_initial => unwritten.initial.push((key, read, value)),
                value => unwritten.other.push((key, read, value)),
            }
        }
        unwritten
    }

    /// One example per value.
    fn initial(&self, recording: &Recording<'_>) -> Examples {
        let mut by_value: BTreeMap<Value, Vec<(KeyId, OpId)>> = BTreeMap::new();
        for &(key, read, value) in &self.initial {
            by_value.entry(value).or_default().push((key, read));
        }
        let mut examples = Examples::default();
        for (value, reads) in by_value {
            let mut keys: Vec<KeyId> = reads.iter().map(|read| read.0).collect();
            keys.sort_unstable();
            keys.dedup();
            examples.add(Some(reads[0].1), || {
                let shown = recording.value(value);
                let try_this = match recording.history.datum(value) {
                    Datum::Int(0..) => format!(": try `--initial {shown}`"),
                    _ => format!(": try the line `init *={shown}`"),
                };
                let counts = (counted(reads.len(), "read"), counted(keys.len(), "key"));
                format!("{} of {} saw {shown}, which nobody wrote{try_this}", counts.0, counts.1)
            });
        }
        examples
    }
}

/// The value that all keys may start with: most of the reads that nothing explains saw it, the
/// history does not say what keys start with, and nobody saw a key before its first write as
/// it would be without an initial value.
fn common(recording: &Recording<'_>, unexplained: impl Iterator<Item = Value>) -> Option<Value> {
    let (history, index) = (recording.history, recording.index);
    let mut counts: HashMap<Value, usize> = HashMap::new();
    for value in unexplained {
        *counts.entry(value).or_default() += 1;
    }
    let all: usize = counts.values().sum();
    let most = counts.into_iter().find(|&(_, count)| 2 * count > all)?.0;
    let declares = |key: KeyId| history.declared_initial().iter().any(|it| it.0 == key);
    let saw_nothing = || {
        let mut reads = history.txns().flat_map(|txn| index.reads_of(txn));
        reads.any(|read| {
            read.origin == Origin::Initial
                && history.op(read.op).kind == OpKind::Read
                && !declares(read.key)
        })
    };
    (!history.has_initial_default() && !saw_nothing()).then_some(most)
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The keys one value was read of.
#[derive(PartialEq)]
enum Keys {
    One(KeyId),
    Several,
}

impl Keys {
    fn add(&mut self, key: KeyId) {
        if *self != Keys::One(key) {
            *self = Keys::Several;
        }
    }
}

fn missing_writer(recording: &Recording<'_>) -> Examples {
    let mut examples = Examples::default();
    examples.add_remarks(recording, "missing-writer");
    for (key, read, value) in Unwritten::of(recording).other {
        examples.add(Some(read), || {
            let (txn, key) = (recording.txn_of(read), recording.key(key));
            match value {
                Some(value) => {
                    let value = recording.value(value);
                    format!("{txn} read {key} = {value}, which nobody wrote")
                }
                None => format!("{txn} read an element of {key} that nobody appended"),
            }
        });
    }
    examples
}

/// Writes of transactions that do not count are included: a retry repeats the value
/// of an attempt that failed.
fn repeated_write(recording: &Recording<'_>) -> Examples {
    let (history, index) = (recording.history, recording.index);
    let mut examples = Examples::default();
    for key in history.keys() {
        let versions = index.versions_of(history, key);
        for group in versions.chunk_by(|one, other| one.value == other.value) {
            // Deletes install tombstones, which need no value of their own.
            let is_delete = history.op(group[0].op()).kind == OpKind::Delete;
            if group.len() < 2 || is_delete {
                continue;
            }
            examples.add(Some(group[0].op()), || {
                let (first, second) = (recording.txn(group[0].txn), recording.txn(group[1].txn));
                let writers = if first == second {
                    format!("{first} more than once")
                } else {
                    format!("{first} and {second}")
                };
                let content = (recording.key(key), recording.value(group[0].value));
                format!("{} = {} was written by {writers}", content.0, content.1)
            });
        }
    }
    examples
}
