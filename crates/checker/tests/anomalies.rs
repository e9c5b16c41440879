//! Which level forbids which of the anomalies of [MTC, Table I and Figure 5].
//!
//! `docs/anomalies.md` is written by this test from the verdicts of the engine; set
//! `ISOLDE_WRITE_DOCS` to write it anew. What it must say is asserted apart from it.

use isolde_checker::{Check, IMPLICATIONS, Level, Limits, Verdict};
use isolde_history::Index;
use isolde_history::format::parse_text;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const CORPUS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/anomalies/mini-transactions");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/anomalies.md");

/// A letter of the figure, the file, what was seen, and the weakest levels that forbid it.
struct Row {
    figure: char,
    file: &'static str,
    seen: &'static str,
    forbidden_by: &'static [Level],
}

const COMMITTED: &[Level] = &[Level::AdyaReadCommitted];

/// Expectations follow from the definitions, not from the engine.
const ROWS: [Row; 14] = [
    Row {
        figure: 'a',
        file: "thin-air-read",
        seen: "a value nobody wrote",
        forbidden_by: COMMITTED,
    },
    Row {
        figure: 'b',
        file: "aborted-read",
        seen: "a value of an aborted transaction",
        forbidden_by: COMMITTED,
    },
    Row {
        figure: 'c',
        file: "future-read",
        seen: "a value that the reader writes later",
        forbidden_by: COMMITTED,
    },
    Row {
        figure: 'd',
        file: "not-my-last-write",
        seen: "an own write, but not the last",
        forbidden_by: COMMITTED,
    },
    Row {
        figure: 'e',
        file: "not-my-own-write",
        seen: "another's value after an own write",
        forbidden_by: COMMITTED,
    },
    Row {
        figure: 'f',
        file: "intermediate-read",
        seen: "a value that its writer replaced",
        forbidden_by: COMMITTED,
    },
    Row {
        figure: 'g',
        file: "non-repeatable-reads",
        seen: "two values of one key in one transaction",
        // First the old value, then the new one: monotonic atomic view allows it. The
        // later read fixes what the transaction had to see for levels of whole reads.
        forbidden_by: &[Level::ReadAtomic, Level::UpdateAtomic, Level::RepeatableRead],
    },
    Row {
        figure: 'h',
        file: "session-guarantee-violation",
        seen: "a session's own earlier write is missed",
        forbidden_by: &[Level::ReadYourWrites],
    },
    Row {
        figure: 'i',
        file: "non-monotonic-read",
        seen: "after a write of a transaction, what another of its writes had replaced",
        forbidden_by: &[Level::MonotonicAtomicView, Level::RepeatableRead],
    },
    Row {
        figure: 'j',
        file: "fractured-read",
        seen: "one write of a transaction without the other",
        forbidden_by: &[Level::MonotonicAtomicView, Level::RepeatableRead],
    },
    Row {
        figure: 'k',
        file: "causality-violation",
        seen: "an effect without its cause",
        forbidden_by: &[Level::Causal, Level::ParallelSnapshotIsolation, Level::RepeatableRead],
    },
    Row {
        figure: 'l',
        file: "long-fork",
        seen: "unrelated writes in opposite orders",
        forbidden_by: &[Level::Prefix, Level::SnapshotIsolation, Level::RepeatableRead],
    },
    Row {
        figure: 'm',
        file: "lost-update",
        seen: "two updates of one version",
        forbidden_by: &[Level::CursorStability],
    },
    Row {
        figure: 'n',
        file: "write-skew",
        seen: "each missed what the other wrote",
        forbidden_by: &[Level::RepeatableRead],
    },
];

fn verdicts(row: &Row) -> BTreeMap<Level, Verdict> {
    let text = fs::read_to_string(Path::new(CORPUS).join(format!("{}.txt", row.file)))
        .expect("a file of the corpus");
    let history = parse_text(&timed(&text)).expect("a history");
    let index = Index::new(&history);
    // Linearizability is about single operations.
    let levels = Level::ALL.into_iter().filter(|level| *level != Level::Linearizable);
    let decide = |level: Level| {
        let verdict = Check::new(&history, &index, &Limits::NONE).decide(level);
        (level, verdict)
    };
    levels.map(decide).collect()
}

/// Every transaction overlaps those of other sessions, so that real time adds nothing
/// but the order of each session.
fn timed(text: &str) -> String {
    let session = |line: &str| line.split([':', '/']).next().unwrap_or("").to_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut timed = String::new();
    for (number, line) in lines.iter().enumerate() {
        let Some((head, ops)) = line.split_once(':').filter(|_| !line.starts_with("init")) else {
            writeln!(timed, "{line}").expect("a string grows");
            continue;
        };
        let same =
            |others: &[&str]| others.iter().filter(|other| session(other) == session(line)).count();
        let (earlier, later) = (same(&lines[..number]), same(&lines[number + 1..]));
        let times = match (earlier, later) {
            (0, 0) => "@1..8",
            (0, _) => "@1..4",
            _ => "@5..8",
        };
        writeln!(timed, "{head} {times}:{ops}").expect("a string grows");
    }
    timed
}

fn is_forbidden(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Satisfied(_) => false,
        Verdict::Violated(_) => true,
        Verdict::Unknown(reason) => panic!("not decided: {reason:?}"),
    }
}

#[test]
fn each_anomaly_is_forbidden_by_exactly_the_levels_that_should() {
    for row in &ROWS {
        let expected = |level: Level| {
            let weaker = level.weaker_than();
            row.forbidden_by.iter().any(|by| *by == level || weaker.contains(by))
        };
        for (level, verdict) in verdicts(row) {
            assert_eq!(is_forbidden(&verdict), expected(level), "{} at {level}", row.file);
        }
    }
}

#[test]
fn the_page_of_anomalies_shows_the_verdicts_of_the_engine() {
    let page = page();
    if std::env::var_os("ISOLDE_WRITE_DOCS").is_some() {
        fs::write(PAGE, &page).expect("a writable tree");
    }
    let found = fs::read_to_string(PAGE).unwrap_or_default();
    assert!(found == page, "{PAGE} is not up to date: set ISOLDE_WRITE_DOCS=1 to write it anew");
}

fn page() -> String {
    let all: Vec<(&Row, BTreeMap<Level, Verdict>)> =
        ROWS.iter().map(|row| (row, verdicts(row))).collect();
    let mut page = String::from(HEAD);
    for (row, verdicts) in &all {
        let forbidden: Vec<Level> =
            verdicts.iter().filter(|it| is_forbidden(it.1)).map(|it| *it.0).collect();
        let is_weakest =
            |level: &&Level| !forbidden.iter().any(|other| level.weaker_than().contains(other));
        let weakest: Vec<String> =
            forbidden.iter().filter(is_weakest).map(|level| format!("`{level}`")).collect();
        let Row { figure, file, seen, .. } = row;
        let link = format!("[{file}](../corpus/anomalies/mini-transactions/{file}.txt)");
        writeln!(page, "| {figure} | {link} | {seen} | {} |", weakest.join(", "))
            .expect("a string grows");
    }
    page.push_str(MATRIX);
    page.push_str("| level |");
    for row in &ROWS {
        write!(page, " {} |", row.figure).expect("a string grows");
    }
    writeln!(page, "\n|---|{}", "---|".repeat(ROWS.len())).expect("a string grows");
    let levels: Vec<Level> = all[0].1.keys().copied().collect();
    for level in levels.into_iter().rev() {
        let cell = |(_, verdicts): &(&Row, BTreeMap<Level, Verdict>)| {
            if is_forbidden(&verdicts[&level]) { " no |" } else { " · |" }
        };
        let cells: String = all.iter().map(cell).collect();
        writeln!(page, "| `{level}` |{cells}").expect("a string grows");
    }
    page
}

const HEAD: &str = "\
# Which level forbids which anomaly

The fourteen anomalies of [MTC, Table I and Figure 5], each as the smallest history of mini-transactions, and what each level says about it. This page is
written by a test, from the verdicts of the engine (`crates/checker/tests/anomalies.rs`). Every transaction overlaps those of other sessions, so real time adds
nothing but the order of each session. [definitions.md](definitions.md) says what the levels mean.

| | history | what was seen | the weakest levels that forbid it |
|---|---|---|---|
";

const MATRIX: &str = "
A level forbids what any level weaker than it forbids. Some read a name otherwise: snapshot isolation and serializability of [MTC] keep sessions, as
`session-snapshot-isolation` and `session-serializable` do here.

`no`: the level forbids the history. `·`: it allows it.

";

#[test]
fn the_table_of_implications_is_what_makes_one_level_forbid_what_another_does() {
    for row in &ROWS {
        let verdicts = verdicts(row);
        for implication in IMPLICATIONS {
            let of = |level| verdicts.get(&level).map(is_forbidden);
            let broken =
                of(implication.weaker) == Some(true) && of(implication.stronger) == Some(false);
            assert!(!broken, "{}: {}", row.file, implication.reason);
        }
    }
}
