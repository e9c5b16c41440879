//! What versions say of writers, and what is left open.

use crate::format::{Input, ReadOptions, read_detected, to_text};
use crate::{History, Source};
use std::fmt::Write;

/// A trace of lines `client operation key version`, `client commit` and `client unseen`, at
/// ascending times.
fn history(lines: &[&str]) -> History {
    let mut text =
        String::from("{\"isolde\":\"trace 1\",\"values\":\"versions\"}\n{\"running\":100}\n");
    for (place, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        let times = format!("[{},{}]", 10 * place, 10 * place + 5);
        let (client, rest) = (words[0], &words[2..]);
        let rows = match rest {
            [key, version] => format!(",\"rows\":[[\"t\",\"{key}\",{version}]]"),
            _ => String::new(),
        };
        let what = words[1];
        writeln!(text, "{{\"client\":\"{client}\",\"txn\":1,\"{what}\":{times}{rows}}}")
            .expect("a text takes all");
    }
    let input = Input::File(Source::from_bytes("trace", text.as_bytes()));
    read_detected(input, ReadOptions::default()).expect("a trace").0
}

/// The history as text: operations, initial values and orders.
fn told(lines: &[&str]) -> Vec<String> {
    let text = to_text(&history(lines));
    let lines = text.lines().filter(|it| !it.starts_with('#') && !it.is_empty());
    // Times are tested elsewhere.
    let plain = |line: &str| {
        let words = line.split_whitespace().filter(|word| !word.starts_with('@'));
        words.map(|word| word.split('@').next().unwrap_or(word)).collect::<Vec<_>>().join(" ")
    };
    lines.map(plain).collect()
}

fn has(found: &[String], part: &str) -> bool {
    found.iter().any(|line| line.contains(part))
}

#[test]
fn what_was_over_was_there_and_what_was_not_is_in_no_log() {
    let found = told(&["A read x 7", "A read y 140", "A commit"]);
    assert!(has(&found, "init t/x=7"), "{found:?}");
    assert!(has(&found, "not recorded 140") && has(&found, "w(t/y,140)"), "{found:?}");
    assert!(has(&found, "unlogged"), "{found:?}");
}

#[test]
fn a_trigger_is_found_by_the_number_of_its_transaction() {
    // Its own transaction reads it, and another one does.
    let found = told(&["A write x 101", "A read y 101", "A commit", "B read z 101", "B commit"]);
    assert!(has(&found, "w(t/x,101) w(t/y,101) r(t/y,101) w(t/z,101)"), "{found:?}");
    assert!(!has(&found, "unlogged"), "{found:?}");
}

#[test]
fn behind_what_was_not_seen_a_strange_version_is_ones_own() {
    let lines = ["A read x 7", "A unseen", "A read x 150", "A commit"];
    assert!(has(&told(&lines), "r(t/x,7) w(t/x,150) r(t/x,150)"), "{:?}", told(&lines));
    // The nearest: nothing was unseen, or another one has the number.
    let lines = ["A read x 7", "A read x 150", "A commit"];
    assert!(has(&told(&lines), "r(t/x,7) r(t/x,150)"), "{:?}", told(&lines));
    let lines = ["A read x 7", "A unseen", "A read x 150", "A commit", "B write x 150", "B commit"];
    assert!(has(&told(&lines), "r(t/x,7) r(t/x,150)"), "{:?}", told(&lines));
}

#[test]
fn writers_are_in_the_order_of_their_locks() {
    let ordered = ["A write x 101", "A commit", "B write x 102", "B commit"];
    assert_eq!(history(&ordered).orders().versions.len(), 1);
    assert!(has(&told(&ordered), "t/x"), "{:?}", told(&ordered));
    // Who removed the row has no number, and who has no outcome may not have written.
    let removed =
        ["A write x 101", "A commit", "B write x null", "B commit", "C write x 103", "C commit"];
    assert_eq!(history(&removed).orders().versions.len(), 0);
    let unknown = ["A write x 101", "A commit", "B write x 102", "C write x 103", "C commit"];
    assert_eq!(history(&unknown).orders().versions.len(), 0);
}

#[test]
fn a_statement_stays_with_its_operation() {
    let text = "{\"isolde\":\"trace 1\",\"values\":\"versions\"}\n\
        {\"statement\":4,\"text\":\"UPDATE t\",\"tags\":\"route='/a'\"}\n\
        {\"client\":\"a\",\"txn\":1,\"write\":[1,2],\"by\":4,\"rows\":[[\"t\",1,9]]}\n\
        {\"client\":\"a\",\"txn\":1,\"read\":[3,4],\"rows\":[[\"t\",1,9]]}\n";
    let input = Input::File(Source::from_bytes("trace", text.as_bytes()));
    let history = read_detected(input, ReadOptions::default()).expect("a trace").0;
    let ops = history.txns().flat_map(|txn| history.ops_of(txn));
    let statements: Vec<String> =
        ops.map(|op| history.datum(history.statement(op)).to_string()).collect();
    assert_eq!(statements, ["\"UPDATE t /*route='/a'*/\"", "nil"]);
}
