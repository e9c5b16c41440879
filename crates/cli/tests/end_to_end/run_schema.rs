//! The JSON of `isolde run` is what `docs/schema/run.schema.json` says, and the total of a
//! bank is in it.

use crate::schema::mistakes;
use crate::support::Folder;
use isolde::Level;
use serde_json::{Value, json};

const SCHEMA: &str = include_str!("../../../../docs/schema/run.schema.json");
const REPORT: &str = include_str!("../../../../docs/schema/report.schema.json");

/// What a run printed, which follows the schema, and its exit status.
fn run(arguments: &str) -> (i32, Value) {
    let schema: Value = serde_json::from_str(SCHEMA).expect("a schema in JSON");
    let report: Value = serde_json::from_str(REPORT).expect("a schema in JSON");
    let folder = Folder::with(&[]);
    let run = folder.isolde(&format!("run {arguments} --format json --output out"));
    let json: Value = serde_json::from_str(&run.stdout).expect(&run.stderr);
    assert_eq!(mistakes(&schema, &schema, &json, ""), [""; 0], "{arguments}");
    assert_eq!(mistakes(&report, &report, &json["report"], ""), [""; 0], "{arguments}");
    let kept: Value = serde_json::from_str(&folder.read("out/run.json")).expect("JSON");
    assert_eq!(kept, json, "{arguments}");
    (run.status, json)
}

#[test]
fn every_run_follows_the_schema() {
    for arguments in [
        "--sessions 2 --transactions 100",
        "sim://serializable?bug=lost-update --keys 6 --transactions 500",
        "sim://read-committed --level serializable --keys 6 --transactions 500",
    ] {
        run(arguments);
    }
}

#[test]
fn the_schema_names_every_level() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("a schema in JSON");
    let names: Vec<&str> = Level::ALL.iter().map(|level| level.name()).collect();
    assert_eq!(schema["$defs"]["level-name"]["enum"], json!(names));
}

#[test]
fn a_bank_keeps_its_total_unless_updates_are_lost() {
    let bank = "--preset bank --transactions 2000";
    for target in ["sqlite", "sim://snapshot-isolation"] {
        let (status, json) = run(&format!("{target} {bank}"));
        assert_eq!(status, 0, "{json}");
        let total = &json["bank"];
        assert_eq!(
            (&total["accounts"], &total["expected"], &total["wrong"], &total["unfounded"]),
            (&json!(10), &json!(1000), &json!(0), &json!(0))
        );
        assert!(total["looks"].as_u64() > Some(100), "{total}");
    }
    let (status, json) = run(&format!("sim://serializable?bug=lost-update {bank}"));
    assert_eq!(status, 1, "{json}");
    let total = &json["bank"];
    assert!(total["wrong"].as_u64() > Some(0), "{total}");
    let reads = total["evidence"]["reads"].as_array().expect("reads");
    let sum: i64 = reads.iter().filter_map(|read| read["balance"].as_i64()).sum();
    assert_eq!((reads.len(), Some(sum)), (10, total["evidence"]["total"].as_i64()));
    assert_ne!(sum, 1000);
}
