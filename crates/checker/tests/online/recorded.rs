//! Recorded histories as traces: nothing is accused that the history does not say.

use crate::notation::{OPTIONS, lines, told};
use isolde_checker::online::{
    Dml, Locks, NEVER, Options, Profile, Reads, Verifier, Writers, from_history,
};
use isolde_history::format::parse_text;

/// Snapshots, locks and first updater wins.
const SNAPSHOT: Profile = Profile {
    reads: Reads::FirstRequest,
    dml: Dml::Snapshot,
    locks: Locks::Writes,
    writers: Writers::FirstUpdater,
    ..Profile::NONE
};

fn check(history: &str, expected: &str) {
    let parsed = parse_text(history).unwrap_or_else(|error| panic!("{error}"));
    let traced = from_history(&parsed).expect("times");
    let options = Options { unwritten: Some(traced.unwritten), ..OPTIONS };
    let mut verifier = Verifier::new(SNAPSHOT, options);
    traced.initial.iter().for_each(|&cell| verifier.initial(cell));
    verifier.take(&traced.batch, NEVER);
    verifier.finish();
    assert_eq!(told(&verifier.take_findings()), lines(expected), "{history}");
}

/// A was refused at its second write and let go of `x` then, long before it heard of it.
#[test]
fn a_refused_write_holds_no_locks_until_its_refusal_is_heard_of() {
    let history = "A@0..1..20..60: w(x,1)@2..10 w(y,1)@20..60 aborted
                   B@0..1..50..55: w(x,2)@12..25";
    check(history, "");
    // Answered, the second write shows that A still held the first lock.
    let answered = history.replace("A@0..1..20..60", "A@0..1..61..70");
    check(&answered, "lock-violation B0.1 OtherLock A0.1 EndOfOther A0.3");
}

#[test]
fn a_refused_write_locks_nothing() {
    let history = "A@0..1..50..60: w(x,1)@2..10
                   B@0..1..20..30: w(x,2)@20..30 aborted";
    check(history, "");
    let answered = history.replace("B@0..1..20..30", "B@0..1..31..32");
    check(&answered, "lock-violation B0.1 OtherLock A0.1 EndOfOther A0.2");
}

#[test]
fn a_transaction_without_times_of_its_operations_may_have_been_given_up_early() {
    check(
        "A@0..100: w(x,1) aborted
         B@50..51..90..150: w(x,2)@60..70
         C@140..141..160..170: r(x,nil)@142..150",
        "",
    );
}

#[test]
fn a_row_that_an_update_by_condition_left_alone_is_not_locked() {
    check(
        "A@0..1..50..60: u(key 1..2; 1=?; 2=nil)@2..10 w(1,7)@2..10
         B@0..1..30..40: i(2,8)@12..20",
        "",
    );
    check(
        "A@0..1..50..60: u(key 1..2; 1=? 2=?)@2..10 w(1,7)@2..10 w(2,7)@2..10
         B@0..1..30..40: w(2,8)@12..20",
        "lock-violation B0.1 OtherLock A0.1 EndOfOther A0.4",
    );
}

#[test]
fn a_row_that_was_changed_to_nobody_knows_what_may_be_read_as_anything() {
    let history = "A@0..1..4..5: w(x,1)@2..3
                   B@10..11..14..15: u(value = 1; x=1)@12..13
                   C@20..21..24..25: r(x,2)@22..23
                   D@30..31..34..35: r(x,1)@32..33";
    // What C saw is what B made of it, and D sees what B had replaced.
    check(
        history,
        "stale-read D0.1 Snapshot D0.1 WroteWhatWasRead A0.1 EndOfWriter A0.2 Replaced B0.2 EndOfReplacer B0.3",
    );
    check(&history.replace("r(x,1)", "r(x,2)"), "");
    check(&history.replace("r(x,2)", "r(x,1)"), "");
    check(&history.replace("u(value = 1; x=1)", "r(x,1)"), "unexplained-read C0.1 Snapshot C0.1");
}
