//! `isolde watch --complete`: what the complete checker finds while a database runs.

use crate::support::Folder;
use serde_json::Value;

#[test]
fn a_violation_in_a_round_is_a_violation() {
    let folder = Folder::with(&[]);
    let run = folder.isolde(
        "watch sim://snapshot-isolation --workload mixed --keys 10 --transactions 20000 --seed 3 \
         --complete serializable --until-violation --explain 1 --output found --quiet \
         --events events.jsonl",
    );
    assert_eq!(run.status, 1, "{run:?}");
    assert!(run.stdout.starts_with("violation 1: serializable (complete-checker)\n"), "{run:?}");
    assert!(run.stdout.contains("\n  not serializable: "), "{run:?}");
    assert!(run.stdout.contains("the history around it is in found/violation-1.txt"), "{run:?}");
    let check = folder.isolde("check found/violation-1.txt --level serializable --quiet");
    assert_eq!(check.status, 1, "{check:?}");
    let events = folder.read("events.jsonl");
    let last: Value = serde_json::from_str(events.lines().last().expect("events")).expect("JSON");
    assert!(last["committed"].as_u64().expect("a number") < 20000, "{last}");
}

#[test]
fn rounds_of_a_snapshot_are_clean_at_its_level() {
    let folder = Folder::with(&[]);
    let run = folder.isolde(
        "watch sim://snapshot-isolation --workload mixed --keys 10 --transactions 3000 \
         --complete snapshot-isolation --quiet",
    );
    assert_eq!(run.status, 0, "{run:?}");
    assert!(run.stdout.contains("complete checker: snapshot-isolation, "), "{run:?}");
}

#[test]
fn operations_by_condition_are_said_to_be_left_out() {
    let folder = Folder::with(&[]);
    let run = folder.isolde(
        "watch sim://serializable --preset phantoms --transactions 500 --complete serializable \
         --quiet",
    );
    assert!(run.stdout.contains(" operations by condition"), "{run:?}");
}

/// Values of traces may repeat, and a round knows what was read by its value alone.
#[test]
fn a_round_in_which_a_value_repeats_is_not_decided() {
    let head = "{\"isolde\":\"trace 1\",\"client\":\"a\"}\n";
    let step = |what: &str, at: i64, txn: i64, value: i64| {
        let end = at + 1;
        format!("{{\"{what}\":[{at},{end}],\"txn\":{txn},\"rows\":[[\"t\",1,{value}]]}}\n")
    };
    let commit = |at: i64, txn: i64| format!("{{\"commit\":[{at},{}],\"txn\":{txn}}}\n", at + 1);
    let same = [step("read", 1, 1, 100), step("write", 3, 1, 100), commit(5, 1)].concat();
    let early =
        [step("read", 1, 1, 100), commit(3, 1), step("write", 5, 2, 100), commit(7, 2)].concat();
    let twice =
        [step("write", 1, 1, 100), commit(3, 1), step("write", 5, 2, 100), commit(7, 2)].concat();
    for trace in [same, early, twice] {
        let folder = Folder::with(&[("trace.jsonl", &format!("{head}{trace}{{\"bye\":true}}\n"))]);
        let run = folder
            .isolde("watch --from trace.jsonl --profile serializable --complete serializable");
        assert_eq!(run.status, 2, "{trace}{run:?}");
        let why = "round 1 was not decided: 1 values repeat, and rounds need unique ones";
        assert!(run.stderr.contains(why), "{trace}{run:?}");
    }
    let unique = [step("read", 1, 1, 100), step("write", 3, 1, 101), commit(5, 1)].concat();
    let folder = Folder::with(&[("trace.jsonl", &format!("{head}{unique}{{\"bye\":true}}\n"))]);
    let run =
        folder.isolde("watch --from trace.jsonl --profile serializable --complete serializable");
    assert_eq!(run.status, 0, "{run:?}");
}

/// What a history declares was in no round: a read of it was a read of what nobody wrote.
#[test]
fn rounds_know_the_initial_values_that_a_history_declares() {
    let history = "init *=0 x=5 y=0
                   A@0..1..4..5: r(x,5)@2..3 w(x,6)@3..4 r(y,0)@3..4
                   B@10..11..14..15: r(x,6)@12..13 r(y,0)@12..13 r(z,0)@12..13\n";
    let stale = history.replace("r(x,6)", "r(x,5)");
    let folder = Folder::with(&[("history.txt", history), ("stale.txt", &stale)]);
    let watched = |file: &str| {
        let options = "--profile serializable --complete strict-serializable --explain 0";
        folder.isolde(&format!("watch --from {file} {options}"))
    };
    let clean = watched("history.txt");
    assert_eq!(clean.status, 0, "{clean:?}");
    assert!(clean.stdout.contains("2 transactions in 1 rounds"), "{clean:?}");
    assert!(!clean.stdout.contains("not decided"), "{clean:?}");
    let stale = watched("stale.txt");
    assert_eq!(stale.status, 1, "{stale:?}");
    assert!(stale.stdout.contains("strict-serializable 1"), "{stale:?}");
}
