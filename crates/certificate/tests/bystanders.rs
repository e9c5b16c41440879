//! What has no part in a proof is not in its way: transactions that do not count.

mod common;

use common::verdict;

#[test]
fn aborted_writes_contradict_no_order_that_session_guarantees_take() {
    let given = "step c2 c0 given-order 0\nstep c0 c2 session\ncycle 0 1";
    let list = "step c2 c0 list-order 4 0\nstep c0 c2 session\ncycle 0 1";
    let claim = "violated read-your-writes";
    let written =
        |outcome| format!("order x: 3 2 4 1\nA: w(x,1)\nA: w(x,2) w(x,3){outcome}\nA: w(x,4)\n");
    let appended =
        |outcome| format!("A: a(l,1)\nA: a(l,2) a(l,3){outcome}\nA: a(l,4)\nB: r(l,[4 3 1])\n");
    for outcome in [" aborted", " unknown"] {
        assert!(verdict(&written(outcome), claim, given).is_ok(), "{outcome}");
    }
    assert!(verdict(&appended(" aborted"), claim, list).is_ok());
    assert_eq!(verdict(&written(""), claim, given).unwrap_err(), "step 0: no given order says so");
    for outcome in ["", " unknown"] {
        let why = verdict(&appended(outcome), claim, list).unwrap_err();
        assert!(why.contains("lists of the key contradict each other"), "{outcome}: {why}");
    }
}
