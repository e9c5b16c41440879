//! Every real history in the logs' formats is recognised and read to its end.
//!
//! The histories lie beside the project; where they do not, the test says so.
#![allow(clippy::print_stdout, reason = "a skipped test must be seen")]

use isolde_history::format::{self, ReadOptions};
use isolde_history::{History, Outcome};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");

/// The name that the list of histories has for each format.
const NAMES: [(&str, &str); 7] = [
    ("dbcop bincode", "dbcop-bincode"),
    ("polysi text", "plume"),
    ("cobra directory", "cobra"),
    ("awdit text", "awdit"),
    ("isopredict trace", "isopredict"),
    ("timekiller json", "timekiller"),
    ("vbox directory", "vbox"),
];

#[derive(Default)]
struct Counts {
    histories: usize,
    sessions: usize,
    committed: usize,
    aborted: usize,
    operations: usize,
}

/// Paths and formats of the listed histories; a directory of runs stands for each.
fn listed() -> Vec<(PathBuf, &'static str)> {
    let list = std::fs::read_to_string(Path::new(DATA).join("expected.jsonl")).expect("readable");
    let mut found = Vec::new();
    for line in list.lines() {
        let entry: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let text = |name: &str| entry[name].as_str().expect("text").to_owned();
        let (path, format) = (Path::new(DATA).join(text("path")), text("format"));
        let known = NAMES.iter().find(|name| format.starts_with(name.0));
        let Some(&(_, name)) = known else { continue };
        if name == "dbcop-bincode" && path.is_dir() {
            let runs = std::fs::read_dir(&path).expect("a directory of runs");
            let runs = runs.map(|run| run.expect("a run").path().join("history.bincode"));
            found.extend(runs.map(|run| (run, name)));
        } else {
            found.push((path, name));
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> (History, &'static str) {
    let input = format::open(path).unwrap_or_else(|error| panic!("{error}"));
    let options = ReadOptions::default();
    let (history, format) =
        format::read_detected(input, options).unwrap_or_else(|error| panic!("{error}"));
    (history, format.name)
}

#[test]
fn every_listed_history_is_recognised_and_read_to_its_end() {
    if !Path::new(DATA).exists() {
        println!("skipped: no ../shared/data");
        return;
    }
    let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
    for (path, expected) in listed() {
        let (history, found) = read(&path);
        assert_eq!(found, expected, "{}", path.display());
        let outcome = |wanted| {
            let outcomes = history.outcomes().iter();
            outcomes.filter(|&&outcome| outcome == wanted).count()
        };
        assert!(outcome(Outcome::Committed) > 1, "{}", path.display());
        assert!(history.session_count() > 0, "{}", path.display());
        let count = counts.entry(found).or_default();
        count.histories += 1;
        count.sessions += history.session_count();
        count.committed += outcome(Outcome::Committed);
        count.aborted += outcome(Outcome::Aborted);
        count.operations += history.op_count();
    }
    for (name, count) in &counts {
        println!(
            "{name}: {} histories, {} sessions, {} transactions committed, {} aborted, {} operations",
            count.histories, count.sessions, count.committed, count.aborted, count.operations
        );
    }
    let seen: Vec<&str> = counts.keys().copied().collect();
    let mut all: Vec<&str> = NAMES.iter().map(|name| name.1).collect();
    all.sort_unstable();
    assert_eq!(seen, all);
}

/// Counted independently of this project's readers.
#[test]
fn cobra_histories_have_the_records_of_their_logs() {
    if !Path::new(DATA).exists() {
        println!("skipped: no ../shared/data");
        return;
    }
    let expected = [
        ("valid/chengRM-10000", 9912, 8256 + 71040),
        ("valid/rubis-10000", 9358, 35770 + 11257),
        ("valid/twitter-10000", 9990, 15913 + 32067),
        ("violations/cock-G2", 446, 892 + 446),
        ("violations/yuga-G2-a", 37190, 61383 + 25409),
    ];
    for (path, txns, operations) in expected {
        let (history, _) = read(&Path::new(DATA).join("cobra").join(path));
        assert_eq!((history.txn_count(), history.op_count()), (txns, operations));
    }
}
