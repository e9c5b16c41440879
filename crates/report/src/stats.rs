//! What is in a history: the figures that tell whether a recording is worth checking.

use crate::{Size, TABLES_SCHEMA};
use isolde_history::{
    ALWAYS, Datum, ExternalRead, History, Index, KeyId, NEVER, OpKind, Origin, SessionId, Time,
    TxnId, Value,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// The figures of one history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stats {
    /// The version of this form.
    pub schema: u32,
    /// The file, as it was named.
    pub file: String,
    /// Its format.
    pub format: String,
    /// How large the history is.
    pub history: Size,
    /// Operations by kind; kinds that do not occur are left out.
    pub operations: Vec<KindCount>,
    /// Where reads got their values from.
    pub reads: ReadOrigins,
    /// Writes per key that is written at all.
    pub writes_per_key: Option<Spread>,
    /// Operations per transaction.
    pub transaction_length: Option<Spread>,
    /// Elements per list read.
    pub list_length: Option<Spread>,
    /// Keys written by a counted transaction that had read them before.
    pub read_modify_write: Share,
    /// When the transactions ran, if recorded.
    pub times: Option<Times>,
    /// Servers and their sessions, if recorded.
    pub endpoints: Vec<EndpointCount>,
    /// Faults and other events beside the transactions.
    pub events: usize,
    /// What the importer noticed, by kind.
    pub remarks: Vec<RemarkCount>,
    /// Bytes that history and index hold in memory.
    pub memory_bytes: usize,
}

/// How often a kind of operation occurs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KindCount {
    /// The kind, in kebab case.
    pub kind: &'static str,
    /// How often.
    pub count: usize,
}

/// Where the reads of counted transactions got their values from. A read by
/// condition counts once per row it looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReadOrigins {
    /// The initial state.
    pub initial: usize,
    /// Another transaction.
    pub other: usize,
    /// The reading transaction itself: reads after an own write of the key.
    pub own: usize,
    /// One of several transactions that wrote the same value.
    pub several: usize,
    /// Nobody whose write can be told: the value is not known, or is an anomaly.
    pub unresolved: usize,
}

/// How a number is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// The smallest.
    pub min: usize,
    /// As many are below as above; of two in the middle the smaller.
    pub median: usize,
    /// The largest.
    pub max: usize,
}

/// A part of a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// The part.
    pub count: usize,
    /// The whole.
    pub of: usize,
}

/// When transactions ran.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    /// From the first invocation to the last completion, in seconds.
    pub span_seconds: f64,
    /// Completed transactions per second; absent if the span is zero.
    pub transactions_per_second: Option<f64>,
    /// Half of the transactions took at most this long, in milliseconds.
    pub latency_median_ms: f64,
    /// 99 of 100 transactions took at most this long, in milliseconds.
    pub latency_p99_ms: f64,
    /// Transactions whose beginning and end are recorded.
    pub timed: usize,
}

/// A server and how many sessions talked to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EndpointCount {
    /// The server.
    pub endpoint: String,
    /// Its sessions.
    pub sessions: usize,
}

/// A kind of remark and how often the importer made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RemarkCount {
    /// The kind.
    pub kind: String,
    /// How often.
    pub count: usize,
    /// The first of them.
    pub first: String,
}

impl Stats {
    /// The figures of a history read from `file`.
    pub fn new(history: &History, index: &Index, (file, format): (&str, &str)) -> Stats {
        let all_ops = history.txns().flat_map(|txn| history.ops_of(txn));
        let list_reads = all_ops.filter(|&op| history.op(op).kind == OpKind::ReadList);
        Stats {
            schema: TABLES_SCHEMA,
            file: file.to_owned(),
            format: format.to_owned(),
            history: Size::of(history),
            operations: by_kind(history),
            reads: read_origins(history, index),
            writes_per_key: spread(
                history
                    .keys()
                    .map(|key| index.versions_of(history, key).len())
                    .filter(|&count| count > 0),
            ),
            transaction_length: spread(history.txns().map(|txn| history.op_range(txn).len())),
            list_length: spread(list_reads.map(|op| history.list(op).len())),
            read_modify_write: read_modify_write(history, index),
            times: times(history),
            endpoints: endpoints(history),
            events: history.events().len(),
            remarks: remarks(history),
            memory_bytes: history.memory() + index.memory(),
        }
    }
}

/// The name of a kind of operation.
pub(crate) const fn kind_name(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Read => "read",
        OpKind::Write => "write",
        OpKind::Append => "append",
        OpKind::ReadList => "read-list",
        OpKind::Insert => "insert",
        OpKind::Delete => "delete",
        OpKind::ReadOther => "read-other",
        OpKind::PredicateRead => "predicate-read",
        OpKind::PredicateUpdate => "predicate-update",
        OpKind::Call => "call",
    }
}

fn by_kind(history: &History) -> Vec<KindCount> {
    let mut counts = [0; OpKind::ALL.len()];
    for &kind in history.op_kinds() {
        counts[kind as usize] += 1;
    }
    let all = OpKind::ALL.into_iter().zip(counts);
    all.filter(|&(_, count)| count > 0)
        .map(|(kind, count)| KindCount { kind: kind_name(kind), count })
        .collect()
}

fn spread(numbers: impl Iterator<Item = usize>) -> Option<Spread> {
    let mut sorted: Vec<usize> = numbers.collect();
    sorted.sort_unstable();
    let (&min, &max) = (sorted.first()?, sorted.last()?);
    Some(Spread { min, median: sorted[(sorted.len() - 1) / 2], max })
}

/// Observations of a transaction: one per item read, one per row of a predicate.
fn observations(history: &History, txn: TxnId) -> usize {
    let of = |op| match history.op(op).kind {
        OpKind::Read | OpKind::ReadList => 1,
        OpKind::PredicateRead | OpKind::PredicateUpdate => history.predicate(op).rows.len(),
        _ => 0,
    };
    history.ops_of(txn).map(of).sum()
}

/// Reads of a value that was never learned: no read for the index.
fn unlearned(history: &History, txn: TxnId) -> usize {
    let is_unlearned = |op: &_| {
        let it = history.op(*op);
        it.kind == OpKind::Read && it.value == Value::UNKNOWN
    };
    history.ops_of(txn).filter(is_unlearned).count()
}

fn read_origins(history: &History, index: &Index) -> ReadOrigins {
    let mut reads = ReadOrigins::default();
    for txn in history.txns().filter(|&txn| index.is_counted(txn)) {
        let external = index.reads_of(txn);
        let unlearned = unlearned(history, txn);
        let all = observations(history, txn);
        reads.own += all.saturating_sub(external.len() + unlearned);
        reads.unresolved += unlearned;
        for ExternalRead { origin, .. } in external {
            match origin {
                Origin::Initial => reads.initial += 1,
                Origin::Txn(writer) if writer == txn => reads.own += 1,
                Origin::Txn(_) => reads.other += 1,
                Origin::Several => reads.several += 1,
                Origin::Nobody => reads.unresolved += 1,
            }
        }
    }
    reads
}

/// Of all pairs of a counted transaction and a key it writes, those it had read.
fn read_modify_write(history: &History, index: &Index) -> Share {
    let mut share = Share { count: 0, of: 0 };
    for txn in history.txns().filter(|&txn| index.is_counted(txn)) {
        let written = index.written_by(txn);
        share.of += written.len();
        // External reads precede the transaction's own write of their key.
        let mut read: Vec<KeyId> = index.reads_of(txn).map(|read| read.key).collect();
        read.sort_unstable();
        read.dedup();
        share.count += read.iter().filter(|key| written.binary_search(key).is_ok()).count();
    }
    share
}

fn times(history: &History) -> Option<Times> {
    // An importer that takes the order of lines for time knows no durations.
    if history.remarks().iter().any(|remark| remark.kind == "order-as-time") {
        return None;
    }
    let mut latencies: Vec<Time> = Vec::new();
    let (mut first, mut last) = (NEVER, ALWAYS);
    for txn in history.txns() {
        let interval = history.txn_interval(txn);
        if interval.invoked != ALWAYS {
            first = first.min(interval.invoked);
            last = last.max(interval.invoked);
        }
        if interval.completed != NEVER {
            last = last.max(interval.completed);
        }
        if interval.invoked != ALWAYS && interval.completed != NEVER {
            latencies.push(interval.completed.saturating_sub(interval.invoked));
        }
    }
    if latencies.is_empty() || first == NEVER {
        return None;
    }
    latencies.sort_unstable();
    let nearest_rank = |percent: usize| latencies[(latencies.len() * percent).div_ceil(100) - 1];
    let span_seconds = as_float(last.saturating_sub(first)) / 1e9;
    Some(Times {
        span_seconds,
        transactions_per_second: (span_seconds > 0.0)
            .then(|| f64::from(latencies.len() as u32) / span_seconds),
        latency_median_ms: as_float(nearest_rank(50)) / 1e6,
        latency_p99_ms: as_float(nearest_rank(99)) / 1e6,
        timed: latencies.len(),
    })
}

/// Figures for people need no more digits than a float has.
#[allow(clippy::cast_precision_loss)]
const fn as_float(number: Time) -> f64 {
    number as f64
}

fn endpoints(history: &History) -> Vec<EndpointCount> {
    let endpoint = |session: SessionId| history.datum(history.endpoint(session));
    let mut counts: BTreeMap<Datum<'_>, usize> = BTreeMap::new();
    for session in history.sessions() {
        *counts.entry(endpoint(session)).or_default() += 1;
    }
    counts.remove(&Datum::Nil);
    let named = |(endpoint, sessions): (Datum<'_>, usize)| {
        // An address is clearer without the quotes its colon would need.
        let endpoint = match endpoint {
            Datum::Text(text) if !text.contains(char::is_control) => text.to_owned(),
            other => other.to_string(),
        };
        EndpointCount { endpoint, sessions }
    };
    counts.into_iter().map(named).collect()
}

fn remarks(history: &History) -> Vec<RemarkCount> {
    let mut counts: BTreeMap<&str, RemarkCount> = BTreeMap::new();
    for remark in history.remarks() {
        let entry = counts.entry(&remark.kind).or_insert_with(|| RemarkCount {
            kind: remark.kind.to_string(),
            count: 0,
            first: remark.text.clone(),
        });
        entry.count += 1;
    }
    counts.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_history::format::parse_text;

    fn stats(text: &str) -> Stats {
        let history = parse_text(text).expect("a well-formed history");
        let index = Index::new(&history);
        Stats { memory_bytes: 0, ..Stats::new(&history, &index, ("test", "text")) }
    }

    #[test]
    fn every_figure_of_a_history_is_counted() {
        let found = stats(
            "session A endpoint db1:5432
             session B endpoint db2:5432
             event 5 partition
             A @0..1000000: r(x,nil) w(x,1) r(x,1)
             B @500000..2000000: r(x,1) r(y,7) w(x,2)
             B @2000000..4000000: w(x,3) aborted
             A @1000000..?: w(y,4) unknown",
        );
        assert_eq!(
            found,
            Stats {
                schema: TABLES_SCHEMA,
                file: "test".into(),
                format: "text".into(),
                history: Size {
                    sessions: 2,
                    transactions: 4,
                    operations: 8,
                    keys: 2,
                    committed: 2,
                    aborted: 1,
                    unknown: 1,
                },
                operations: vec![
                    KindCount { kind: "read", count: 4 },
                    KindCount { kind: "write", count: 4 },
                ],
                reads: ReadOrigins { initial: 1, other: 1, own: 1, several: 0, unresolved: 1 },
                writes_per_key: Some(Spread { min: 1, median: 1, max: 3 }),
                transaction_length: Some(Spread { min: 1, median: 1, max: 3 }),
                list_length: None,
                read_modify_write: Share { count: 2, of: 2 },
                times: Some(Times {
                    span_seconds: 0.004,
                    transactions_per_second: Some(750.0),
                    latency_median_ms: 1.5,
                    latency_p99_ms: 2.0,
                    timed: 3,
                }),
                endpoints: vec![
                    EndpointCount { endpoint: "db1:5432".into(), sessions: 1 },
                    EndpointCount { endpoint: "db2:5432".into(), sessions: 1 },
                ],
                events: 1,
                remarks: vec![],
                memory_bytes: 0,
            }
        );
    }

    #[test]
    fn reads_of_repeated_and_unlearned_values_are_told_apart() {
        let found = stats("A: w(x,1)\nB: w(x,1)\nC: r(x,1) r(y,?)");
        let expected = ReadOrigins { several: 1, unresolved: 1, ..ReadOrigins::default() };
        assert_eq!(found.reads, expected);
    }

    #[test]
    fn lists_have_lengths_and_a_history_without_them_has_none() {
        let lists = stats("A: a(x,1) a(x,2)\nB: r(x,[1 2]) r(y,[])");
        assert_eq!(lists.list_length, Some(Spread { min: 0, median: 0, max: 2 }));
        assert_eq!(stats("A: w(x,1)").list_length, None);
    }

    #[test]
    fn a_history_without_times_has_none_and_one_instant_has_no_throughput() {
        assert_eq!(stats("A: w(x,1)").times, None);
        let instant = stats("A @5..5: w(x,1)").times.expect("times");
        assert_eq!(instant.transactions_per_second, None);
    }

    #[test]
    fn a_blind_write_is_no_read_modify_write() {
        assert_eq!(stats("A: w(x,1) r(x,1)").read_modify_write, Share { count: 0, of: 1 });
        assert_eq!(stats("A: r(x,nil) w(x,1)").read_modify_write, Share { count: 1, of: 1 });
    }
}
