//! The definitions give the verdicts that the literature gives to its examples.
//!
//! `check` compares the strongest levels that hold and the weakest that fail;
//! all others follow from these by the table of implications, which `check` relies
//! on and the property tests establish. Levels that need times are left out where
//! the history has none, linearizability where transactions are longer. The four
//! session guarantees are one word where they agree.

use isolde_checker::Level;
use isolde_checker::reference::{Reference, decide, decide_all};
use isolde_history::format::parse_text;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(summary(text), expected, "\n{text}");
}

fn summary(text: &str) -> String {
    let history = parse_text(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let verdicts = decide_all(&history);
    let with = |wanted: Reference| -> Vec<Level> {
        let rows = verdicts.iter().filter(|row| row.1 == wanted);
        rows.map(|row| row.0).collect()
    };
    let (holding, failing) = (with(Reference::Satisfied), with(Reference::Violated));
    let strongest = holding.iter().filter(|level| {
        let stronger = level.stronger_than();
        !holding.iter().any(|other| stronger.contains(other))
    });
    let weakest = failing.iter().filter(|level| {
        let weaker = level.weaker_than();
        !failing.iter().any(|other| weaker.contains(other))
    });
    let names = |levels: Vec<&Level>| {
        let names: Vec<&str> = levels.iter().map(|level| level.name()).collect();
        names.join(" ")
    };
    let (strongest, weakest) = (names(strongest.collect()), names(weakest.collect()));
    format!("holds {strongest}; fails {weakest}").replace(
        "read-your-writes monotonic-reads monotonic-writes writes-follow-reads",
        "session-guarantees",
    )
}

#[track_caller]
fn check_unknown(text: &str, level: Level, reason: &str) {
    let history = parse_text(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    match decide(&history, level) {
        Reference::Unknown(obstacle) => assert_eq!(obstacle.to_string(), reason, "\n{text}"),
        decided => panic!("{decided:?}\n{text}"),
    }
}

#[test]
fn one_after_another_is_serial() {
    check(
        "A: r(x,nil) w(x,1)
         B: r(x,1) w(x,2)",
        "holds session-serializable; fails ",
    );
}

#[test]
fn write_skew_separates_snapshots_from_serial_orders() {
    check(
        "init *=0
         A: r(x,0) w(y,1)
         B: r(y,0) w(x,1)",
        "holds session-snapshot-isolation; fails repeatable-read",
    );
}

#[test]
fn lost_update_fails_from_cursor_stability_up() {
    check(
        "init *=0
         A: r(x,0) w(x,1)
         B: r(x,0) w(x,2)",
        "holds prefix; fails cursor-stability",
    );
}

#[test]
fn an_update_lost_across_keys_is_tolerated_by_cursor_stability() {
    // A missed B's x although B's y came before A's.
    check(
        "init *=0
         order y: 2 1
         A: r(x,0) w(y,1)
         B: w(x,1) w(y,2)",
        "holds cursor-stability prefix; fails update-atomic repeatable-read",
    );
}

#[test]
fn long_fork_separates_parallel_snapshots_from_snapshots() {
    check(
        "init *=0
         A: w(x,1)
         B: w(y,1)
         C: r(x,1) r(y,0)
         D: r(x,0) r(y,1)",
        "holds causal parallel-snapshot-isolation; fails prefix repeatable-read snapshot-isolation",
    );
}

#[test]
fn an_effect_without_its_cause_is_not_causal() {
    check(
        "init *=0
         A: w(x,1)
         B: r(x,1) w(y,1)
         C: r(y,1) r(x,0)",
        "holds read-atomic monotonic-reads monotonic-writes writes-follow-reads update-atomic; \
         fails causal parallel-snapshot-isolation repeatable-read",
    );
}

#[test]
fn half_a_transaction_is_seen_in_one_order_only() {
    check(
        "init *=0
         A: w(x,1) w(y,1)
         B: r(y,0) r(x,1)",
        "holds read-committed session-guarantees cursor-stability; \
         fails read-atomic update-atomic repeatable-read",
    );
    check(
        "init *=0
         A: w(x,1) w(y,1)
         B: r(x,1) r(y,0)",
        "holds session-guarantees cursor-stability; fails monotonic-atomic-view repeatable-read",
    );
}

#[test]
fn a_session_that_reads_its_future_is_serializable_without_sessions() {
    check(
        "A: r(x,1)
         A: w(x,1)",
        "holds serializable; fails read-committed session-guarantees",
    );
}

#[test]
fn a_session_forgets_what_it_wrote() {
    check(
        "A: w(x,1)
         A: r(x,nil)",
        "holds read-committed monotonic-reads monotonic-writes writes-follow-reads serializable; \
         fails read-your-writes",
    );
}

#[test]
fn a_session_forgets_what_it_saw() {
    check(
        "A: w(x,1)
         B: r(x,1)
         B: r(x,nil)",
        "holds read-atomic monotonic-writes writes-follow-reads serializable; \
         fails monotonic-reads",
    );
}

#[test]
fn writes_of_a_session_are_seen_out_of_order() {
    check(
        "A: w(x,1)
         A: w(y,2)
         B: r(y,2) r(x,nil)",
        "holds read-atomic monotonic-reads writes-follow-reads serializable; \
         fails monotonic-writes",
    );
}

#[test]
fn a_write_is_seen_without_what_its_session_read() {
    check(
        "A: w(x,1)
         B: r(x,1)
         B: w(y,2)
         C: r(y,2) r(x,nil)",
        "holds read-atomic monotonic-reads monotonic-writes serializable; \
         fails writes-follow-reads",
    );
}

#[test]
fn reads_that_nothing_explains_fail_from_read_committed_up() {
    let expected = "holds read-uncommitted session-guarantees; fails adya-read-committed";
    for text in [
        // thin air
        "A: r(x,1)",
        // aborted
        "A: w(x,1) aborted\nB: r(x,1)",
        // intermediate
        "A: w(x,1) w(x,2)\nB: r(x,1)",
        // future
        "A: r(x,1) w(x,1)",
        // not my own write
        "A: w(x,1)\nB: w(x,2) r(x,1)",
        // not my last write
        "A: w(x,1) w(x,2) r(x,1)",
        // a refused compare-and-set that should have succeeded
        "A: w(x,1) r(x,!1)",
        // lists: thin air, aborted, intermediate, future, not my own write
        "A: r(l,[1])",
        "A: a(l,1) aborted\nB: a(l,2)\nC: r(l,[1 2])",
        "A: a(l,1) a(l,2)\nB: r(l,[1])",
        "A: r(l,[1]) a(l,1)",
        "A: a(l,1) r(l,[])",
        "A: a(l,1)\nB: a(l,2) r(l,[2 1])",
    ] {
        check(text, expected);
    }
}

#[test]
fn reads_that_their_own_transaction_explains_are_fine() {
    for text in [
        "A: w(x,1) w(x,2) r(x,2)",
        "A: w(x,1) w(x,2)\nB: r(x,2)",
        "A: w(x,1) r(x,!2) r(x,?)",
        "A: r(l,[]) a(l,1) r(l,[1])",
        "A: a(l,1)\nB: a(l,2) r(l,[1 2])",
        "A: a(l,1) a(l,2)\nB: r(l,[1 2])",
        "A: d(x) r(x,nil)",
    ] {
        check(text, "holds session-serializable; fails ");
    }
}

#[test]
fn lists_that_fit_no_version_order_fail_everywhere_but_in_sessions() {
    let expected = "holds session-guarantees; fails read-uncommitted";
    for text in [
        // incompatible order
        "A: a(l,1)\nB: a(l,2)\nC: r(l,[1 2])\nD: r(l,[2 1])",
        // duplicate elements
        "A: a(l,1)\nC: r(l,[1 1])",
        // a transaction's appends in another order than its program's
        "A: a(l,1) a(l,2)\nB: r(l,[2 1])",
        "A: a(l,1) a(l,2)\nB: r(l,[2])",
    ] {
        check(text, expected);
    }
}

#[test]
fn writers_that_overwrite_each_other_fail_everywhere() {
    check(
        "A: a(l,1) a(m,1)
         B: a(l,2) a(m,2)
         C: r(l,[1 2])
         D: r(m,[2 1])",
        "holds ; fails read-uncommitted session-guarantees",
    );
    check(
        "order x: 1 2
         order y: 2 1
         A: w(x,1) w(y,1)
         B: w(x,2) w(y,2)",
        "holds ; fails read-uncommitted session-guarantees",
    );
}

#[test]
fn an_append_that_no_read_shows_comes_after_those_shown() {
    check(
        "A: a(l,1) a(m,1)
         B: a(l,2) a(m,2)
         C: r(l,[1]) r(m,[2])",
        "holds ; fails read-uncommitted session-guarantees",
    );
}

#[test]
fn a_given_order_decides_between_orders_that_would_both_do() {
    check(
        "A: w(x,1)
         B: r(x,1) w(x,2)
         order x: 2 1",
        "holds read-uncommitted; fails adya-read-committed session-guarantees",
    );
    check(
        "A: w(x,1)
         B: r(x,1) w(x,2)
         order x: nil 1 2",
        "holds session-serializable; fails ",
    );
    check(
        "A: w(x,1)
         order x: 1 nil",
        "holds session-guarantees; fails read-uncommitted",
    );
}

#[test]
fn a_repeated_value_may_come_from_either_writer() {
    check(
        "A: w(x,1) w(y,1)
         B: w(x,1)
         C: r(x,1) r(y,nil)",
        "holds session-serializable; fails ",
    );
    check(
        "A: w(x,1) w(y,1)
         B: w(x,1) w(y,2)
         C: r(x,1) r(y,nil)",
        "holds session-guarantees cursor-stability; fails monotonic-atomic-view repeatable-read",
    );
}

#[test]
fn an_unknown_transaction_counts_once_it_is_seen() {
    // Nobody saw it, so it may not have happened.
    check(
        "A: w(x,1) w(y,1) unknown
         B: r(x,nil)
         B: r(y,nil)",
        "holds session-serializable; fails ",
    );
    check(
        "A: w(x,1) w(y,1) unknown
         B: r(x,1) r(y,nil)",
        "holds session-guarantees cursor-stability; fails monotonic-atomic-view repeatable-read",
    );
    // Seen by one that was itself only seen.
    check(
        "A: w(x,1) unknown
         B: r(x,1) w(y,1) unknown
         C: r(y,1) r(x,nil)",
        "holds read-atomic monotonic-reads monotonic-writes writes-follow-reads update-atomic; \
         fails causal parallel-snapshot-isolation repeatable-read",
    );
}

#[test]
fn reads_by_condition_are_not_protected_by_repeatable_read() {
    check(
        "A: p(all; ; x=nil y=nil) w(x,1)
         B: p(all; ; x=nil y=nil) w(y,2)",
        "holds repeatable-read session-snapshot-isolation; fails serializable",
    );
    // Cursor stability follows from repeatable read, so it is about items too.
    check(
        "A: p(all; ; x=nil) w(x,1)
         B: p(all; ; x=nil) w(x,2)",
        "holds prefix repeatable-read; fails update-atomic",
    );
}

#[test]
fn a_row_that_does_not_meet_the_condition_fails_from_snapshots_up() {
    check(
        "A: w(x,1)
         B: p(value = 2; x=1)",
        "holds prefix parallel-snapshot-isolation repeatable-read; fails snapshot-isolation",
    );
    check(
        "A: w(x,1)
         B: p(value = 1; ; x=1)",
        "holds causal parallel-snapshot-isolation repeatable-read; fails prefix snapshot-isolation",
    );
    check(
        "A: w(x,1){age=30}
         B: p(column age 20..40; x=1)",
        "holds session-serializable; fails ",
    );
}

#[test]
fn real_time_orders_what_sessions_do_not() {
    // A stale read: of a version overwritten before the reader began.
    check(
        "A @1..2: w(x,1)
         B @3..4: r(x,nil)",
        "holds prefix-consistent-snapshot-isolation session-serializable; \
         fails strong-snapshot-isolation strict-serializable",
    );
    check(
        "A @1..3: w(x,1)
         B @2..4: r(x,nil)",
        "holds strong-snapshot-isolation linearizable; fails ",
    );
    // A read of something that is written later.
    check(
        "A @3..4: w(x,1)
         B @1..2: r(x,1)",
        "holds session-serializable; fails generalized-snapshot-isolation strict-serializable",
    );
    // It never learned of its end, so it may have ended late.
    check(
        "A @1..2: w(x,1) unknown
         B @3..4: r(x,nil)
         C @5..6: r(x,1)",
        "holds strong-snapshot-isolation linearizable; fails ",
    );
}

#[test]
fn times_of_begin_and_commit_tell_more_than_the_whole() {
    check(
        "A @1..9: w(x,1)
         B @1..9: r(x,1)",
        "holds strong-snapshot-isolation linearizable; fails ",
    );
    // B had begun when A asked to commit, so no snapshot of B contains A.
    check(
        "A @1..2..6..9: w(x,1)
         B @1..3..4..9: r(x,1)",
        "holds linearizable; fails generalized-snapshot-isolation",
    );
}

#[test]
fn what_is_too_large_or_not_defined_is_unknown() {
    check_unknown(
        &"A: w(x,1)\n".repeat(8),
        Level::Causal,
        "the history has 8 transactions that count, more than 7",
    );
    check_unknown("A: w(x,1)", Level::StrictSerializable, "the history has no times");
    check_unknown(
        "A @1..2: w(x,1) r(x,1)",
        Level::Linearizable,
        "a transaction has more than one operation",
    );
    check_unknown(
        "A: c(transfer,1)",
        Level::ReadUncommitted,
        "the history has operations that are neither read nor write",
    );
    check_unknown(
        "A: a(x,1) r(x,1)",
        Level::Serializable,
        "the history uses a key both as a register and as a list",
    );
    let writers = "A: w(x,1)\n".repeat(4);
    let reader = format!("B:{}\n", " r(x,1)".repeat(7));
    check_unknown(
        &(writers + &reader),
        Level::Serializable,
        "values repeat so that reads have more than 4096 combinations of writers",
    );
}

#[test]
fn a_told_order_that_may_mean_either_of_two_writes_tells_nothing() {
    let text = "A: w(x,1)\nB: w(x,1)\norder x: 1";
    let history = parse_text(text).expect("a history");
    assert_eq!(decide(&history, Level::Serializable), Reference::Satisfied);
}
