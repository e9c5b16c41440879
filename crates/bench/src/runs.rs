//! `isolde-bench runs`: what the choice of a workload costs while a database is driven.
//!
//! Mini-transactions are said to abort less often and to be recorded faster than general
//! ones [Gu et al., *Boosting End-to-End Database Isolation Checking via Mini-Transactions*,
//! ICDE 2025, Figures 10 and 11]. Here both run on a private PostgreSQL at serializable,
//! with the same sessions and keys, one after the other, each on a server of its own.
//!
//! The recorder must not be what limits a run. How fast it is shows on a database that answers
//! at once: the simulated one, with a single session, which is one thread.

use crate::machine;
use crate::measure::Program;
use crate::workspace::{Folder, built, in_tree, line, written};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Options of `isolde-bench runs`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long each run records, as `isolde run` understands it
    #[arg(long, value_name = "TIME", default_value = "6s")]
    duration: String,
    /// How many clients there are
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    sessions: u32,
    /// How many keys they use, one number for each pair of runs
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "100,1000")]
    keys: Vec<u32>,
    /// The program to measure [default: the release build of this tree]
    #[arg(long, value_name = "PATH")]
    isolde: Option<PathBuf>,
    /// What else readers of the figures have to know, such as how that program was built
    #[arg(long, value_name = "TEXT", requires = "isolde")]
    note: Option<String>,
    /// Where to write the page
    #[arg(long, short, value_name = "FILE", default_value_os_t = in_tree("docs/benchmarks-runs.md"))]
    output: PathBuf,
}

/// A workload, its title and the options that make it.
const WORKLOADS: [(&str, &[&str]); 3] = [
    ("mini-transactions, up to 2 reads and 2 writes", &["--preset", "MTC"]),
    ("general, 8 operations", &["--preset", "GeneralRW", "--distribution", "uniform"]),
    (
        "general, 16 operations",
        &["--preset", "GeneralRW", "--distribution", "uniform", "--operations", "16"],
    ),
];

const LEVEL: &str = "serializable";

/// What is driven, by how many clients, on how many keys.
#[derive(Clone, Copy)]
struct Setting<'a> {
    target: &'a str,
    sessions: u32,
    keys: u32,
    options: &'a [&'a str],
}

/// Operations a second that a core has to record.
const RECORDER_BAR: f64 = 50_000.0;

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let isolde = arguments.isolde.clone().map_or_else(built, Ok)?;
    let folder = Folder::new(None)?;
    let load = machine::load();
    let mut rows = String::new();
    let mut database = String::new();
    for keys in &arguments.keys {
        for (number, (title, options)) in WORKLOADS.iter().enumerate() {
            let output = folder.path().join(format!("{keys}-{number}"));
            let sessions = arguments.sessions;
            let setting = Setting { target: "postgres", sessions, keys: *keys, options };
            let measured = measure(arguments, &isolde, setting, &output)?;
            line(&mut rows, &format!("| {keys} | {title} | {} |", measured.cells()));
            database = measured.database;
        }
    }
    let recorder = recorder(arguments, &isolde, folder.path())?;
    let text = format!("{}{rows}\n{recorder}", introduction(arguments, &database, &load));
    written(&arguments.output, &text)
}

/// The part about the recorder.
fn recorder(arguments: &Arguments, isolde: &Path, folder: &Path) -> Result<String, String> {
    let mut text = String::from("## The recorder\n\n");
    line(
        &mut text,
        &format!(
            "One session, which is one thread, on the simulated database, which answers at once: \
             planning, the store, two looks at the clock for each operation and the log, on one \
             core. The bar is {RECORDER_BAR} operations a second.\n"
        ),
    );
    line(&mut text, "| workload | committed/s | operations/s | bar |");
    line(&mut text, "|---|---:|---:|---|");
    for (number, (title, options)) in WORKLOADS.iter().enumerate() {
        let target = "sim://serializable";
        let setting = Setting { target, sessions: 1, keys: 1000, options };
        let output = folder.join(format!("recorder-{number}"));
        let Measured { committed, operations, seconds, .. } =
            measure(arguments, isolde, setting, &output)?;
        let speed = operations / seconds;
        let bar = if speed >= RECORDER_BAR { "kept" } else { "missed" };
        line(&mut text, &format!("| {title} | {:.0} | {speed:.0} | {bar} |", committed / seconds));
    }
    Ok(text)
}

fn introduction(arguments: &Arguments, database: &str, load: &str) -> String {
    let Arguments { duration, sessions, keys, .. } = arguments;
    let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
    let mut text = String::from("# Benchmarks of runs\n\n");
    line(
        &mut text,
        &format!(
            "Written by `isolde-bench runs --duration {duration} --sessions {sessions} --keys \
             {}`; do not edit.\n",
            keys.join(",")
        ),
    );
    let (isolde, note) = (arguments.isolde.as_deref(), arguments.note.as_deref());
    line(&mut text, &machine::heading(load, isolde, note));
    line(
        &mut text,
        &format!(
            "Each row is one run of {duration} of {sessions} sessions on a private {database} at \
             {LEVEL}, seed 1, keys chosen uniformly; clients and server share the machine. The \
             abort rate is the share of transactions that were refused. Checking is `isolde check \
             --level {LEVEL}` on the recorded log as a process of its own, reading included; runs \
             last equally long, so histories differ in size, and the last column divides by it.\n"
        ),
    );
    line(
        &mut text,
        "| keys | workload | committed | committed/s | operations/s | abort rate | verdict | \
         check, s | check, ms per 1,000 committed |",
    );
    line(&mut text, "|---:|---|---:|---:|---:|---:|---|---:|---:|");
    text
}

/// What one run showed.
struct Measured {
    database: String,
    committed: f64,
    aborted: f64,
    /// Of committed transactions.
    operations: f64,
    seconds: f64,
    check_seconds: f64,
    verdict: &'static str,
}

fn measure(
    arguments: &Arguments,
    isolde: &Path,
    setting: Setting<'_>,
    output: &Path,
) -> Result<Measured, String> {
    let Setting { target, sessions, keys, options } = setting;
    let mut words: Vec<String> = ["run", target, "--isolation", LEVEL, "--level", LEVEL]
        .iter()
        .chain(options)
        .map(ToString::to_string)
        .collect();
    words.extend(["--keys".to_owned(), keys.to_string()]);
    words.extend(["--sessions".to_owned(), sessions.to_string()]);
    words.extend(["--duration".to_owned(), arguments.duration.clone()]);
    words.extend(["--quiet".to_owned(), "--output".to_owned(), output.display().to_string()]);
    // A check that takes too long is a figure of its own, below.
    words.extend(["--timeout", "1s"].map(str::to_owned));
    let ended = Program::new(isolde, words).best_ending_in(0, 1)?;
    if !matches!(ended.status, Some(0 | 2)) {
        return Err(format!("expected a run with an answer, found status {:?}", ended.status));
    }
    let path = output.join("run.json");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let json: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let history = output.join("history.log");
    let check = ["check", "--level", LEVEL, "--quiet", "--timeout", "10s"].map(String::from);
    let check = check.into_iter().chain([history.display().to_string()]);
    let checked = Program::new(isolde, check).best_ending_in(0, 1)?;
    let log = fs::read_to_string(&history).map_err(|error| error.to_string())?;
    let number = |name: &str| json[name].as_f64().ok_or(format!("expected {name} in run.json"));
    let word = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
    Ok(Measured {
        database: format!("{} {}", word("database"), word("database_version")),
        committed: number("committed")?,
        aborted: number("aborted")?,
        operations: operations(&log),
        seconds: number("seconds")?,
        check_seconds: checked.usage.wall,
        verdict: match checked.status {
            Some(0) => "satisfied",
            Some(1) => "violated",
            Some(2) => "unknown",
            _ => "failed",
        },
    })
}

/// How many operations the committed transactions of a log have.
fn operations(log: &str) -> f64 {
    let mut open = std::collections::HashMap::new();
    let mut count = 0u32;
    for line in log.lines() {
        let mut words = line.split(' ');
        let (kind, session) = (words.next(), words.next());
        match (kind, session) {
            // Its number and the times of its begin are no operations.
            (Some("txn"), Some(session)) => {
                open.insert(session, u32::try_from(words.skip(2).count()).unwrap_or(u32::MAX));
            }
            (Some("commit"), Some(session)) => {
                count = count.saturating_add(open.remove(session).unwrap_or(0));
            }
            _ => {}
        }
    }
    f64::from(count)
}

impl Measured {
    fn cells(&self) -> String {
        let Measured { committed, aborted, operations, seconds, check_seconds, .. } = self;
        format!(
            "{committed:.0} | {:.0} | {:.0} | {:.1} % | {} | {check_seconds:.2} | {:.1}",
            committed / seconds,
            operations / seconds,
            100.0 * aborted / (committed + aborted).max(1.0),
            self.verdict,
            1e6 * check_seconds / committed.max(1.0),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_committed_transactions_are_counted() {
        let log = "isolde-log 1\nsession 1 a\nsession 2 a\n\
                   txn 1 1 10-12 r5=@13-14 w5=7@15-18\n\
                   txn 2 1 10-12 r5=@13-14 w5=8@15-18 w6=9@19-20\n\
                   commit 1 1 20-25\nabort 2 1 20-25 40001\nend\n";
        assert!((operations(log) - 2.0).abs() < 1e-9);
    }
}
