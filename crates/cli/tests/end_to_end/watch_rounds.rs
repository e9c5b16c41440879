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
    assert!(run.stdout.contains("write-skew"), "{run:?}");
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
