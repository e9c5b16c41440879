//! `isolde run` on key-value stores, whose servers are installed if they are missing, and on
//! the simulated database.

use crate::install::{self, Needed};
use crate::support::Folder;
use serde_json::Value;
use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

const REDIS: Needed = Needed { file: "/usr/bin/redis-server", packages: &["redis-server"] };
const ETCD: Needed = Needed { file: "/usr/bin/etcd", packages: &["etcd-server"] };

/// The exit status and the verdicts of a run.
fn verdict(arguments: &str) -> (i32, String) {
    let run = Folder::with(&[]).isolde(&format!("run {arguments} --output out --quiet"));
    (run.status, run.stdout + &run.stderr)
}

fn satisfied(arguments: &str, level: &str) {
    let found = verdict(&format!("{arguments} --level {level}"));
    assert_eq!(found, (0, format!("{level}: satisfied\n")), "{arguments}");
}

fn violated(arguments: &str, level: &str) {
    let found = verdict(&format!("{arguments} --level {level}"));
    assert_eq!(found, (1, format!("{level}: violated\n")), "{arguments}");
}

/// Single reads and writes of few keys, which show what is stale.
const STALE: &str = "--preset YCSB-A --sessions 10 --keys 5";

/// A server that was held answers those who waited before it has caught up with the others,
/// so that every pause is an opportunity.
const PAUSES: &str = "--duration 4s --fault pause --fault-every 200ms";

#[test]
fn redis_is_strict_serializable_and_its_replica_is_stale() {
    if !install::is_there(&REDIS) {
        return;
    }
    satisfied("redis --transactions 2000", "strict-serializable");
    satisfied("redis --preset list-append --transactions 1000", "strict-serializable");
    violated(&format!("redis+replica {STALE} {PAUSES}"), "strict-serializable");
    satisfied(&format!("redis+replica {STALE} --transactions 3000"), "session-serializable");
}

#[test]
fn etcd_is_strict_serializable_and_its_serializable_reads_are_stale() {
    if !install::is_there(&ETCD) {
        return;
    }
    satisfied("etcd --transactions 500", "strict-serializable");
    let local = format!("etcd+cluster --isolation serializable-reads {STALE}");
    violated(&format!("{local} {PAUSES}"), "strict-serializable");
    satisfied(&format!("{local} --transactions 3000"), "session-serializable");
}

/// Nobody could know which keys were ours.
#[test]
fn a_server_that_dies_leaves_a_message_how_to_remove_what_is_left() {
    if !install::is_there(&REDIS) {
        return;
    }
    let address = isolde_drivers::address("redis").expect("an address");
    let server = isolde_drivers::open(&address).expect("a private server");
    let folder = Folder::with(&[]);
    let name = &server.endpoints()[0].name;
    let mut running = folder
        .command(&format!("run redis://{name} --duration 10m --output out --quiet"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let history = folder.path("out/history.log");
    while !std::fs::metadata(&history).is_ok_and(|file| file.len() > 10_000) {
        assert!(running.try_wait().expect("a child").is_none(), "it ended at once");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(server);
    let mut said = String::new();
    running.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    assert_eq!(running.wait().expect("an end").code(), Some(3), "{said}");
    let remove = "; what was created is left behind, remove it with: redis-cli --scan --pattern \
                  'isolde_";
    assert!(said.contains(remove), "{said}");
    let json: Value = serde_json::from_str(&folder.read("out/run.json")).expect("JSON");
    assert!(json["committed"].as_u64() > Some(0), "{json}");
}

/// The faults that a run says it met, each once.
fn survived(arguments: &str, level: &str) -> Vec<String> {
    let folder = Folder::with(&[]);
    let command = format!("run {arguments} --level {level} --output out --quiet");
    let run = folder.isolde(&command);
    let found = (run.status, run.stdout + &run.stderr);
    assert_eq!(found, (0, format!("{level}: satisfied\n")), "{arguments}");
    let json: Value = serde_json::from_str(&folder.read("out/run.json")).expect("JSON");
    let faults = json["faults"].as_array().expect("faults").iter();
    let mut names: Vec<String> =
        faults.filter_map(|fault| fault["fault"].as_str().map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn redis_loses_nothing_whatever_is_done_to_its_servers() {
    if !install::is_there(&REDIS) {
        return;
    }
    let often = "--sessions 8 --keys 100 --fault-every 300ms";
    let faults = survived(
        &format!("redis {often} --duration 6s --fault kill,partition,pause,restart"),
        "strict-serializable",
    );
    assert_eq!(faults, ["kill", "partition", "pause", "restart"]);
    let faults = survived(
        &format!("redis+replica {often} --duration 4s --fault partition"),
        "session-serializable",
    );
    assert_eq!(faults, ["partition"]);
}

#[test]
fn etcd_loses_nothing_whatever_is_done_to_its_servers() {
    if !install::is_there(&ETCD) {
        return;
    }
    let often = "--sessions 8 --keys 100 --duration 5s --fault-every 300ms";
    let faults = survived(&format!("etcd {often} --fault kill,partition"), "strict-serializable");
    assert_eq!(faults, ["kill", "partition"]);
    let faults =
        survived(&format!("etcd+cluster {often} --fault partition"), "strict-serializable");
    assert_eq!(faults, ["partition"]);
}

#[test]
fn the_simulated_database_keeps_its_levels_and_a_bug_breaks_them() {
    for (level, promise) in [
        ("read-uncommitted", "read-uncommitted"),
        ("read-committed", "read-committed"),
        ("read-atomic", "read-atomic"),
        ("causal", "causal"),
        ("snapshot-isolation", "strong-snapshot-isolation"),
        ("serializable", "strict-serializable"),
    ] {
        satisfied(&format!("sim://{level} --keys 6 --transactions 1000"), promise);
    }
    // Those that show however the clients meet.
    for bug in ["thin-air-read", "future-read", "not-my-own-write", "session-guarantee-violation"] {
        violated(
            &format!("sim://serializable?bug={bug} --keys 6 --transactions 1000"),
            "strict-serializable",
        );
    }
}
