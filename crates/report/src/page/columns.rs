//! The history inside a page: columns that a browser reads at once and draws from in parts.
//!
//! A hundred thousand transactions must be there within two seconds and fit into a mail, so
//! everything is a flat array or one long string, and numbers are [`packed`](super::packed_columns).
//! Every value that is no number is the text that is shown.
//! Of very large histories, the transactions around those that are involved are kept.

use super::layers::layers;
use super::packed_columns::{EXACT_MAX, Packed, signed};
use isolde_history::{
    ALWAYS, Datum, History, Index, KeyId, NEVER, OpId, OpKind, Outcome, PositionUnit, Time, TxnId,
    Value,
};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Operations that a page holds at most.
const OPS_MAX: usize = 3_000_000;

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
    /// What transactions are made of: a letter for each operation.
    patterns: Vec<String>,
    /// Which of them each transaction is.
    txn_patterns: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    invoked: Option<Times>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed: Option<Times>,
    /// Places in an order that explains who read from whom, where there are no times, as
    /// differences.
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<String>,
    /// `line`, `record` or `index`.
    unit: &'static str,
    /// Where each transaction's first operation stands, as differences.
    places: String,
    /// Those that are used most come first, as they have the shortest numbers.
    keys: Vec<String>,
    /// The key of each operation, from 1; 0 for reads by condition.
    op_keys: String,
    /// One more than the difference to the last number written, or 0 and the place of a text.
    values: String,
    texts: Vec<String>,
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

/// Nanoseconds since the first of them; null where not recorded.
#[derive(Serialize)]
#[serde(untagged)]
enum Times {
    /// As differences, if all are recorded.
    Packed(String),
    Plain(Vec<Option<i64>>),
}

impl Times {
    fn new(times: Vec<Option<i64>>) -> Times {
        let exact = |time: &Option<i64>| time.filter(|it| (0..=EXACT_MAX).contains(it));
        match times.iter().map(exact).collect::<Option<Vec<i64>>>() {
            Some(times) => Times::Packed(Packed::differences(times.into_iter())),
            None => Times::Plain(times),
        }
    }
}

/// A value as a number, or as its text.
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
            let all = || shown.iter().map(|&txn| relative(of(history, txn))).collect();
            times.then(|| Times::new(all()))
        };
        let labelled = shown.iter().any(|&txn| history.txn_label(txn) != Value::NIL);
        let session_of_shown = |session| {
            let range = history.session_range(session);
            let at = |txn: u32| shown.partition_point(|shown| shown.0 < txn);
            at(range.end) - at(range.start)
        };
        let (patterns, txn_patterns) = patterns(history, &shown);
        let (keys, op_keys) = keys(history, &ops);
        let (values, texts) = values(history, &ops);
        Columns {
            whole,
            total: history.txn_count(),
            sessions: history.sessions().map(|it| session_column(history, it)).collect(),
            session_txns: history.sessions().map(session_of_shown).collect(),
            names: (labelled || !whole)
                .then(|| shown.iter().map(|&txn| history.readable_name(txn)).collect()),
            outcomes: shown.iter().map(|&txn| outcome_letter(history.outcome(txn))).collect(),
            patterns,
            txn_patterns,
            invoked: column(|history, txn| history.txn_interval(txn).invoked),
            completed: column(|history, txn| history.txn_interval(txn).completed),
            layers: (!times).then(|| {
                let layers = layers(history, index, &shown);
                Packed::differences(layers.into_iter().map(i64::from))
            }),
            unit: match history.position_unit() {
                PositionUnit::Line => "line",
                PositionUnit::Record => "record",
                PositionUnit::Index => "index",
            },
            places: Packed::differences(shown.iter().map(|&txn| first_place(history, txn))),
            keys,
            op_keys,
            values,
            texts,
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

fn first_place(history: &History, txn: TxnId) -> i64 {
    history.ops_of(txn).next().map_or(0, |op| i64::from(history.position(op)))
}

/// What transactions are made of, and which of that each one is.
fn patterns(history: &History, shown: &[TxnId]) -> (Vec<String>, String) {
    let mut patterns: Vec<String> = Vec::new();
    let mut places: HashMap<String, u64> = HashMap::new();
    let of_txns = Packed::of(shown.iter().map(|&txn| {
        let letters = history.ops_of(txn).map(|op| kind_letter(history.op(op).kind));
        *places.entry(letters.collect()).or_insert_with_key(|pattern| {
            patterns.push(pattern.clone());
            patterns.len() as u64 - 1
        })
    }));
    (patterns, of_txns)
}

/// The names of keys, and the key of each operation.
fn keys(history: &History, ops: &[OpId]) -> (Vec<String>, String) {
    let key_of = |op: OpId| {
        let op = history.op(op);
        op.kind.has_key().then_some(op.key)
    };
    let mut uses = vec![0_usize; history.key_count()];
    for key in ops.iter().filter_map(|&op| key_of(op)) {
        uses[key.index()] += 1;
    }
    let mut order: Vec<KeyId> = history.keys().collect();
    order.sort_by_key(|key| std::cmp::Reverse(uses[key.index()]));
    let mut numbers = vec![0; history.key_count()];
    for (number, key) in (1..).zip(&order) {
        numbers[key.index()] = number;
    }
    let names = order.iter().map(|&key| text(history, history.key_name(key))).collect();
    let number = |&op: &OpId| key_of(op).map_or(0, |key| numbers[key.index()]);
    (names, Packed::of(ops.iter().map(number)))
}

/// The value of each operation, and those that are texts. What is read was mostly written not
/// long before, so the last number written is near.
fn values(history: &History, ops: &[OpId]) -> (String, Vec<String>) {
    let mut packed = Packed::default();
    let mut texts: Vec<String> = Vec::new();
    let mut places: HashMap<String, u64> = HashMap::new();
    let mut last = 0;
    for &op in ops {
        match shown_value(history, op) {
            Shown::Number(number) => {
                packed.push(signed(number - last) + 1);
                if history.op(op).kind.is_write() {
                    last = number;
                }
            }
            Shown::Text(text) => {
                let place = *places.entry(text).or_insert_with_key(|text| {
                    texts.push(text.clone());
                    texts.len() as u64 - 1
                });
                packed.push(0);
                packed.push(place);
            }
        }
    }
    (packed.into_text(), texts)
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
            Datum::Int(number) => match i64::try_from(number) {
                Ok(number) if (-EXACT_MAX..=EXACT_MAX).contains(&number) => Shown::Number(number),
                _ => Shown::Text(text(history, it.value)),
            },
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
