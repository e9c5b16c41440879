//! What explanations say of violations that several levels, or one query, have.

mod support;

use isolde::applicable_levels;
use isolde_history::format::parse_text;
use isolde_report::{Which, to_explanations};
use support::report;

fn explained(text: &str, which: Which) -> String {
    let history = parse_text(text).expect("a well-formed history");
    let report = report(&history, ("h.txt", "text"), &applicable_levels(&history));
    to_explanations(&report, which)
}

/// What stands behind these words, if they stand there once.
fn told<'a>(text: &'a str, words: &str) -> &'a str {
    let told: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix(words)).collect();
    let [told] = told[..] else { panic!("{words}: {told:?}\n{text}") };
    told
}

const FROM_PREFIX_AND_SNAPSHOTS: &str = "prefix, snapshot-isolation, \
    generalized-snapshot-isolation, session-snapshot-isolation, \
    prefix-consistent-snapshot-isolation, strong-snapshot-isolation, serializable, \
    session-serializable, strict-serializable, linearizable";

/// Without the versions that the snapshot is about, the read alone is no violation.
#[test]
fn a_contradicted_snapshot_rules_out_all_levels_of_snapshots() {
    let versions = "order x complete: 1 2\nA id=1: w(x,1)\nB id=2: w(x,2)\n";
    for query in
        ["sees=3: p(value 1..1; x=1)", "sees=3: p(sum all -> 1)", "sees=2: p(value 2..2; x=2)"]
    {
        let text = explained(&format!("{versions}C id=3 {query}\n"), Which::Broken);
        assert_eq!(told(&text, "This alone rules out: "), FROM_PREFIX_AND_SNAPSHOTS, "{query}");
    }
    let text = explained("A: w(x,1)\nB: w(x,2)\nC: p(sum all -> 3)\n", Which::Broken);
    assert_eq!(told(&text, "This alone rules out: "), FROM_PREFIX_AND_SNAPSHOTS);
    // What the row itself contradicts is allowed where rows may be from the past.
    let text = explained("A: w(x,1)\nC: p(value 2..2; x=1)\n", Which::Broken);
    assert!(told(&text, "This alone rules out: ").starts_with("snapshot-isolation, "), "{text}");
}

#[test]
fn one_query_does_not_give_two_answers() {
    let meaning = |query: &str| {
        let text = explained(&format!("A: w(1,1) w(2,1)\nB: {query}\n"), Which::Broken);
        assert!(text.contains(": phantom"), "{text}");
        told(&text, "What it means: ").to_owned()
    };
    assert!(meaning("p(all; 1=1)").starts_with("A query finds one part of what others changed"));
    let twice = meaning("p(all; ) p(all; 1=1 2=1)");
    assert!(twice.starts_with("The same query gives another answer within one transaction"));
}

#[test]
fn what_several_levels_have_in_common_is_told_once() {
    let history = "A: w(1,1) w(2,1)\nB: p(all; 1=1)\n";
    let text = explained(history, Which::Broken);
    assert_eq!(text.matches("Who did what").count(), 1, "{text}");
    assert_eq!(told(&text, "not snapshot-isolation: "), "shown by not prefix, above");
    let text = explained(history, Which::All);
    assert_eq!(text.matches("Who did what").count(), 1, "{text}");
    assert_eq!(told(&text, "not serializable: "), "shown by not prefix, above");
    // Two that differ are told both, whichever levels have them in common.
    let text = explained("A: w(1,1)\nB: r(1,7)\nC: r(1,8)\n", Which::All);
    assert_eq!(text.matches("Who did what").count(), 2, "{text}");
    assert_eq!(told(&text, "not causal: "), "shown by not adya-read-committed, above");
}

/// Of two orders, one of which a single missed write rules out, the other one is left: what it
/// leads to is told, not both as cases.
#[test]
fn a_write_skew_with_one_order_to_derive_is_told_as_one() {
    let text = "A: w(x,1) r(y,nil)\nB: w(x,2) w(y,1) r(z,nil)\nC: r(x,1) w(z,1)\n";
    let text = explained(text, Which::Broken);
    assert!(text.starts_with("not repeatable-read: write skew"), "{text}");
    assert!(text.contains("A and B both wrote x, and A comes first"), "{text}");
}

/// It was told as an operation that had found nothing.
#[test]
fn an_update_that_lists_no_rows_found_those_that_it_wrote() {
    let text = explained("A: w(x,1)\nB: u(value = 5; ?) w(x,2)\n", Which::Broken);
    assert!(
        text.contains(
            "  B updated rows with value = 5 and with them x, no version of which it can have seen \
             meets that (h.txt:2).\n"
        ),
        "{text}"
    );
    assert_eq!(
        told(&text, "updated rows with value = 5 and found "),
        "x, and another operation (h.txt:2)"
    );
    let told_by_snapshot =
        "order x complete: 1 2\nA id=1: w(x,1)\nB id=2 sees=2: u(value = 5; x=?) w(x,2)\n";
    let text = explained(told_by_snapshot, Which::Broken);
    let snapshot = "B updated rows with value = 5 and with them x, which does not meet that in the \
                    snapshot that the database told (h.txt:3).";
    assert_eq!(told(&text, snapshot), "");
    let history = "init *=0\nA: r(x,0) w(x,1)\nB: u(value = 0; ?) w(x,2)\nC: r(x,1)\n";
    let text = explained(history, Which::Broken);
    let found = "B updated rows with value = 0 and found x before A wrote it with x = 1";
    assert!(text.contains(found), "{text}");
    assert!(!text.contains("did not"), "{text}");
}

/// Calls of a store have the function in place of the key.
#[test]
fn a_value_that_nobody_put_into_a_store_is_told_with_its_key() {
    let history = "A @1..2: c(:put,~\"[\\\"k\\\" \\\"a\\\"]\")\n\
                   B @3..4: c(:append,~\"[\\\"j\\\" \\\"b\\\"]\")\n\
                   C @5..6: c(:get,~\"[\\\"k\\\" \\\"z\\\"]\")\n";
    let text = explained(history, Which::Broken);
    assert!(text.contains("\n\n  C read \"k\" = \"z\", which nobody wrote.\n"), "{text}");
}

/// They were told as what was seen of a transaction, and its same version as what was missed.
#[test]
fn what_was_seen_once_and_missed_once_is_told_once() {
    for (reads, summary) in [
        (
            "r(x,13) p(value = 13; )",
            "B saw x = 13 of A, but also selected rows with value = 13 and missed it.",
        ),
        ("p(all; x=13) r(x,0)", "B selected all rows and saw x = 13 of A, but also read x = 0."),
        (
            "p(all; x=13 x=0)",
            "B selected all rows and read x = 13 and x = 0: two versions of one row.",
        ),
    ] {
        let text = explained(&format!("init *=0\nA: w(x,13)\nB: {reads}\n"), Which::Broken);
        assert!(text.contains(&format!("\n\n  {summary}\n")), "{reads}\n{text}");
    }
}

/// The second transaction of the session ended before C began, which is all that it says.
#[test]
fn operations_that_do_not_matter_are_counted() {
    for (reads, told_of) in [
        ("r(q,nil)", "one operation, which does not matter here"),
        ("r(q,nil) r(p,nil)", "2 operations, which do not matter here"),
    ] {
        let history = format!("S @0..?: w(x,1)\nS @5..6: {reads}\nC @7..8: r(x,nil)\n");
        let text = explained(&history, Which::Broken);
        assert!(text.lines().any(|line| line.trim() == told_of), "{reads}\n{text}");
    }
}

/// Nothing need have taken effect twice.
#[test]
fn an_element_that_was_appended_twice_is_told_as_such() {
    let of = |appends: &str| {
        let text = explained(&format!("{appends}\nC: r(x,[1 1])\n"), Which::Broken);
        let summary = told(&text, "C read x = [1 1], with an element twice").to_owned();
        let is_once = told(&text, "What it means: ").starts_with("One write took effect twice");
        (summary, is_once)
    };
    assert_eq!(of("A: a(x,1)"), (".".to_owned(), true));
    assert_eq!(of("A: a(x,1)\nB: a(x,1) aborted"), (".".to_owned(), true));
    assert_eq!(of("A: a(x,1)\nB: a(x,1)"), ("; A and B each appended 1.".to_owned(), false));
    assert_eq!(of("A: a(x,1) a(x,1)"), ("; A appended 1 more than once.".to_owned(), false));
}

/// Only the aggregate was named, as if the rows of no transaction mattered.
#[test]
fn an_aggregate_of_half_of_two_transactions_names_both() {
    let history = "A: w(x,1) w(y,2)\nB: w(x,3) w(y,4)\nC: p(sum all -> 5)\n";
    let text = explained(history, Which::Broken);
    let summary = "C computed the sum of all rows as 5, which what A and B wrote gives in no order";
    assert_eq!(told(&text, summary), " (h.txt:3).");
    for wrote in ["wrote x = 1, wrote y = 2 (h.txt:1)", "wrote x = 3, wrote y = 4 (h.txt:2)"] {
        assert_eq!(told(&text, wrote), "");
    }
}
