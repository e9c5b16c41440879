//! Small histories of each workload, each beside the nearest one with another answer.

use super::*;
use isolde_history::format::parse_text;

/// `true`, `false` with the names of what shows it, or why it is unknown.
fn answer(name: &str, expectations: Expectations, text: &str) -> String {
    let history = parse_text(text).expect("a well-formed history");
    let workload = JepsenWorkload::parse(name).expect("a workload");
    match workload.check(&history, expectations, &Limits::NONE) {
        Err(misfit) => format!("misfit {}: {}", misfit.op.0, misfit.expected),
        Ok(finding) => {
            let problems = finding.problems.iter().map(|problem| problem.name);
            let anomalies = finding.anomalies.iter().map(|anomaly| anomaly.kind.name());
            let shown: Vec<&str> = problems.chain(anomalies).collect();
            match finding.valid {
                Valid::True if finding.vacuous.is_some() => "true of nothing".into(),
                Valid::True => "true".into(),
                Valid::False => format!("false: {}", shown.join(" ")),
                Valid::Unknown(reason) => format!("unknown: {reason}"),
            }
        }
    }
}

fn check(name: &str, text: &str, expected: &str) {
    assert_eq!(answer(name, Expectations::default(), text), expected, "{text}");
}

#[test]
fn a_register_is_linearizable_and_nil_is_no_result() {
    let written = "A @1..2: w(:register,1)\nB @3..4: r(:register,1) w(:register,2)\n";
    check("cas-register", &format!("{written}C @5..6: r(:register,2)"), "true");
    check("cas-register", &format!("{written}C @5..6: r(:register,nil)"), "true");
    check("cas-register", &format!("{written}C @5..6: r(:register,1)"), "false: stale-read");
    check("cas-register", "A @1..2: c(:add,1)", "misfit 0: read or write or cas");
}

#[test]
fn a_lock_is_not_taken_twice() {
    let taken = "A @1..2: c(:acquire,nil)\n";
    check("mutex", &format!("{taken}B @3..4: c(:acquire,nil) aborted"), "true");
    check("mutex", &format!("{taken}B @3..4: c(:acquire,nil)"), "false: compare-and-set-twice");
}

#[test]
fn readers_of_a_group_agree_on_an_order() {
    let written = "A: w(x,1)\nB: w(y,1)\nC: r(x,1) r(y,nil)\n";
    check("long-fork", &format!("{written}D: r(y,1) r(x,1)"), "true");
    check("long-fork", &format!("{written}D: r(y,1) r(x,nil)"), "false: long-fork");
    check("long-fork", "A: w(x,1)\nB: w(x,2)", "unknown: key x is written several times");
    check("long-fork", "A: r(x,1)\nB: r(x,2)", "unknown: key x was seen with several values");
    check("long-fork", "A: r(x,1) w(y,1)", "misfit 1: one write, or reads only");
    let of_three = Expectations { group_size: Some(3), ..Expectations::default() };
    let reason = "unknown: every read should be of 3 keys, and one is of 2";
    assert_eq!(answer("long-fork", of_three, written), reason);
}

#[test]
fn a_complete_answer_about_long_forks_is_snapshot_isolation() {
    let complete = Expectations { complete: true, ..Expectations::default() };
    let thin_air = "A: r(x,1) r(y,nil)";
    check("long-fork", thin_air, "true");
    assert_eq!(answer("long-fork", complete, thin_air), "false: thin-air-read");
    let fork = "A: w(x,1)\nB: w(y,1)\nC: r(x,1) r(y,nil)\nD: r(y,1) r(x,1)";
    assert_eq!(answer("long-fork", complete, fork), "true");
}

#[test]
fn money_is_neither_made_nor_lost_nor_owed() {
    let read = |balances: &str| {
        format!("A @1..2: c(:read,~\"{{0 5, 1 5}}\")\nB @3..4: c(:read,{balances})")
    };
    check("bank", &read("~\"{0 3, 1 7}\""), "true");
    check("bank", &read("~\"{0 3, 1 6}\""), "false: wrong-total");
    check("bank", &read("~\"{0 -1, 1 11}\""), "false: negative-value");
    check("bank", &read("~\"{0 3, 2 7}\""), "false: unexpected-key");
    check("bank", &read("~\"{0 10, 1 nil}\""), "false: nil-balance");
    check("bank", &read("7"), "misfit 1: a map of accounts and balances");
    check("bank", "A @1..2: c(:transfer,1)", "true of nothing");
    let owing = Expectations { negative_balances: true, ..Expectations::default() };
    assert_eq!(answer("bank", owing, &read("~\"{0 -1, 1 11}\"")), "true");
    let more = Expectations { total: Some(11), ..Expectations::default() };
    assert_eq!(answer("bank", more, &read("~\"{0 3, 1 8}\"")), "false: wrong-total");
}

#[test]
fn the_last_read_of_a_set_has_what_was_added() {
    let added = "A @1..2: c(:add,0)\nB @1..3: c(:add,1) unknown\nC @1..3: c(:add,2) aborted\n";
    check("set", &format!("{added}D @4..5: c(:read,~\"[0]\")"), "true");
    check("set", &format!("{added}D @4..5: c(:read,~\"#{{0 1}}\")"), "true");
    check("set", &format!("{added}D @4..5: c(:read,~\"[1]\")"), "false: lost");
    check("set", &format!("{added}D @4..5: c(:read,~\"[0 3]\")"), "false: unexpected");
    check("set", added, "unknown: the set was never read");
    let late = format!("{added}D @4..5: c(:read,~\"[]\")\nE @6..7: c(:read,~\"[0]\")");
    check("set", &late, "true");
}

#[test]
fn an_element_that_was_known_stays() {
    let added = "A @1..2: c(:add,0)\n";
    check("set-full", &format!("{added}B @3..4: c(:read,~\"[0]\")"), "true");
    check("set-full", &format!("{added}B @3..4: c(:read,~\"[]\")"), "false: lost");
    check("set-full", &format!("{added}B @3..4: c(:read,~\"[0 0]\")"), "false: duplicated");
    let unstable = "unknown: no element was read and stayed";
    check("set-full", &format!("{added}B @1..4: c(:read,~\"[]\")"), unstable);
    let found = format!("{added}B @3..4: c(:read,~\"[]\")\nC @5..6: c(:read,~\"[0]\")");
    check("set-full", &found, "true");
    let linearizable = Expectations { linearizable: true, ..Expectations::default() };
    assert_eq!(answer("set-full", linearizable, &found), "false: stale");
    let gone = "A @1..2: c(:add,0) unknown\nB @3..4: c(:read,~\"[0]\")\nC @5..6: c(:read,~\"[]\")";
    check("set-full", gone, "false: lost");
    let before = "A @5..6: c(:add,0)\nB @3..4: c(:read,~\"[]\")\nC @7..8: c(:read,~\"[0]\")";
    assert_eq!(answer("set-full", linearizable, before), "true");
}

#[test]
fn a_counter_is_between_what_was_and_what_may_have_been_added() {
    let added = "A @1..2: c(:add,1)\nB @3..9: c(:add,2)\nC @1..2: c(:add,4) aborted\n";
    for (value, expected) in [(1, "true"), (3, "true"), (0, "false"), (4, "false")] {
        let found = answer(
            "counter",
            Expectations::default(),
            &format!("{added}D @4..5: c(:read,{value})"),
        );
        assert_eq!(found.split(':').next(), Some(expected), "{value}");
    }
    let less = "A @1..2: c(:add,5)\nB @3..9: c(:add,-2)\nD @4..5: c(:read,";
    check("counter", &format!("{less}3)"), "true");
    check("counter", &format!("{less}2)"), "false: out-of-bounds");
    check("counter", added, "true of nothing");
    check("counter", "A @1..2: c(:read,nil)", "misfit 0: an integer");
}

#[test]
fn parts_are_seen_in_the_order_they_were_written() {
    check("sequential", "A: c(:read,~\"[7 [nil b a]]\")", "true");
    check("sequential", "A: c(:read,~\"[7 [c nil a]]\")", "false: out-of-order");
    check("sequential", "A: r(7,~\"[b nil]\")", "false: out-of-order");
    check("sequential", "A: c(:read,7)", "misfit 0: `[key [part …]]`");
}

#[test]
fn a_comment_is_not_seen_without_those_before_it() {
    let written = "A @1..2: w(:register,1)\nB @3..4: w(:register,2)\n";
    check("comments", &format!("{written}C @1..9: r(:register,~\"#{{1 2}}\")"), "true");
    check("comments", &format!("{written}C @1..9: r(:register,~\"[1]\")"), "true");
    check("comments", &format!("{written}C @1..9: r(:register,~\"#{{2}}\")"), "false: missing");
    let together = "A @1..3: w(:register,1)\nB @3..4: w(:register,2)\n";
    check("comments", &format!("{together}C @1..9: r(:register,~\"#{{2}}\")"), "true");
    // Two numbers without a key look like a key and its value.
    check("comments", &format!("{written}C @1..9: r(2,1)"), "true");
    let keyed = "A @1..2: w(7,1)\nB @3..4: w(8,2)\nC @1..9: r(8,~\"[2]\")";
    check("comments", keyed, "true");
    check("comments", written, "true of nothing");
}
