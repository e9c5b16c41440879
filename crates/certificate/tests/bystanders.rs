//! What has no part in a proof is not in its way: transactions that do not count, and keys that
//! no condition is about.

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

#[test]
fn an_aggregate_is_wrong_in_whatever_order_other_keys_were_written() {
    let history = "A: w(1,1)\nB: w(1,2)\nC: w(3,4) p(sum key 2..3 -> 3)\n";
    let (claim, proof) = ("violated snapshot-isolation", "reading result-set-mismatch 0 3");
    assert!(verdict(history, claim, proof).is_ok());
    let refused = |history: &str| verdict(history, claim, proof).unwrap_err();
    let right = history.replace("-> 3", "-> 4");
    assert_eq!(refused(&right), "the versions of the key may fit what was found");
    // No version of key 1 makes up for it; but one of them makes 5, if it was seen.
    let within = history.replace("key 2..3", "key 1..3");
    assert!(verdict(&within, claim, proof).is_ok());
    let within = within.replace("-> 3", "-> 5");
    assert_eq!(refused(&within), "the versions of key 0 are not known to have one order");
}

#[test]
fn a_wrong_aggregate_names_no_key_and_no_write() {
    let history = "A: w(1,1)\nB: w(2,2)\nC: p(sum all -> 4)\n";
    let refused = |proof: &str| {
        let proof = format!("reading result-set-mismatch {proof}");
        verdict(history, "violated snapshot-isolation", &proof).err()
    };
    assert_eq!(refused("0 2"), None);
    let key = "an aggregate is of all keys, which key 0 stands for";
    assert_eq!(refused("1 2").as_deref(), Some(key));
    let write = "an aggregate is wrong by itself, and not by operation 0";
    assert_eq!(refused("0 2 0").as_deref(), Some(write));
}
