//! The history inside a page: columns that a browser reads at once and draws from in parts.
//!
//! A hundred thousand transactions must be there within two seconds, so everything is a flat
//! array or one long string. Numbers stay numbers; every other value is the text that is shown.
//! Of very large histories, the transactions around those that are involved are kept.

use super::layers::layers;
use isolde_history::{
    ALWAYS, Datum, History, Index, NEVER, OpId, OpKind, Outcome, PositionUnit, Time, TxnId, Value,
};
use serde::Serialize;
use std::collections::HashSet;

/// Operations that a page holds at most.
const OPS_MAX: usize = 3_000_000;
/// Whole numbers that a browser keeps exactly.
const EXACT_MAX: i128 = 1 << 53;

/// What the page knows of a history.
#[derive(Serialize)]
pub(super) struct Columns {
    /// Whether these are all transactions.
    whole: bool,
    /// Transactions of the history, shown or not.
    total: usize,
    sessions: Vec<SessionColumn>,
    /// How many transactions each session has here.
    session_txns: Vec<usize>,
    /// Names of transactions, where they do not follow from session and place.
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Vec<String>>,
    /// A letter for each transaction: `c`, `a` or `u`.
    outcomes: String,
    /// How many operations each transaction has.
    txn_ops: Vec<usize>,
    /// Nanoseconds since the first of them; null where not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    invoked: Option<Vec<Option<i64>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed: Option<Vec<Option<i64>>>,
    /// Places in an order that explains who read from whom, where there are no times.
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<Vec<u32>>,
    /// `line`, `record` or `index`.
    unit: &'static str,
    /// Where each transaction's first operation stands.
    places: Vec<u32>,
    keys: Vec<String>,
    /// A letter for each operation.
    kinds: String,
    /// The key of each operation; -1 for reads by condition.
    op_keys: Vec<i64>,
    values: Vec<Shown>,
    events: Vec<EventColumn>,
    /// In ascending order.
    #[serde(skip)]
    shown: Vec<TxnId>,
}

#[derive(Serialize)]
struct SessionColumn {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
}

#[derive(Serialize)]
struct EventColumn {
    time: i64,
    text: String,
}

/// A value as a number, or as its text.
#[derive(Serialize)]
#[serde(untagged)]
enum Shown {
    Number(i64),
    Text(String),
}

impl Columns {
    /// The columns of a history in which these transactions matter most.
    pub(super) fn new(history: &History, index: &Index, involved: &[TxnId]) -> Columns {
        let shown = shown_txns(history, involved);
        let whole = shown.len() == history.txn_count();
        let ops: Vec<OpId> = shown.iter().flat_map(|&txn| history.ops_of(txn)).collect();
        let origin = origin(history);
        let relative =
            |time: Time| (time != NEVER && time != ALWAYS).then(|| time.saturating_sub(origin));
        let times = history.has_times();
        let column = |of: fn(&History, TxnId) -> Time| {
            times.then(|| shown.iter().map(|&txn| relative(of(history, txn))).collect())
        };
        let labelled = shown.iter().any(|&txn| history.txn_label(txn) != Value::NIL);
        let session_of_shown = |session| {
            let range = history.session_range(session);
            let at = |txn: u32| shown.partition_point(|shown| shown.0 < txn);
            at(range.end) - at(range.start)
        };
        Columns {
            whole,
            total: history.txn_count(),
            sessions: history.sessions().map(|it| session_column(history, it)).collect(),
            session_txns: history.sessions().map(session_of_shown).collect(),
            names: (labelled || !whole)
                .then(|| shown.iter().map(|&txn| history.readable_name(txn)).collect()),
            outcomes: shown.iter().map(|&txn| outcome_letter(history.outcome(txn))).collect(),
            txn_ops: shown.iter().map(|&txn| history.op_range(txn).len()).collect(),
            invoked: column(|history, txn| history.txn_interval(txn).invoked),
            completed: column(|history, txn| history.txn_interval(txn).completed),
            layers: (!times).then(|| layers(history, index, &shown)),
            unit: match history.position_unit() {
                PositionUnit::Line => "line",
                PositionUnit::Record => "record",
                PositionUnit::Index => "index",
            },
            places: shown.iter().map(|&txn| first_place(history, txn)).collect(),
            keys: history.keys().map(|key| text(history, history.key_name(key))).collect(),
            kinds: ops.iter().map(|&op| kind_letter(history.op(op).kind)).collect(),
            op_keys: ops.iter().map(|&op| key_of(history, op)).collect(),
            values: ops.iter().map(|&op| shown_value(history, op)).collect(),
            events: events(history, relative),
            shown,
        }
    }

    /// Where a transaction stands in these columns.
    pub(super) fn place(&self, txn: TxnId) -> Option<usize> {
        self.shown.binary_search(&txn).ok()
    }
}

/// When the first transaction was invoked.
pub(super) fn origin(history: &History) -> Time {
    let times = history.txns().map(|txn| history.txn_interval(txn));
    let known = times.flat_map(|times| [times.invoked, times.completed]);
    known.filter(|&time| time != ALWAYS && time != NEVER).min().unwrap_or(0)
}

/// All of them, or those around the involved ones, in order.
fn shown_txns(history: &History, involved: &[TxnId]) -> Vec<TxnId> {
    if history.op_count() <= OPS_MAX {
        return history.txns().collect();
    }
    let mut shown: HashSet<TxnId> = involved.iter().copied().collect();
    let anchors = if involved.is_empty() { vec![TxnId(0)] } else { involved.to_vec() };
    let mut ops: usize = shown.iter().map(|&txn| history.op_range(txn).len()).sum();
    let last = history.txn_count() as u32 - 1;
    'grow: for distance in 0..=last {
        for anchor in &anchors {
            let below = anchor.0.checked_sub(distance);
            let above = anchor.0.checked_add(distance).filter(|&txn| txn <= last);
            for txn in [below, above].into_iter().flatten().map(TxnId) {
                if shown.insert(txn) {
                    ops += history.op_range(txn).len();
                }
            }
        }
        if ops >= OPS_MAX {
            break 'grow;
        }
    }
    let mut shown: Vec<TxnId> = shown.into_iter().collect();
    shown.sort_unstable();
    shown
}

fn session_column(history: &History, session: isolde_history::SessionId) -> SessionColumn {
    let name = match history.datum(history.session_label(session)) {
        Datum::Int(number) => format!("S{number}"),
        label => label.to_string(),
    };
    let endpoint = match history.datum(history.endpoint(session)) {
        Datum::Nil => None,
        endpoint => Some(endpoint.to_string()),
    };
    SessionColumn { name, endpoint }
}

fn first_place(history: &History, txn: TxnId) -> u32 {
    history.ops_of(txn).next().map_or(0, |op| history.position(op))
}

fn key_of(history: &History, op: OpId) -> i64 {
    let op = history.op(op);
    if op.kind.has_key() { i64::from(op.key.0) } else { -1 }
}

fn outcome_letter(outcome: Outcome) -> char {
    match outcome {
        Outcome::Committed => 'c',
        Outcome::Aborted => 'a',
        Outcome::Unknown => 'u',
    }
}

fn kind_letter(kind: OpKind) -> char {
    match kind {
        OpKind::Read => 'r',
        OpKind::Write => 'w',
        OpKind::Append => 'a',
        OpKind::ReadList => 'l',
        OpKind::Insert => 'i',
        OpKind::Delete => 'd',
        OpKind::ReadOther => 'o',
        OpKind::PredicateRead => 'p',
        OpKind::PredicateUpdate => 'u',
        OpKind::Call => 'c',
    }
}

fn text(history: &History, value: Value) -> String {
    const CHARACTERS_MAX: usize = 200;
    crate::escape::cut(&history.datum(value).to_string(), CHARACTERS_MAX)
}

/// Lists and rows are shown by their ends: what was last is what readers compare.
fn shown_value(history: &History, op: OpId) -> Shown {
    const ENDS: usize = 3;
    let it = history.op(op);
    match it.kind {
        OpKind::ReadList => {
            let list = history.list(op);
            let skipped = list.len().saturating_sub(ENDS);
            let last: Vec<String> = list[skipped..].iter().map(|&it| text(history, it)).collect();
            Shown::Text(match skipped {
                0 => format!("[{}]", last.join(" ")),
                _ => format!("[… {}] ({})", last.join(" "), list.len()),
            })
        }
        OpKind::PredicateRead | OpKind::PredicateUpdate => {
            let predicate = history.predicate(op);
            let rows = predicate.rows.iter().filter(|row| row.matched);
            let named: Vec<String> = rows
                .clone()
                .take(ENDS)
                .map(|row| text(history, history.key_name(row.key)))
                .collect();
            let more = if rows.count() > ENDS { " …" } else { "" };
            let condition = predicate.display(history.values());
            Shown::Text(format!("{condition}: {}{more}", named.join(" ")))
        }
        _ => match history.datum(it.value) {
            Datum::Int(number) if (-EXACT_MAX..=EXACT_MAX).contains(&number) => {
                Shown::Number(i64::try_from(number).expect("within 53 bits"))
            }
            _ => Shown::Text(text(history, it.value)),
        },
    }
}

fn events(history: &History, relative: impl Fn(Time) -> Option<i64>) -> Vec<EventColumn> {
    const EVENTS_MAX: usize = 10_000;
    let timed = history.events().iter().filter_map(|event| {
        let time = event.time.and_then(&relative)?;
        Some(EventColumn { time, text: crate::escape::cut(&event.text, 200) })
    });
    timed.take(EVENTS_MAX).collect()
}
