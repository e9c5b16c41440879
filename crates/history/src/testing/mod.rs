//! Comparing histories by what they say, whatever their ids, for tests.

mod random;

pub(crate) use random::random_history;

use crate::history::{History, KeyId, OpId, OpKind, SessionId, TxnId};
use crate::value::Value;
use std::fmt::Write;

/// Fails unless both histories say the same: sessions, labels, operations,
/// outcomes, times, initial values, orders, rows, predicates and events. Ids,
/// places in the source and remarks may differ.
#[track_caller]
pub(crate) fn same(left: &History, right: &History) {
    compare(&facts(left), &facts(right));
}

/// Fails unless both histories are [`same()`] and have the same ids, places in
/// the source and remarks.
#[track_caller]
pub(crate) fn identical(left: &History, right: &History) {
    same(left, right);
    compare(&bookkeeping(left), &bookkeeping(right));
}

#[track_caller]
fn compare(left: &[String], right: &[String]) {
    for (line, (left, right)) in left.iter().zip(right).enumerate() {
        assert_eq!(left, right, "fact {line} differs");
    }
    assert_eq!(left.len(), right.len(), "one history says more");
}

/// All that a history says, one fact a line, each beginning with what it is
/// about. Formats that lose some kinds of facts compare the other ones.
pub(crate) fn facts(history: &History) -> Vec<String> {
    let mut facts = vec![format!("initial * {:?}", history.datum(history.initial_default()))];
    let mut initial: Vec<String> = history
        .declared_initial()
        .iter()
        .map(|&(key, value)| format!("initial {} {:?}", name(history, key), history.datum(value)))
        .collect();
    initial.sort();
    facts.extend(initial);
    for session in history.sessions() {
        session_facts(history, session, &mut facts);
    }
    for chain in &history.orders().versions {
        let (key, values) = (name(history, chain.key), data(history, &chain.values));
        facts.push(format!("order {key} {values} complete {}", chain.complete));
    }
    facts.push(format!("serial {:?}", history.orders().total));
    for event in history.events() {
        facts.push(format!("event {:?} {:?}", event.time, event.text));
    }
    facts
}

fn session_facts(history: &History, session: SessionId, facts: &mut Vec<String>) {
    facts.push(format!(
        "session {session:?} {:?} endpoint {:?} origin {:?}",
        history.datum(history.session_label(session)),
        history.datum(history.endpoint(session)),
        history.datum(history.origin(session)),
    ));
    for txn in history.txns_of(session) {
        txn_facts(history, txn, facts);
    }
}

fn txn_facts(history: &History, txn: TxnId, facts: &mut Vec<String>) {
    facts.push(format!(
        "transaction {txn:?} label {:?} {:?}",
        history.datum(history.txn_label(txn)),
        history.outcome(txn),
    ));
    facts.push(format!("error {txn:?} {:?}", history.datum(history.error(txn))));
    let (times, interval) = (history.txn_times(txn), history.txn_interval(txn));
    facts.push(format!("times {txn:?} {interval:?} {times:?}"));
    facts.push(format!("timestamps {txn:?} {:?}", history.timestamps(txn)));
    facts.push(format!("seen {txn:?} {:?} {:?}", history.number(txn), history.txn_snapshot(txn)));
    for op in history.ops_of(txn) {
        facts.push(format!("operation {op:?} {}", operation(history, op)));
        facts.push(format!("op-times {op:?} {:?}", history.op_interval(op)));
        facts.push(format!("op-snapshot {op:?} {:?}", history.op_snapshot(op)));
        for (column, content) in history.row(op) {
            let (column, content) = (history.datum(column), history.datum(content));
            facts.push(format!("row {op:?} {column:?} {content:?}"));
        }
    }
}

fn operation(history: &History, id: OpId) -> String {
    let op = history.op(id);
    if op.kind == OpKind::ReadList {
        let elements = data(history, history.list(id));
        return format!("{:?} {} {elements}", op.kind, name(history, op.key));
    }
    if op.kind.has_key() {
        let value = history.datum(op.value);
        return format!("{:?} {} {value:?}", op.kind, name(history, op.key));
    }
    let predicate = history.predicate(id);
    let mut text = format!("{:?} {}", op.kind, predicate.display(history.values()));
    for matched in [true, false] {
        for row in predicate.rows.iter().filter(|row| row.matched == matched) {
            let (key, value) = (name(history, row.key), history.datum(row.value));
            let _ = write!(text, " {key}={value:?} {matched}");
        }
    }
    text
}

fn name(history: &History, key: KeyId) -> String {
    format!("{:?}", history.datum(history.key_name(key)))
}

fn data(history: &History, values: &[Value]) -> String {
    let data: Vec<_> = values.iter().map(|&value| history.datum(value)).collect();
    format!("{data:?}")
}

fn bookkeeping(history: &History) -> Vec<String> {
    let columns = &history.columns;
    let mut facts = vec![
        format!("unit {:?}", columns.unit),
        format!("keys {:?}", columns.keys),
        format!("values {:?}", columns.values.table().collect::<Vec<_>>()),
        format!("op keys {:?}", columns.op_keys),
        format!("op values {:?}", columns.op_values),
        format!("positions {:?}", columns.positions),
        format!("lists {:?} {:?}", columns.lists, columns.elements),
        format!("predicates {:?}", columns.predicates),
        format!("times {:?} {:?}", columns.begun, columns.committing),
    ];
    facts.extend(columns.events.iter().map(|event| format!("{event:?}")));
    facts.extend(columns.remarks.iter().map(|remark| format!("{remark:?}")));
    facts
}
