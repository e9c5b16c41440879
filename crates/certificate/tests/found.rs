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
