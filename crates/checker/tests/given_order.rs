//! Orders given by the database: a serialization order is the guess, and no more than that; an
//! order of versions is what it says, removals included.

use isolde_checker::{Check, Level, Limits, Stage, Verdict};
use isolde_history::Index;
use isolde_history::format::parse_text;
use std::fmt::Write;
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

/// The verdict on a level.
fn verdict(text: &str, level: Level) -> &'static str {
    let history = parse_text(text).expect("a well-formed history");
    let index = Index::new(&history);
    Check::new(&history, &index, &Limits::NONE).decide(level).name()
}

#[test]
fn an_order_with_removals_is_an_order() {
    let text = "A: w(x,5)\nB: d(x)\nC: w(x,7)\nD: p(all; ;)\nD: p(all; x=7)\n";
    for order in ["", "order x complete: 5 nil 7\n", "order x complete: nil 5 nil 7\n"] {
        assert_eq!(verdict(&format!("{text}{order}"), Level::SessionSerializable), "satisfied");
    }
    // The other way round, what was removed came back.
    let text = "A: w(x,5)\nB: d(x)\nC: w(x,7)\nD: p(all; x=7)\nD: p(all; x=5)\n";
    for (order, expected) in [("", "satisfied"), ("order x complete: 5 nil 7\n", "violated")] {
        assert_eq!(verdict(&format!("{text}{order}"), Level::SessionSerializable), expected);
    }
}

/// A row that is made and removed again and again, and somebody who does not find it; more
/// transactions than the definition is asked about.
fn removals(rounds: u32, reader: &str, told: bool) -> String {
    let mut text = String::new();
    let mut order = "order x complete:".to_owned();
    for round in 1..=rounds {
        let numbered = |number: u32| if told { format!(" id={number}") } else { String::new() };
        let (made, removed) = (numbered(2 * round), numbered(2 * round + 1));
        writeln!(text, "A{made}: w(x,{round}) w(y,{round})").expect("memory");
        writeln!(text, "A{removed}: d(x)").expect("memory");
        write!(order, " {round} nil{}", removed.replace(" id=", "@")).expect("memory");
    }
    writeln!(text, "B: {reader}").expect("memory");
    if told { format!("{text}{order}\n") } else { text }
}

#[test]
fn a_row_that_is_not_found_may_be_one_of_its_removals() {
    for told in [false, true] {
        // After the removal of the round whose y it read.
        let fits = removals(12, "p(value 1..99; y=7)", told);
        assert_eq!(verdict(&fits, Level::SessionSerializable), "satisfied", "{fits}");
        assert_eq!(verdict(&fits, Level::SessionSnapshotIsolation), "satisfied", "{fits}");
        // x of the sixth round was gone when y of the seventh came.
        let late = removals(12, "p(value 1..99; x=6 y=7)", told);
        assert_eq!(verdict(&late, Level::SessionSerializable), "violated", "{late}");
        let both = removals(12, "r(y,7) p(value 1..6; ;) r(x,nil)", told);
        assert_eq!(verdict(&both, Level::SessionSerializable), "satisfied", "{both}");
    }
}
