//! Rows that are written as they were read: what was read and then replaced shows a lost update
//! where snapshots have no known instant.

use crate::notation::{lines, parse, told, verify, verify_stepwise};
use isolde_checker::online::{Profile, Reads, Writers};

const AS_READ: Profile =
    Profile { reads: Reads::Window, writers: Writers::AsRead, ..Profile::NONE };

#[track_caller]
fn check(trace: &str, expected: &str) {
    let batch = parse(trace);
    assert_eq!(told(&verify(&batch, AS_READ)), lines(expected));
    assert_eq!(verify_stepwise(&batch, AS_READ).is_empty(), expected.is_empty());
}

/// All of it at the same time: no clock says which of the two came first.
#[test]
fn two_that_replace_what_both_have_read_are_one_too_many() {
    let trace = "A1 w 0-1 x=1
                 A1 c 2-3
                 B1 r 4-9 x=1
                 C1 r 4-9 x=1
                 B1 w 10-19 x=2
                 C1 w 10-19 x=3
                 B1 c 20-29
                 C1 c 20-29";
    check(trace, "lost-update C1.2 OtherWrite B1.2 EndOfOther B1.3");
    check(&trace.replace("C1 c", "C1 a"), "");
    check(&trace.replace("C1 w 10-19 x", "C1 w 10-19 y"), "");
    check(&trace.replace("C1 r 4-9 x=1", "C1 r 4-9 y=_"), "");
    // What changes nothing replaces nothing.
    check(&trace.replace("x=3", "x=1"), "");
}

#[test]
fn a_blind_write_between_a_read_and_its_replacement_is_lost() {
    let trace = "A1 r 0-1 x=_
                 B1 w 2-3 x=1
                 B1 c 4-5
                 A1 w 6-7 x=2
                 A1 c 8-9";
    check(trace, "lost-update A1.2 OtherWrite B1.1 EndOfOther B1.2");
    check(&trace.replace("4-5", "4-8"), "");
    check(&trace.replace("A1 r 0-1 x=_", "A1 b 0-1"), "");
    // Read after it was replaced, so that it is the other that was read.
    check(&trace.replace("A1 r 0-1 x=_", "").replace("A1 w", "A1 r 5-6 x=1\nA1 w"), "");
}

#[test]
fn columns_are_rows_of_their_own() {
    let trace = "A1 r 0-1 x.a=_
                 B1 w 2-3 x.a=1
                 B1 c 4-5
                 A1 w 6-7 x.b=2
                 A1 c 8-9";
    check(trace, "");
}
