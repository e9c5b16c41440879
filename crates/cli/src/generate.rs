//! `isolde gen`: histories without a database.

use crate::exit::{Failure, Status};
use crate::{check, convert, limits, say, suggestion, workload};
use clap::ValueEnum;
use isolde::{Check, Level, Limits, Verdict, applicable_levels};
use isolde_harness::{Aborts, Anomaly, BUGS, Bug, BugRow, INJECTED, Isolation, Times, generate};
use isolde_history::{History, Index};
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const DEFAULT_PRESET: &str = "GeneralRW";

/// Options of `isolde gen`.
#[derive(clap::Args)]
#[command(after_help = tables())]
pub(crate) struct Arguments {
    #[command(flatten)]
    workload: workload::Arguments,
    /// What the simulated database guarantees: read-uncommitted, read-committed, read-atomic,
    /// causal, snapshot-isolation or serializable [default: the preset's]
    #[arg(long, value_name = "LEVEL", value_parser = parse_isolation)]
    isolation: Option<Isolation>,
    /// Which times the clients note [default: the preset's]
    #[arg(long, value_enum, value_name = "OF")]
    times: Option<Noted>,
    /// Record the transactions that the database refused, too [default: they are left out, but
    /// with read-uncommitted and bugs, where others may have seen what they wrote, and with rows]
    #[arg(long)]
    aborts: bool,
    /// A bug of the simulated database, one of those below [default: none]
    #[arg(long, value_name = "NAME", value_parser = parse_bug)]
    bug: Option<Bug>,
    /// Add a fault at the end: lost-update, long-fork, g-sib, causality, fractured-read,
    /// write-skew, thin-air, aborted-read or intermediate-read [default: none]
    #[arg(long, value_name = "NAME", value_parser = parse_anomaly)]
    anomaly: Option<Anomaly>,
    /// The format to write; see `isolde formats` [default: binary if the output ends in .isolde,
    /// else text]
    #[arg(long, value_name = "FORMAT")]
    to: Option<String>,
    /// Where to write: a file, or a directory for formats that are one [default: standard output]
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Noted {
    /// No times
    None,
    /// Begin and commit of each transaction
    Transactions,
    /// Those, and each operation
    Operations,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    limits::start_threads(None)?;
    let to = convert::target_or_text(arguments.to.as_deref(), arguments.output.as_deref())?;
    let parameters = arguments.parameters();
    let history = generate(&parameters).map_err(|error| Failure::Usage(format!("gen: {error}")))?;
    convert::write(&history, &to, arguments.output.as_deref())?;
    if let Some(message) = parameters.bug.and_then(|bug| hidden(bug, history)) {
        say(&format!("isolde: gen: {message}"));
    }
    Ok(Status::Satisfied)
}

/// What to say if a bug does not show in the history, so that nobody takes it for a history
/// with a violation. If that is not known soon, nothing.
fn hidden(bug: Bug, history: History) -> Option<String> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let level = Level::parse(bug.row().violates)?;
    if !history.has_times() && !applicable_levels(&history).contains(&level) {
        let BugRow { name, violates, .. } = bug.row();
        return Some(format!(
            "{name} does not show in this history, which has no times, and {violates} is about \
             them: take `--times transactions`"
        ));
    }
    let deadline = Instant::now() + PATIENCE;
    let holds = limits::within(&limits::Clock::until(Some(deadline)), move || {
        let limits = Limits { stop: &|| Instant::now() >= deadline, ..Limits::NONE };
        let index = Index::new(&history);
        matches!(Check::new(&history, &index, &limits).decide(level), Verdict::Satisfied(_))
    });
    holds.is_ok_and(|holds| holds).then(|| bug.not_shown())
}

impl Arguments {
    fn parameters(&self) -> isolde_harness::Parameters {
        let preset = self.workload.preset_or(DEFAULT_PRESET).parameters;
        isolde_harness::Parameters {
            isolation: self.isolation.unwrap_or(preset.isolation),
            times: self.times.map_or(preset.times, |times| match times {
                Noted::None => Times::None,
                Noted::Transactions => Times::Transactions,
                Noted::Operations => Times::Operations,
            }),
            aborts: if self.aborts { Aborts::Recorded } else { preset.aborts },
            bug: self.bug.or(preset.bug),
            anomaly: self.anomaly.or(preset.anomaly),
            ..self.workload.applied_to(preset)
        }
    }
}

fn tables() -> String {
    let mut text = workload::presets(DEFAULT_PRESET);
    text.push_str("\nBugs of the simulated database:\n");
    let width = BUGS.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for row in BUGS {
        writeln!(text, "  {:width$}  {}", row.name, row.title).expect("a string grows");
    }
    text
}

/// Any name of a level that the store of some isolation level gives; the stores of
/// the snapshot levels keep sessions and real time as well.
fn parse_isolation(name: &str) -> Result<Isolation, String> {
    let level = check::parse_level(name)?;
    let same = match level {
        Level::SessionSnapshotIsolation | Level::StrongSnapshotIsolation => {
            Level::SnapshotIsolation
        }
        Level::SessionSerializable | Level::StrictSerializable => Level::Serializable,
        other => other,
    };
    let found = Isolation::ALL.into_iter().find(|isolation| isolation.name() == same.name());
    found.ok_or_else(|| {
        let names = Isolation::ALL.map(Isolation::name).join(", ");
        format!(
            "expected one of {names}, found {}, which is checked but not simulated",
            level.name()
        )
    })
}

fn parse_anomaly(name: &str) -> Result<Anomaly, String> {
    Anomaly::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = INJECTED.iter().map(|row| row.name).collect();
        suggestion::expected("an anomaly", name, &names)
    })
}

fn parse_bug(name: &str) -> Result<Bug, String> {
    Bug::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = BUGS.iter().map(|row| row.name).collect();
        suggestion::expected("a bug", name, &names)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stronger_names_for_what_a_store_gives_are_understood() {
        assert_eq!(parse_isolation("si"), Ok(Isolation::SnapshotIsolation));
        assert_eq!(parse_isolation("strict-serializable"), Ok(Isolation::Serializable));
        assert!(parse_isolation("prefix").is_err());
        assert!(parse_isolation("none").is_err());
    }
}
