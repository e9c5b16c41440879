//! Scripts that repeat violations: every terminal can type them, in the order of its session.

mod support;

use isolde::applicable_levels;
use isolde_history::Source;
use isolde_history::format::{self, Input, ReadOptions};
use isolde_report::{Output, Report};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus");
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");

fn report_of(input: Input, name: &str) -> Option<Report> {
    let options = ReadOptions::default();
    let (history, format) = format::read_detected(input, options).ok()?;
    Some(support::report(&history, (name, format.name), &applicable_levels(&history)))
}

fn replay(report: &Report) -> String {
    Output::by_name("replay").expect("a form").render(report)
}

/// The first script of a history: what prepares it, then every step as `A 1 BEGIN;`.
fn script(history: &str) -> Vec<String> {
    let source = Source::from_bytes("history".to_owned(), history.as_bytes());
    let text = replay(&report_of(Input::File(source), "history").expect("a history"));
    let first = text.split("\n-- Terminal ").next().expect("a script");
    let code = first.lines().filter(|line| line.starts_with("/*") || line.starts_with("INSERT"));
    let plain = code.map(|line| line.replace("/*", "").replace("*/", "").replace("isolde_", ""));
    plain.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// The steps of a script in the order in which they are typed, as terminal and statement.
fn steps(script: &str) -> Vec<(&str, &str)> {
    let step = |line| -> Option<(&str, &str)> {
        let (terminal, rest) = str::strip_prefix(line, "/* ")?.split_once(" */ /* ")?;
        Some((terminal, rest.split_once(" */ ")?.1))
    };
    script.lines().filter_map(step).collect()
}

/// Every terminal has one transaction open at a time, and types those of one session in order.
fn hold(file: &str, report: &Report) {
    let scenarios = report.levels.iter().flat_map(|level| &level.anomalies);
    let txns = scenarios.flat_map(|anomaly| &anomaly.scenario.transactions);
    let sessions: BTreeMap<String, (&str, usize)> =
        txns.map(|txn| (txn.name.clone(), (txn.session.as_str(), txn.place_in_session))).collect();
    for script in replay(report).split("-- Prepare once:") {
        let mut open: BTreeMap<&str, bool> = BTreeMap::new();
        let mut last: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
        let mut homes: BTreeMap<&str, &str> = BTreeMap::new();
        for (terminal, statement) in steps(script) {
            let is_open = open.entry(terminal).or_default();
            if let Some(name) = statement.strip_prefix("BEGIN;  -- ") {
                assert!(!*is_open, "{file}: {name} begins inside of another\n{script}");
                *is_open = true;
                let (session, place) = sessions[name];
                if session != "nil" {
                    let home = homes.entry(session).or_insert(terminal);
                    assert_eq!(*home, terminal, "{file}: session {session}\n{script}");
                }
                if let Some((same, before)) = last.insert(terminal, (session, place)) {
                    assert!(same == session && before < place, "{file}: {name}\n{script}");
                }
            } else {
                assert!(*is_open, "{file}: {statement}\n{script}");
                *is_open = !statement.starts_with("COMMIT") && !statement.starts_with("ROLLBACK");
            }
        }
        assert!(!open.values().any(|&is_open| is_open), "{file}: never ended\n{script}");
    }
}

/// Small files below a folder, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    const BYTES_MAX: u64 = 10_000;
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.metadata().is_ok_and(|it| it.len() <= BYTES_MAX) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn terminals_type_one_transaction_after_another() {
    let corpus = ["anomalies", "boundaries", "claims", "papers", "peers"];
    let data = ["mtc", "polysi/violations", "elle", "awdit", "isopredict", "elle-cli"];
    let folders = corpus.map(|folder| Path::new(CORPUS).join(folder)).into_iter();
    let folders = folders.chain(data.map(|folder| Path::new(DATA).join(folder)));
    let mut count = 0;
    for path in folders.flat_map(|folder| files(&folder)) {
        let name = path.display().to_string();
        let Some(report) = format::open(&path).ok().and_then(|input| report_of(input, &name))
        else {
            continue;
        };
        hold(&name, &report);
        count += usize::from(!report.weakest_violated.is_empty());
    }
    assert!(count > 100, "{count} violations were looked at");
}

/// T2 was begun inside of T1, which is before it in the same session.
#[test]
fn the_transactions_of_a_session_follow_one_another() {
    let found = script("r(1,0,1,1)\nw(1,1,1,1)\nr(1,0,1,2)\n");
    let expected = [
        "INSERT INTO replay (k, v) VALUES ('1', 0);",
        "A 1 BEGIN; -- T1",
        "A 2 SELECT v FROM replay WHERE k = '1'; -- saw 0",
        "A 3 UPDATE replay SET v = 1 WHERE k = '1'; -- (history:2)",
        "A 4 COMMIT;",
        "A 5 BEGIN; -- T2",
        "A 6 SELECT v FROM replay WHERE k = '1'; -- saw 0 (history:3)",
        "A 7 COMMIT;",
    ];
    assert_eq!(found, expected);
}

/// No order lets everybody see what they saw. The first commit that somebody missed is typed
/// before their read, and no read comes before a write that it saw.
#[test]
fn a_long_fork_of_two_sessions_gives_way_at_a_missed_write() {
    let found = script(
        "r(1,0,1,1)\nw(1,1,1,1)\nr(1,1,1,2)\nr(2,0,1,2)\n\
         r(2,0,2,1)\nw(2,1,2,1)\nr(1,0,2,2)\nr(2,1,2,2)\n",
    );
    let at = |part: &str| {
        let found = found.iter().position(|step| step.contains(part));
        found.unwrap_or_else(|| panic!("{part}: {found:?}"))
    };
    let commits: Vec<usize> = (0..found.len()).filter(|&it| found[it].contains("COMMIT")).collect();
    assert_eq!(commits.len(), 4);
    assert!(at("-- saw 1 (history:3)") > commits[0], "{found:#?}");
    assert!(at("-- saw 1 (history:8)") > at("SET v = 1 WHERE k = '2'"), "{found:#?}");
    assert!(found.iter().any(|step| step.starts_with("B ")), "{found:#?}");
}

/// Processes are not told, so each has a terminal; times of transactions are, so they are typed
/// one after another; what was there before comes from the lists that were read.
#[test]
fn transactions_without_a_process_have_terminals_and_times_of_their_own() {
    let found = script(
        "{:type :invoke, :time 0, :value [[:append 255 2] [:append 255 5] [:append 256 1]]}\n\
         {:type :ok, :time 0, :value [[:append 255 2] [:append 255 5] [:append 256 1]]}\n\
         {:type :invoke, :time 1, :value [[:append 255 8]]}\n\
         {:type :ok, :time 2, :value [[:append 255 8]]}\n\
         {:type :invoke, :time 3, :value [[:r 255 nil] [:append 256 4]]}\n\
         {:type :ok, :time 4, :value [[:r 255 [2 5 8]] [:append 256 4]]}\n\
         {:type :invoke, :time 5, :value [[:r 256 nil] [:r 255 nil]]}\n\
         {:type :ok, :time 6, :value [[:r 256 [1 4]] [:r 255 [2 5]]]}\n",
    );
    let commits: Vec<&str> = (found.iter())
        .filter(|step| step.contains("BEGIN") || step.contains("COMMIT"))
        .map(|step| step.split(" --").next().unwrap_or(step))
        .collect();
    let expected =
        ["B 1 BEGIN;", "B 3 COMMIT;", "C 4 BEGIN;", "C 7 COMMIT;", "A 8 BEGIN;", "A 11 COMMIT;"];
    assert_eq!(commits, expected, "{found:#?}");
    let first: Vec<&String> = found.iter().filter(|step| step.starts_with("INSERT")).collect();
    assert_eq!(
        first,
        [
            "INSERT INTO replay (k, v) VALUES ('255', ' 2 5');",
            "INSERT INTO replay (k, v) VALUES ('256', ' 1');",
        ]
    );
}
