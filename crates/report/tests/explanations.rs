//! What explanations say of violations that several levels, or one query, have.

use isolde::{Check, Limits, applicable_levels};
use isolde_history::Index;
use isolde_history::format::parse_text;
use isolde_report::{Decided, Report, Which, to_explanations};

fn explained(text: &str, which: Which) -> String {
    let history = parse_text(text).expect("a well-formed history");
    let index = Index::new(&history);
    let mut check = Check::new(&history, &index, &Limits::NONE);
    let levels = applicable_levels(&history);
    let decided: Vec<Decided> =
        check.decide_all(&levels).into_iter().map(|it| (it.0, it.1, 0.0)).collect();
    let report = Report::new(&history, &index, ("h.txt", "text"), &decided, check.found());
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
