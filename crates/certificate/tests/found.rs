//! Proofs by all orders of what was found by condition; what some order explains is refused.

mod common;

use common::verdict;

fn accepted(history: &str, claim: &str, proof: &str) {
    assert!(verdict(history, claim, proof).is_ok(), "{claim} by {proof}\n{history}");
}

#[test]
fn no_order_of_all_gives_a_result() {
    let explained = Err("an order explains what was done to these keys".into());
    // One transaction makes two rows.
    let count = "A: w(1,1) w(2,2)\nB: p(count all -> 1)\n";
    accepted(count, "violated prefix", "orders 0 1");
    accepted(count, "violated serializable", "orders 0 1");
    // One key does not tell, nor do rows from the past.
    assert_eq!(verdict(count, "violated prefix", "orders 0"), explained);
    assert_eq!(verdict(count, "violated repeatable-read", "orders 0 1"), explained);
    // The other key always adds the same.
    let range = "A: w(1,1) w(2,2)\nB: p(count key 1..1 -> 2)\n";
    accepted(range, "violated prefix", "orders 0");
    for possible in ["-> 0", "-> 2"] {
        let possible = count.replace("-> 1", possible);
        assert_eq!(verdict(&possible, "violated serializable", "orders 0 1"), explained);
    }
    // What may have happened may be what was counted.
    let lost = "A: w(1,1)\nC: w(2,2) unknown\nB: r(1,1) p(sum all -> 3)\n";
    assert_eq!(verdict(lost, "violated serializable", "orders 0 1"), explained);
    accepted(&lost.replace("-> 3", "-> 2"), "violated serializable", "orders 0 1");
}

#[test]
fn no_order_of_all_hides_a_row() {
    let explained = Err("an order explains what was done to these keys".into());
    let hidden = "A: w(1,1)\nB: r(1,1) w(2,2)\nC: r(2,2) p(all; 2=2;)\n";
    accepted(hidden, "violated prefix", "orders 0 1");
    let removed = format!("{hidden}D: d(1)\n");
    assert_eq!(verdict(&removed, "violated prefix", "orders 0 1"), explained);
}

/// Whether it is accepted that the last of five operations, an aggregate, has an impossible result.
fn is_impossible(level: &str, last: &str) -> bool {
    let others = "A: w(1,1)\nB: w(1,3)\nC: w(2,10) unknown\nD: w(3,100) aborted\n";
    let history = format!("{others}{last}\n");
    verdict(&history, &format!("violated {level}"), "reading result-set-mismatch 0 4").is_ok()
}

/// The order of versions is not known, and need not be: row 1 has the value 1, 3 or none, row 2
/// has 10 or none, row 3 none.
#[test]
fn no_choice_of_versions_gives_a_result() {
    let impossible = [
        "count all -> 3",
        "count all -> -1",
        "count all -> nil",
        "count value 1..3 -> 2",
        "sum all -> 0",
        "sum all -> 2",
        "sum all -> 4",
        "sum all -> 14",
        "sum all -> 113",
        "sum all -> \"many\"",
        "sum value 1..1 -> 3",
        "sum all -> 13; 1=1",
        "max all -> 2",
        "max all -> 100",
        "max value 1..3 -> 10",
        "min all -> 0",
        "min all -> 11",
        "min all -> 1; 1=3",
    ];
    for aggregate in impossible {
        assert!(is_impossible("prefix", &format!("E: p({aggregate})")), "{aggregate}");
    }
    let possible = [
        "count all -> 0",
        "count all -> 2",
        "sum all -> nil",
        "sum all -> 1",
        "sum all -> 13",
        "sum all -> 11; 1=1",
        "sum all -> ?",
        "max all -> nil",
        "max all -> 1",
        "max all -> 10",
        "min all -> 3",
        "min all -> 10",
        "sum where \"f(value)\" -> 2",
    ];
    for aggregate in possible {
        assert!(!is_impossible("prefix", &format!("E: p({aggregate})")), "{aggregate}");
    }
}

#[test]
fn an_impossible_result_takes_all_rows_and_refutes_what_asks_for_it() {
    assert!(is_impossible("serializable", "E: p(sum all -> 2)"));
    for level in ["repeatable-read", "parallel-snapshot-isolation", "causal"] {
        assert!(!is_impossible(level, "E: p(sum all -> 2)"), "{level}");
    }
    // It is open whether the reader counts.
    assert!(!is_impossible("prefix", "E: p(sum all -> 2) unknown"));
    // What a list adds is not told.
    assert!(!is_impossible("prefix", "E: p(sum all -> 2)\nF: a(4,1)"));
    // A row that always has a value.
    assert!(!is_impossible("prefix", "E: p(sum all -> nil)"));
    assert!(is_impossible("prefix", "E: p(sum all -> nil)\ninit 4=2"));
    assert!(is_impossible("prefix", "E: p(min all -> 3)\ninit 4=2"));
    assert!(!is_impossible("prefix", "E: p(max all -> 3)\ninit 4=2"));
    assert!(!is_impossible("prefix", "E: p(sum all -> 2)\ninit 4=2"));
}

#[test]
fn own_versions_are_what_they_are() {
    let is_impossible = |result: &str| {
        let history = format!("A: w(1,1)\nB: w(2,10)\nC: w(1,7) p(sum all -> {result}) w(2,20)\n");
        verdict(&history, "violated prefix", "reading result-set-mismatch 0 3").is_ok()
    };
    assert!(is_impossible("1") && is_impossible("11") && is_impossible("27"));
    assert!(!is_impossible("7") && !is_impossible("17"));
}
