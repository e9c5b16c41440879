//! The histories of Elle's own tests, in our notation, with what Elle says of them.
//!
//! From `test/elle/list_append_test.clj` and `rw_register_test.clj`. Elle's `:not` are the weakest
//! models that break: each of them is `false` here, and models that Elle does not name are not.

use super::{Model, Question, Valid, allowing_unwritten, answer};
use crate::limits::Limits;
use isolde_history::Index;
use isolde_history::format::parse_text;

/// What `isolde elle` answers for each of these models, separated by spaces.
fn answers(text: &str, models: &str) -> String {
    let history = parse_text(text).expect("a well-formed history");
    let (history, _) = allowing_unwritten(history);
    let index = Index::new(&history);
    let answers = models.split(' ').map(|name| {
        let model = Model::parse(name).expect("a model");
        let question = Question { models: vec![model], ..Question::default() };
        match answer(&history, &index, &question, &Limits::NONE).valid {
            Valid::True => "true",
            Valid::False => "false",
            Valid::Unknown(_) => "unknown",
        }
    });
    answers.collect::<Vec<_>>().join(" ")
}

/// History, models, answers.
type Row = (&'static str, &'static str, &'static str);

fn check(rows: &[Row]) {
    let wrong: Vec<String> = (rows.iter())
        .filter_map(|(text, models, expected)| {
            let found = answers(text, models);
            let told = || format!("{models} of\n{text}\nexpected {expected}, found {found}");
            (found != *expected).then(told)
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

const COMMITTED: &str = "read-uncommitted read-committed";

#[test]
fn lists_are_answered_as_by_elle() {
    check(&[
        // G0, and G0 of a write that the longest list does not show.
        ("A: a(x,1) a(y,1)\nB: a(x,2) a(y,2)\nC: r(x,[1 2]) r(y,[2 1])", COMMITTED, "false false"),
        (
            "A: a(x,1) a(y,1)\nB: a(x,2) a(y,2)\nC: a(x,3) a(y,3)\nD: r(x,[1 2])\nE: r(y,[2])",
            COMMITTED,
            "false false",
        ),
        // G1a of a failed write, alone and under others'.
        ("A: a(x,1) aborted\nB: r(x,[1])", COMMITTED, "unknown false"),
        ("A: a(x,1) aborted\nB: a(x,2)\nC: r(x,[1 2])", COMMITTED, "true false"),
        (
            "A: a(x,1) aborted\nB: a(x,2) unknown\nC: a(x,3)\nD: r(x,[1 2 3])",
            COMMITTED,
            "true false",
        ),
        ("A: a(x,1) a(x,2)\nB: r(x,[1])", COMMITTED, "true false"),
        ("A: a(x,1) r(y,[1])\nB: a(x,2) a(y,1)\nC: r(x,[1 2]) r(y,[1])", COMMITTED, "true false"),
        ("A: r(x,[1]) a(x,1)", COMMITTED, "unknown false"),
        // An element twice.
        ("A: a(x,1) r(y,[1])\nB: a(x,2) a(y,1)\nC: r(x,[1 2 1])", COMMITTED, "false false"),
        // Orders that contradict each other are G1a alone: the longest list counts.
        (
            "A: a(x,1) r(y,[1])\nB: a(x,2)\nC: a(x,3) a(y,1)\nD: r(x,[1 3])\nE: r(x,[1 2 3])",
            COMMITTED,
            "true false",
        ),
        ("A: a(x,1)\nB: a(x,2)\nC: r(x,[1 2])\nD: r(x,[2 1])", COMMITTED, "true false"),
        // The reader's own append is no exception.
        ("A: a(x,1)\nB: a(x,2) r(x,[2])\nC: r(x,[1 2])", COMMITTED, "true false"),
        // Who read the list may have lost an own write: it shows an order all the same.
        ("A: a(x,1) a(x,2) a(x,4)\nB: a(x,3) r(x,[1 2 3 4])", COMMITTED, "false false"),
    ]);
}

#[test]
fn anti_dependencies_of_lists_are_answered_as_by_elle() {
    check(&[
        // G-single.
        (
            "A: a(x,1) a(y,1)\nB: a(x,2) r(y,[])\nC: r(x,[1 2])",
            "read-committed consistent-view repeatable-read",
            "true false false",
        ),
        (
            "A: a(x,1) a(y,1)\nB: r(x,[1]) r(y,[])",
            "read-committed consistent-view repeatable-read",
            "true false false",
        ),
        // G2-item and G-nonadjacent.
        (
            "A: a(x,1) r(y,[])\nB: a(y,1) r(x,[])",
            "read-committed snapshot-isolation repeatable-read",
            "true true false",
        ),
        (
            "A: a(x,1)\nB: r(x,[1]) r(y,[])\nC: a(y,1)\nD: r(y,[1]) r(x,[])",
            "consistent-view snapshot-isolation repeatable-read",
            "true false false",
        ),
        (
            "A: r(x,[5]) a(y,1)\nB: r(y,[]) a(z,2)\nC: r(z,[]) a(t,3)\nD: r(t,[3]) a(u,4)\n\
             E: r(u,[]) a(x,5)",
            "snapshot-isolation",
            "true",
        ),
        (
            "A: a(x,1) a(t,1)\nB: r(x,[1]) r(y,[])\nC: a(y,1) a(z,2)\nD: r(z,[2]) r(t,[])",
            "consistent-view snapshot-isolation repeatable-read",
            "true false false",
        ),
        (
            "A: a(x,0)\nB: r(x,[0]) a(x,1)\nC: r(x,[0]) a(x,2)",
            "read-committed read-atomic cursor-stability update-atomic",
            "true true false false",
        ),
        ("A: r(x,[]) a(x,1) a(x,2)\nB: r(x,[1 2])", "strict-serializable", "true"),
    ]);
}

#[test]
fn sessions_and_real_time_are_answered_as_by_elle() {
    check(&[
        (
            "A @0..1: a(x,1)\nB @2..3: a(x,2)\nC @4..5: r(x,[1])\nD @6..7: r(x,[1 2])",
            "serializable strong-session-snapshot-isolation strong-snapshot-isolation",
            "true true false",
        ),
        (
            "A: a(x,1)\nB: a(x,2)\nB: r(x,[1])\nC: r(x,[1 2])",
            "serializable strong-session-snapshot-isolation",
            "true false",
        ),
        (
            "A: r(x,[]) r(z,[1])\nB: a(x,1)\nB: r(z,[])\nC: a(z,1)",
            "serializable strong-session-snapshot-isolation",
            "true false",
        ),
        (
            "A: r(x,[1]) a(y,1)\nB: r(y,[1])\nB: a(x,1)",
            "serializable strong-session-read-committed",
            "true false",
        ),
    ]);
}

#[test]
fn registers_are_answered_as_by_elle() {
    check(&[
        ("A: w(x,1) aborted\nB: r(x,1)", COMMITTED, "unknown false"),
        ("A: w(x,1) w(x,2)\nB: r(x,1)", COMMITTED, "true false"),
        ("A: w(x,1) r(y,1)\nB: w(y,1) r(x,1)", COMMITTED, "true false"),
        ("A: w(x,1) w(y,2)\nB: w(x,2) w(y,1)", "read-uncommitted", "unknown"),
        (
            "A: r(x,nil) r(y,1)\nB: w(y,1) w(x,2)",
            "read-committed consistent-view repeatable-read",
            "true false false",
        ),
        // Values that nobody wrote: allowed by themselves, yet a lost update if two build on one,
        // and two of them are no repeatable read.
        ("A @0..1: w(x,1)\nB @2..3: r(x,2)", "strict-serializable", "true"),
        (
            "A: r(x,0) w(x,1)\nB: r(x,0) w(x,2)",
            "read-committed read-atomic cursor-stability update-atomic repeatable-read",
            "unknown unknown false false false",
        ),
        ("A: r(x,1) r(x,2)", "read-committed read-atomic", "unknown false"),
        // Otherwise they order nothing.
        ("A: r(y,1) w(x,1) w(y,2)\nB: r(x,1) r(y,1)", "serializable", "true"),
        ("A @0..1: r(x,0)\nB @2..3: w(x,1)\nC @4..5: r(x,0)", "strict-serializable", "true"),
        ("A: r(x,4) w(x,3)\nA: w(x,4)", "strict-serializable", "false"),
    ]);
}
