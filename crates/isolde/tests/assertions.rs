//! What a failing assertion says.

use isolde::{History, Level, Txn, assert_level, assert_serializable, check, check_level};
use std::panic::{UnwindSafe, catch_unwind};

fn lost_update() -> History {
    let mut history = History::builder();
    history.initial(0);
    history.commit(Txn::of("alice").read("counter", 0).write("counter", 1));
    history.commit(Txn::of("bob").read("counter", 0).write("counter", 2));
    history.finish().expect("a small history")
}

/// What an assertion panics with.
fn message(assertion: impl FnOnce() + UnwindSafe) -> String {
    let panic = catch_unwind(assertion).expect_err("it fails");
    *panic.downcast::<String>().expect("a message")
}

#[test]
fn a_failing_assertion_shows_who_did_what_and_why_that_cannot_be() {
    let expected = "\
not serializable: lost update (Adya's G-cursor, Elle's lost-update)

  alice and bob both read counter = 0 and both replaced it, alice with counter =
    1 and bob with counter = 2: one of the updates is lost.

  Who did what:
    alice  session alice
           read counter = 0, wrote counter = 1 (transcript, record 1)
    bob    session bob
           read counter = 0, wrote counter = 2 (transcript, record 2)

  Why that cannot be:
    1. alice comes before bob: alice read counter = 0, which bob replaced with
       counter = 2 (transcript, record 1, 2). [rw on counter]
    2. bob comes before alice: bob read counter = 0, which alice replaced with
       counter = 1 (transcript, record 2, 1). [rw on counter]
    So alice would have to come before bob and bob before alice.

  What it means: Two clients read a value, both computed a new one from it, and
    one of the results was thrown away: a deposit or a counted vote is gone
    without an error.

  This alone rules out: cursor-stability, update-atomic,
    parallel-snapshot-isolation, repeatable-read, snapshot-isolation,
    session-snapshot-isolation, serializable, session-serializable";
    assert_eq!(message(|| assert_serializable!(lost_update())), expected);
}

#[test]
fn what_holds_passes_and_what_does_not_names_its_level() {
    assert_level!(lost_update(), Level::Causal);
    let message = message(|| assert_level!(lost_update(), Level::SnapshotIsolation));
    assert!(message.starts_with("not snapshot-isolation: lost update"), "{message}");
}

#[test]
fn an_undecided_level_fails_with_its_reason() {
    let without_times = || {
        let mut history = History::builder();
        history.commit(Txn::of("alice").write("x", 1));
        history.finish().expect("a small history")
    };
    let strict = || assert_level!(without_times(), Level::StrictSerializable);
    let message = message(strict);
    assert!(message.starts_with("strict-serializable is not decided: "), "{message}");
}

#[test]
fn an_answer_knows_the_levels_that_it_was_asked_about() {
    let answer = check_level(&lost_update(), Level::Causal);
    assert_eq!(answer.holds(Level::Causal), Some(true));
    assert_eq!(answer.holds(Level::Serializable), None);
    assert_eq!(answer.verdicts().len(), 1);
    let all = check(&lost_update());
    assert_eq!(all.holds(Level::Serializable), Some(false));
    assert!(all.to_string().lines().all(|line| line.chars().count() <= 80), "{all}");
}

#[test]
fn histories_of_files_are_read_whatever_their_format() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/anomalies");
    let history = History::from_path(format!("{corpus}/write-skew.txt")).expect("a history");
    assert_eq!(check(&history).holds(Level::Serializable), Some(false));
    assert!(History::from_path("nowhere.txt").is_err());
}
