//! What the builder establishes and what it refuses.

use super::*;
use crate::value::Datum;

fn value(number: u64) -> Value {
    Value::small(number).expect("a small number")
}

#[test]
fn interleaved_transactions_come_out_by_session() {
    let mut builder = HistoryBuilder::new();
    let key = builder.key(value(7));
    let (one, two) = (builder.session(value(1)), builder.session(value(2)));
    let first = builder.begin(two);
    builder.op(OpKind::Write, key, value(10));
    let second = builder.begin(one);
    builder.op(OpKind::Write, key, value(20));
    builder.resume(first);
    builder.op(OpKind::Write, key, value(11));
    builder.resume(second);
    builder.op(OpKind::Write, key, value(21));
    builder.label(first, value(5));
    let history = builder.finish("test").expect("small");
    let written: Vec<Vec<Value>> = history
        .txns()
        .map(|txn| history.ops_of(txn).map(|op| history.op(op).value).collect())
        .collect();
    assert_eq!(written, [[value(20), value(21)], [value(10), value(11)]]);
    assert_eq!(history.txn_name(TxnId(0)), "S1");
    assert_eq!(history.txn_name(TxnId(1)), "T5");
    assert_eq!(history.session_of(TxnId(1)), SessionId(1));
    assert_eq!(history.txn_of(OpId(2)), TxnId(1));
}

#[test]
fn positions_take_no_memory_where_there_are_none_and_stay_with_their_operations() {
    let written = |position: Option<u32>| {
        let mut builder = HistoryBuilder::new();
        let key = builder.key(value(7));
        let (one, two) = (builder.session(value(1)), builder.session(value(2)));
        builder.begin(two);
        builder.op(OpKind::Write, key, value(10));
        if let Some(position) = position {
            builder.position(position);
        }
        builder.begin(one);
        builder.op(OpKind::Write, key, value(20));
        builder.position(0);
        builder.op(OpKind::Write, key, value(21));
        builder.finish("test").expect("small")
    };
    assert!(written(None).columns.positions.is_empty());
    assert_eq!(written(Some(17)).columns.positions, [17, 0, 0]);
}

#[test]
fn list_reads_share_their_elements_unless_they_disagree() {
    let mut builder = HistoryBuilder::new();
    let key = builder.key(value(7));
    let session = builder.session(value(1));
    builder.begin(session);
    let lists: [&[u64]; 4] = [&[1, 2], &[1, 2, 3], &[1, 9], &[]];
    for list in lists {
        let elements: Vec<Value> = list.iter().map(|&n| value(n)).collect();
        builder.read_list(key, &elements);
    }
    let history = builder.finish("test").expect("small");
    let seen: Vec<Vec<i128>> = history
        .ops_of(TxnId(0))
        .map(|op| {
            let number = |&element: &Value| match history.datum(element) {
                Datum::Int(number) => number,
                other => panic!("{other} is no number"),
            };
            history.list(op).iter().map(number).collect()
        })
        .collect();
    assert_eq!(seen, [vec![1, 2], vec![1, 2, 3], vec![1, 9], vec![]]);
    assert_eq!(history.columns.elements.len(), 5);
}

#[test]
fn a_history_beyond_its_memory_is_refused_not_cut() {
    let mut builder = HistoryBuilder::with_memory_max(Some(1 << 20));
    let session = builder.session(value(1));
    let key = builder.key(value(1));
    for number in 0..1_000_000 {
        builder.begin(session);
        builder.op(OpKind::Write, key, value(number));
    }
    assert!(builder.memory() < 4 << 20, "nothing is kept after the refusal");
    let error = builder.finish("big.txt").expect_err("too large").to_string();
    assert!(error.starts_with("big.txt: expected a history that fits in 1 MiB"), "{error}");
}

#[test]
fn a_history_is_refused_once_there_is_no_more_memory() {
    let mut builder = HistoryBuilder::with_memory_max(Some(1 << 30)).refusing_when(Some(|| true));
    let session = builder.session(value(1));
    builder.begin(session);
    let error = builder.finish("big.txt").expect_err("no memory is left").to_string();
    assert!(error.starts_with("big.txt: expected a history that fits in 1024 MiB"), "{error}");
}

#[test]
fn the_last_declaration_of_an_initial_value_counts() {
    let mut builder = HistoryBuilder::new();
    let key = builder.key(value(1));
    builder.initial_default(value(0));
    builder.initial(key, value(5));
    builder.initial(key, value(6));
    let history = builder.finish("test").expect("small");
    assert_eq!(history.initial(key), value(6));
    assert_eq!(history.declared_initial().len(), 1);
}

/// A tenth of ten million, which shall fit in 400 MB.
#[test]
fn an_operation_takes_no_more_than_forty_bytes() {
    let mut builder = HistoryBuilder::new();
    let mut number = 0;
    for session in 0..50 {
        let label = builder.values().unsigned(session);
        let session = builder.new_session(label);
        for _ in 0..2_500 {
            builder.begin(session);
            for place in 0..8 {
                number += 1;
                let name = builder.values().unsigned(number * 7919 % 100_000);
                let key = builder.key(name);
                let value = builder.values().unsigned(number);
                let kind = if place % 2 == 0 { OpKind::Write } else { OpKind::Read };
                builder.op(kind, key, value);
            }
        }
    }
    let history = builder.finish("large").expect("a history");
    assert_eq!(history.op_count(), 1_000_000);
    assert!(history.memory() <= 40_000_000, "{} bytes", history.memory());
}
