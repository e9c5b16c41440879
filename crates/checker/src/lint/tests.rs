//! Each rule finds its mistake, and not the nearest history without it.

use super::*;
use isolde_history::HistoryBuilder;
use isolde_history::format::parse_text;

/// What `rule` tells about a history in the native text format, an example a line.
fn found(rule: &str, text: &str) -> String {
    let history = parse_text(text).expect("a well-formed history");
    told(rule, &history)
}

fn told(rule: &str, history: &History) -> String {
    assert!(super::rule(rule).is_some(), "a rule called {rule}");
    let findings = lint(history, &Index::new(history));
    let examples = findings.iter().filter(|finding| finding.rule == rule);
    let texts = examples.flat_map(|finding| &finding.examples).map(|example| &*example.text);
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_sound_recording_has_no_findings() {
    let history = parse_text(
        "A @0..10: r(x,nil) w(x,1)
         B @5..20: r(x,1) w(x,2)
         A @15..30: r(x,2)",
    )
    .expect("a well-formed history");
    assert_eq!(lint(&history, &Index::new(&history)), []);
}

#[test]
fn names_are_unique_and_sentences_have_no_full_stop() {
    for (place, rule) in RULES.iter().enumerate() {
        assert!(RULES[..place].iter().all(|other| other.name != rule.name), "{}", rule.name);
        for sentence in [rule.meaning, rule.advice] {
            assert!(!sentence.ends_with('.') && !sentence.contains("  "), "{}", rule.name);
        }
    }
}

#[test]
fn examples_beyond_the_limit_are_counted() {
    let history = parse_text(&"A: w(x,1) w(y,2) w(a,1) w(b,2) w(c,3) w(d,4) w(e,5)\n".repeat(2))
        .expect("a well-formed history");
    let findings = lint(&history, &Index::new(&history));
    let repeated = findings.iter().find(|finding| finding.rule == "repeated-write");
    let counts = repeated.map(|finding| (finding.total, finding.examples.len()));
    assert_eq!(counts, Some((7, EXAMPLES_MAX)));
}

#[test]
fn an_end_before_the_beginning_is_found() {
    let rule = "completed-before-invoked";
    assert_eq!(found(rule, "A @20..10: w(x,1)"), "A was invoked at 20 and ended at 10");
    assert_eq!(
        found(rule, "A @0..90: w(x,1)@20..10"),
        "an operation of A was invoked at 20 and ended at 10"
    );
    assert_eq!(found(rule, "A @10..10: w(x,1)@10..10"), "");
    assert_eq!(found(rule, "A @?..10: w(x,1)"), "");
}

#[test]
fn an_operation_outside_its_transaction_is_found() {
    let rule = "ends-before-its-operations";
    assert_eq!(
        found(rule, "A @0..10: w(x,1)@5..12"),
        "A was recorded from 0 to 10, one of its operations from 5 to 12"
    );
    assert_eq!(
        found(rule, "A @6..20: w(x,1)@5..12"),
        "A was recorded from 6 to 20, one of its operations from 5 to 12"
    );
    assert_eq!(found(rule, "A @0..12: w(x,1)@0..12"), "");
    assert_eq!(found(rule, "A @0..? : w(x,1)@5..12"), "");
}

#[test]
fn a_value_seen_before_it_was_sent_is_found() {
    let rule = "read-before-it-was-sent";
    assert_eq!(
        found(rule, "A @0..10: r(x,1)\nB @11..20: w(x,1)"),
        "A ended at 10 and had read x from B, which was invoked at 11"
    );
    assert_eq!(found(rule, "A @0..10: r(x,1)\nB @10..20: w(x,1)"), "");
    assert_eq!(found(rule, "A: r(x,1)\nB: w(x,1)"), "");
}

#[test]
fn a_clock_that_goes_back_in_a_session_is_found() {
    let rule = "clock-went-back";
    assert_eq!(
        found(rule, "A @20..30: w(x,1)\nA @5..10: w(x,2)"),
        "A.1 was invoked at 20, the session's next, A.2, at 5"
    );
    assert_eq!(found(rule, "A @20..30: w(x,1)\nA @20..30: w(x,2)"), "");
    assert_eq!(found(rule, "A @20..30: w(x,1)\nB @5..10: w(x,2)"), "");
}

#[test]
fn overlapping_transactions_of_one_session_are_found() {
    let rule = "overlapping-session";
    assert_eq!(
        found(rule, "A @0..10: w(x,1)\nA @9..20: w(x,2)"),
        "A.1 ended at 10, the session's next, A.2, was invoked at 9"
    );
    assert_eq!(found(rule, "A @0..10: w(x,1)\nA @10..20: w(x,2)"), "");
    assert_eq!(found(rule, "A @0..10: w(x,1)\nB @9..20: w(x,2)"), "");
    assert_eq!(found(rule, "A @0..? : w(x,1) unknown\nA @9..20: w(x,2)"), "");
}

#[test]
fn what_an_importer_noticed_is_told_by_the_rule_of_its_name() {
    for (kind, rule) in [
        ("reused-process", "reused-process"),
        ("completion-without-invocation", "completion-without-invocation"),
        ("duplicate-index", "duplicate-index"),
        ("reused-transaction-id", "reused-transaction-id"),
        ("fail-after-timeout", "timeout-as-failure"),
        ("missing-writer", "missing-writer"),
    ] {
        let with = |kind| {
            let mut builder = HistoryBuilder::new();
            builder.remark(kind, "line 7 is odd".into());
            told(rule, &builder.finish("test").expect("small"))
        };
        assert_eq!((kind, with(kind)), (kind, "line 7 is odd".into()));
        assert_eq!((kind, with("other-lines")), (kind, String::new()));
    }
}

#[test]
fn a_timeout_recorded_as_aborted_is_found() {
    let rule = "timeout-as-failure";
    assert_eq!(
        found(rule, "A: w(x,1) aborted error \"Read Timed Out\""),
        "A is recorded as aborted, its client was told \"Read Timed Out\""
    );
    assert_eq!(found(rule, "A: w(x,1) unknown error \"Read Timed Out\""), "");
    assert_eq!(found(rule, "A: w(x,1) aborted error \"Lock wait timeout exceeded\""), "");
    assert_eq!(found(rule, "A: r(x,nil) aborted error \"Read Timed Out\""), "");
}

#[test]
fn an_aborted_transaction_that_was_seen_is_found() {
    let rule = "failed-but-seen";
    assert_eq!(
        found(rule, "A: w(x,1) aborted\nB: r(x,1)"),
        "B read x = 1 from A, recorded as aborted"
    );
    assert_eq!(found(rule, "A: w(x,1) unknown\nB: r(x,1)"), "");
}

#[test]
fn a_write_seen_only_after_its_record_is_found_in_its_session() {
    let rule = "recorded-before-commit";
    let told =
        "A.2 did not see x as A.1 had written it, although that had ended before; others saw it";
    assert_eq!(found(rule, "A: w(x,1)\nA: r(x,nil)\nB: r(x,1)"), told);
    assert_eq!(found(rule, "A: w(x,1)\nA: r(x,1)\nB: r(x,1)"), "");
    assert_eq!(found(rule, "A: w(x,1)\nA: r(x,nil)"), "", "never seen: lost, not late");
    assert_eq!(found(rule, "A: w(x,1)\nA: r(x,2)\nB: r(x,1) w(x,2)"), "");
}

#[test]
fn a_write_seen_only_after_its_record_is_found_by_times() {
    let rule = "recorded-before-commit";
    let text = |began: u32| {
        format!(
            "A @0..10: w(x,1)
             B @20..30: r(x,1) w(x,2)
             C @{began}..50: r(x,1)
             D @60..70: r(x,2)"
        )
    };
    let told = "C did not see x as B had written it, although that had ended before; others saw it";
    assert_eq!(found(rule, &text(31)), told);
    assert_eq!(found(rule, &text(30)), "");
}

#[test]
fn an_undeclared_initial_value_is_found() {
    let rule = "other-initial-value";
    assert_eq!(
        found(rule, "A: r(x,0) w(x,1)\nB: r(y,0) w(y,1)"),
        "2 reads of 2 keys saw 0, which nobody wrote: try `--initial 0`"
    );
    assert_eq!(found(rule, "init *=0\nA: r(x,0) w(x,1)\nB: r(y,0) w(y,1)"), "");
    assert_eq!(found(rule, "A: r(x,0) w(x,1)\nB: r(y,7) w(y,1)"), "");
    let never_written =
        "1 read of 1 key saw empty, which nobody wrote: try the line `init *=empty`";
    assert_eq!(found(rule, "A: r(x,empty)"), never_written);
    let before = "1 read of 1 key saw 5, which nobody wrote: try `--initial 5`";
    assert_eq!(found(rule, "A @0..10: r(x,5)\nB @20..30: w(x,1)"), before);
    assert_eq!(found(rule, "A @0..20: r(x,5)\nB @20..30: w(x,1)"), "");
}

/// The advice is about all keys: it must not be refused, nor make other reads wrong.
#[test]
fn a_value_that_some_reads_contradict_is_no_initial_value() {
    let rule = "other-initial-value";
    let unlike_others = "A: r(x,5)\nB: r(y,nil) w(y,1)";
    assert_eq!(found(rule, unlike_others), "");
    assert_eq!(found("missing-writer", unlike_others), "A read x = 5, which nobody wrote");
    assert_eq!(found(rule, "init *=0\nA: r(x,5)\nB: r(y,5)"), "");
    assert_eq!(found(rule, "A: r(x,5)\nB: r(y,6)"), "");
    let declared = "1 read of 1 key saw 5, which nobody wrote: try `--initial 5`";
    assert_eq!(found(rule, "init y=0\nA: r(x,5)\nB: r(y,0)"), declared);
}

#[test]
fn a_value_without_a_writer_is_found() {
    let rule = "missing-writer";
    assert_eq!(found(rule, "A: w(x,1)\nB: r(x,2)"), "B read x = 2, which nobody wrote");
    assert_eq!(
        found(rule, "A: a(x,1)\nB: r(x,[2])"),
        "B read an element of x that nobody appended"
    );
    assert_eq!(found(rule, "A: w(x,1)\nB: r(x,1)"), "");
}

#[test]
fn a_value_written_twice_is_found() {
    let rule = "repeated-write";
    assert_eq!(found(rule, "A: w(x,1) aborted\nB: w(x,1)"), "x = 1 was written by A and B");
    assert_eq!(found(rule, "A: w(x,1) w(x,1)"), "x = 1 was written by A more than once");
    assert_eq!(found(rule, "A: w(x,1)\nB: w(y,1)"), "");
    assert_eq!(found(rule, "A: i(x,1) d(x)\nB: i(x,2) d(x)"), "");
}

#[test]
fn a_recording_without_commits_is_found() {
    let rule = "nothing-committed";
    assert_eq!(
        found(rule, "A: w(x,1) aborted\nB: w(x,2) unknown"),
        "of 2 transactions 1 aborted and 1 are unknown"
    );
    assert_eq!(found(rule, ""), "there is no transaction");
    assert_eq!(found(rule, "A: w(x,1) aborted\nB: w(x,2)"), "");
}

#[test]
fn a_recording_without_dependencies_is_found() {
    let rule = "no-dependency";
    assert_eq!(
        found(rule, "A: w(x,1) r(x,1)\nB: r(y,nil)"),
        "transactions that count: 2, reads that concern another's write: 0 of 1"
    );
    assert_eq!(found(rule, "A: w(x,1)\nB: r(x,1)"), "");
    assert_eq!(found(rule, "A: w(x,1)\nB: r(x,nil)"), "");
    assert_eq!(found(rule, "A: w(x,1)\nB: p(all)"), "");
    assert_eq!(found(rule, "init *=0\nA: w(x,1) unknown\nB: p(sum all -> 2)"), "");
    assert_eq!(found(rule, "A: w(x,1) p(sum all -> 2)"), "");
    assert_eq!(
        found(rule, "A: w(x,1)\nB: p(sum all -> 2) aborted"),
        "transactions that count: 1, reads that concern another's write: 0 of 0"
    );
    assert_eq!(found(rule, "init *=0\nA: w(x,1) r(x,0)"), "");
    assert_eq!(found(rule, "A: w(x,1)\nB: w(x,2)\norder x: 2 1"), "");
}

#[test]
fn a_recording_without_concurrency_is_found() {
    let rule = "no-concurrency";
    let one = "all transactions are of one session";
    assert_eq!(found(rule, "A: w(x,1)\nA: r(x,1)"), one);
    assert_eq!(found(rule, "A: w(x,1)\nB: r(x,1)"), "", "without times nobody knows");
    let serial = "the transactions of 3 sessions ran one after another";
    let text = |end: u32| {
        format!("A @0..{end}: w(x,1)\nB @10..20: r(x,1)\nA @20..30: r(x,1)\nC @30..40: r(x,1)")
    };
    assert_eq!(found(rule, &text(10)), serial);
    assert_eq!(found(rule, &text(11)), "");
}

#[test]
fn keys_that_are_never_read_are_found_if_they_are_most() {
    let rule = "keys-never-read";
    assert_eq!(found(rule, "A: w(x,1) w(y,2) w(z,3)\nB: r(x,1)"), "2 of 3 written keys: y, z");
    assert_eq!(found(rule, "A: w(x,1) w(y,2)\nB: r(x,1)"), "");
}

#[test]
fn committed_transactions_without_times_are_counted() {
    let rule = "missing-times";
    let of = |times: [&str; 3]| {
        let [a, b, c] = times;
        found(rule, &format!("A {a}: w(x,1)\nB {b}: r(x,nil)\nC {c}: r(x,1) unknown"))
    };
    assert_eq!(of(["@1..2", "@3..4", "@5..?"]), "");
    assert_eq!(of(["", "", ""]), "");
    assert_eq!(of(["@1..2", "", ""]), "1 of 2 committed transactions have both times, B has not");
    assert_eq!(
        of(["@?..2", "@?..4", ""]),
        "0 of 2 committed transactions have both times, A has not"
    );
    assert_eq!(
        of(["@1..?", "@3..4", ""]),
        "1 of 2 committed transactions have both times, A has not"
    );
}
