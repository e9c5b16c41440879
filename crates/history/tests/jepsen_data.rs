//! Every recorded Jepsen, Elle, Knossos and Porcupine history is read to its end.

#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use isolde_history::format::{self, Input, ReadOptions, WriteError, Writer};
use isolde_history::{History, OpKind, Outcome, Source, TxnId};
use std::path::{Path, PathBuf};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");

/// Files below `folder` whose name ends in `ending`; empty when there is no data.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(DATA).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    if found.is_empty() {
        println!("skipped: no ../shared/data");
    }
    found
}

fn read(path: &Path, expected: &str) -> History {
    let input = format::open(path).expect("a file that can be opened");
    let (history, format) = match format::read_detected(input, ReadOptions::default()) {
        Ok(read) => read,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(format.name, expected, "{}", path.display());
    history
}

/// How many `needle`s a file has.
fn count(path: &Path, needle: &str) -> usize {
    let text = std::fs::read_to_string(path).expect("text");
    text.matches(needle).count()
}

/// Sessions, then committed, aborted and unknown transactions, then operations.
fn summary(history: &History) -> [usize; 5] {
    let outcomes = |wanted| {
        let outcomes = history.outcomes().iter();
        outcomes.filter(|&&outcome| outcome == wanted).count()
    };
    [
        history.session_count(),
        outcomes(Outcome::Committed),
        outcomes(Outcome::Aborted),
        outcomes(Outcome::Unknown),
        history.op_count(),
    ]
}

#[test]
fn every_edn_history_has_a_transaction_for_each_client_operation() {
    for folder in ["elle", "elle-cli", "grail", "jepsen-demo", "knossos"] {
        for path in files(folder, ".edn") {
            let history = read(&path, "jepsen-edn");
            let invocations = count(&path, ":type :invoke");
            assert_eq!(history.txn_count(), invocations, "{}", path.display());
            let committed = summary(&history)[1];
            assert_eq!(committed, count(&path, ":type :ok"), "{}", path.display());
        }
    }
}

#[test]
fn every_json_history_equals_its_edn() {
    for path in files("elle-cli", ".json") {
        let history = read(&path, "jepsen-json");
        let edn = path.with_extension("edn");
        if edn.exists() {
            let other = read(&edn, "jepsen-edn");
            assert_eq!(summary(&history), summary(&other), "{}", path.display());
            assert_eq!(history.op_kinds(), other.op_kinds(), "{}", path.display());
        }
    }
}

#[test]
fn every_porcupine_log_is_read() {
    for path in files("porcupine/jepsen", ".log") {
        let history = read(&path, "porcupine-etcd");
        assert_eq!(history.txn_count(), count(&path, ":invoke"), "{}", path.display());
        assert!(history.has_times());
    }
    for path in files("porcupine/kv", ".txt") {
        let history = read(&path, "porcupine-kv");
        assert_eq!(history.txn_count(), count(&path, ":invoke"), "{}", path.display());
        assert!(history.op_kinds().iter().all(|&kind| kind == OpKind::Call));
    }
}

/// The history after being written and read in `name`; `None` if it is refused.
fn again(history: &History, name: &str) -> Option<History> {
    let format = format::by_name(name).expect("a format");
    let Some(Writer::File(write)) = format.write else {
        panic!("{name} cannot be written");
    };
    let mut bytes = Vec::new();
    match write(history, &mut bytes) {
        Ok(_) => {}
        Err(WriteError::Inexpressible(_)) => return None,
        Err(error) => panic!("{error}"),
    }
    let input = Input::File(Source::from_bytes("again", &bytes));
    Some(format::read(format, input, ReadOptions::default()).expect("what was written"))
}

/// Everything that a verdict depends on: each session's transactions, labels aside.
fn content(history: &History) -> Vec<Vec<String>> {
    let mut sessions: Vec<Vec<String>> = history
        .sessions()
        .map(|session| {
            let txns = history.txns_of(session);
            txns.map(|txn| shown(history, txn)).collect()
        })
        .collect();
    sessions.sort();
    sessions
}

fn shown(history: &History, txn: TxnId) -> String {
    let mut words = vec![format!("{:?} {:?}", history.outcome(txn), history.txn_interval(txn))];
    for op in history.ops_of(txn) {
        let found = history.op(op);
        let key = history.datum(history.key_name(found.key));
        words.push(format!("{:?} {key}", found.kind));
        if found.kind == OpKind::ReadList {
            let elements = history.list(op).iter();
            words.extend(elements.map(|&element| history.datum(element).to_string()));
        } else {
            words.push(history.datum(found.value).to_string());
        }
    }
    words.join(" ")
}

#[test]
fn what_can_be_written_survives_a_round_trip() {
    let mut written = 0;
    let mut paths = Vec::new();
    for folder in ["elle", "elle-cli", "grail", "jepsen-demo", "knossos"] {
        paths.extend(files(folder, ".edn"));
    }
    for path in &paths {
        let history = read(path, "jepsen-edn");
        for name in ["jepsen-edn", "jepsen-json"] {
            if let Some(again) = again(&history, name) {
                written += 1;
                assert!(content(&history) == content(&again), "{} as {name}", path.display());
            }
        }
    }
    assert!(written >= paths.len(), "{written} of {}", paths.len());
}
