//! A serialization order given by the database is the guess, and no more than that.

use isolde::{Check, Level, Limits, Stage, Verdict};
use isolde_history::Index;
use isolde_history::format::parse_text;
use std::sync::Mutex;

/// The verdict on serializability, and how many pairs of versions the solver decided.
fn decided(serial: &str) -> (&'static str, u64) {
    let text = format!("A: w(x,1)\nB: w(x,2)\nC: r(x,1)\nD: w(x,3)\nE: r(x,3)\nserial: {serial}\n");
    let history = parse_text(&text).expect("a well-formed history");
    let index = Index::new(&history);
    let asked = Mutex::new(0);
    let observe = |stage| {
        if let Stage::Solved { choices, .. } = stage {
            *asked.lock().expect("one thread at a time") += choices;
        }
    };
    let limits = Limits { observe: &observe, ..Limits::NONE };
    let verdict: Verdict = Check::new(&history, &index, &limits).decide(Level::Serializable);
    let asked = *asked.lock().expect("one thread at a time");
    (verdict.name(), asked)
}

#[test]
fn an_order_that_explains_the_history_leaves_nothing_to_decide() {
    assert_eq!(decided("B A C D E"), ("satisfied", 0));
    assert_eq!(decided("D E B A C"), ("satisfied", 0));
}

#[test]
fn an_order_that_does_not_explain_it_changes_no_verdict() {
    let (verdict, asked) = decided("A B C D E");
    assert_eq!(verdict, "satisfied");
    assert!(asked > 0, "the order puts B between A and its reader");
}
