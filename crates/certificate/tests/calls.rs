//! Orders of calls of locks and stores, and that there are none.

mod common;

use isolde_certificate::Extent;

/// What the verifier says, as text.
fn told(verdict: Result<Extent, String>) -> String {
    verdict.map_or_else(|why| why, |extent| extent.to_string())
}

fn verdict(history: &str, claim: &str, proof: &str) -> String {
    told(common::verdict(history, claim, proof))
}

fn satisfied(history: &str, order: &str) -> String {
    verdict(history, "satisfied linearizable", &format!("events {order}"))
}

fn violated(history: &str) -> String {
    verdict(history, "violated linearizable", "orders 0")
}

const TURNS: &str =
    "A @1..4: c(:acquire,nil)\nB @2..7: c(:acquire,nil)\nC @5..6: c(:release,nil)\n";
const TWICE: &str = "A @1..2: c(:acquire,nil)\nB @3..4: c(:acquire,nil)\n";
const EXPLAINED: &str = "an order explains the calls of every object";
const ANSWER: &str = "it cannot have got this answer here";

#[test]
fn a_lock_is_taken_in_turns() {
    assert_eq!(satisfied(TURNS, "c0 c2 c1"), "3 events replayed");
    assert_eq!(satisfied(TURNS, "c1 c2 c0"), "transaction 0: 2 was invoked after it completed");
    assert_eq!(satisfied(TURNS, "c0 c1 c2"), format!("transaction 1: {ANSWER}"));
    assert_eq!(satisfied(TURNS, "c0 c2"), "transaction 1 is missing");
    assert_eq!(satisfied(TURNS, "c0 c2 c1 c1"), "transaction 1: it stands there twice");
    assert_eq!(satisfied(TURNS, "c0 c2 b1"), "expected the commit of a call, found b1");
    assert_eq!(satisfied(TURNS, "c0 c2 c7"), "transaction 7: it is no call that took effect");
    assert_eq!(violated(TURNS), EXPLAINED);
}

#[test]
fn a_lock_is_not_taken_twice() {
    assert_eq!(violated(TWICE), "2 configurations of all orders");
    assert_eq!(satisfied(TWICE, "c0 c1"), format!("transaction 1: {ANSWER}"));
    // Somebody may have released it, at any time after that was sent.
    let released = format!("{TWICE}C @2..3: c(:release,nil) unknown\n");
    assert_eq!(satisfied(&released, "c0 c2 c1"), "3 events replayed");
    assert_eq!(violated(&released), EXPLAINED);
    let too_late = format!("{TWICE}C @5..6: c(:release,nil) unknown\n");
    assert!(violated(&too_late).ends_with("configurations of all orders"));
    // What was refused did nothing.
    let refused = format!("{TWICE}C @2..3: c(:release,nil) aborted\n");
    assert_eq!(violated(&refused), "2 configurations of all orders");
    assert_eq!(satisfied(&refused, "c0 c2 c1"), "transaction 2: it is no call that took effect");
}

/// A call of a store.
fn call(function: &str, name: &str, text: &str) -> String {
    format!("c(:{function},~\"[\\\"{name}\\\" \\\"{text}\\\"]\")")
}

#[test]
fn a_store_holds_what_was_put_and_appended_under_each_name() {
    let stored = |seen: &str| {
        format!(
            "A @1..2: {}\nB @3..6: {}\nC @4..5: {}\nD @4..5: {}\n",
            call("put", "k", "a"),
            call("append", "k", "b"),
            call("get", "k", seen),
            call("get", "other", "")
        )
    };
    assert_eq!(satisfied(&stored("ab"), "c0 c1 c2 c3"), "4 events replayed");
    assert_eq!(satisfied(&stored("ab"), "c0 c2 c1 c3"), format!("transaction 2: {ANSWER}"));
    assert_eq!(satisfied(&stored("a"), "c0 c3 c2 c1"), "4 events replayed");
    for seen in ["ab", "a"] {
        assert_eq!(violated(&stored(seen)), EXPLAINED);
    }
    for seen in ["", "b", "ba"] {
        let found = violated(&stored(seen));
        assert!(found.ends_with("of all orders"), "{seen}: {found}");
    }
}

#[test]
fn sessions_keep_their_order_though_their_clocks_do_not() {
    let session =
        |seen| format!("A @1..9: {}\nA @2..9: {}\n", call("put", "k", "a"), call("get", "k", seen));
    assert_eq!(satisfied(&session("a"), "c0 c1"), "2 events replayed");
    let late = "transaction 0: a later one of its session comes before it";
    assert_eq!(satisfied(&session(""), "c1 c0"), late);
}

#[test]
fn calls_prove_nothing_about_other_levels_and_other_things_nothing_about_calls() {
    let outside = "the history has operations that are neither read nor write";
    assert_eq!(verdict(TWICE, "violated serializable", "orders 0"), outside);
    for (levels, claim, proof) in [
        ("serializable", "satisfied linearizable", "events c0 c2 c1"),
        ("linearizable", "violated serializable", "orders 0"),
    ] {
        assert_eq!(told(common::verdict_for(levels, TURNS, claim, proof)), outside);
    }
    let form = "of calls there are orders, or none: expected `events` or `orders`";
    assert_eq!(verdict(TWICE, "violated linearizable", "reading intermediate-read 0 0 1"), form);
    assert_eq!(violated(&format!("{TWICE}C @5..6: w(x,1)\n")), outside);
    assert_eq!(violated("A @1..2: c(:transfer,5)\n"), outside);
}
