//! What is known about a history beside its own content: the run that recorded it.

use crate::subject::{self, HISTORY_FILE, PROXY_FILE, RUN_FILE, read_json};
use crate::{input, say};
use isolde::Level;
use isolde_history::History;
use isolde_report::{Report, Size};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What stands beside a history.
pub(crate) struct RunMetadata {
    /// The file that places in it are cited by: the one inside of a run's folder or a bundle.
    pub(crate) source: String,
    /// What `isolde run` noted.
    run: Option<Value>,
}

impl RunMetadata {
    /// For a history that could be read: a file, the folder of a run, or a bundle.
    pub(crate) fn of(path: &Path, memory_max: Option<usize>) -> RunMetadata {
        if let Some(log) = log_of(path) {
            let run = read_json(&path.join(RUN_FILE)).ok();
            return RunMetadata { source: log.display().to_string(), run };
        }
        if let Some((source, run)) = subject::bundled_run(path, memory_max) {
            return RunMetadata { source, run };
        }
        RunMetadata { source: input::name(path), run: run_of_log(path) }
    }

    /// Says in a report that was made with `source` which file the user named, and what the
    /// database documents of the violations.
    pub(crate) fn note(&self, path: &Path, report: &mut Report) {
        report.file = input::name(path);
        let gates = self.run.as_ref().and_then(|run| run["gate"].as_array());
        for gate in gates.into_iter().flatten() {
            let level = gate["level"].as_str().and_then(Level::parse);
            if let (Some(level), Some(text)) = (level, gate["documented"].as_str()) {
                report.note_documented(level, text);
            }
        }
    }
}

/// Warns if a history is the log of a run that noted other counts of transactions.
pub(crate) fn warn_of_other_counts(path: &Path, history: &History) {
    let log = log_of(path);
    let log = log.as_deref().unwrap_or(path);
    let Some(run) = run_of_log(log) else { return };
    let noted = if run["report"]["history"].is_object() { &run["report"]["history"] } else { &run };
    warn_of_counts_other_than(noted, log, history);
}

/// Warns if the log of a run has other counts of transactions than the run noted: of a log that
/// was cut off since, verdicts mean little.
pub(crate) fn warn_of_counts_other_than(noted: &Value, log: &Path, history: &History) {
    let size = Size::of(history);
    let found =
        [("committed", size.committed), ("aborted", size.aborted), ("unknown", size.unknown)];
    let noted = found.map(|(name, _)| noted[name].as_u64());
    let is_other = |(noted, (_, found)): (&Option<u64>, &(&str, usize))| {
        noted.is_some_and(|noted| noted != *found as u64)
    };
    if !noted.iter().zip(&found).any(is_other) {
        return;
    }
    let found = found.map(|(name, count)| format!("{count} {name}")).join(", ");
    let [committed, aborted, unknown] = noted.map(Option::unwrap_or_default);
    say(&format!(
        "isolde: {}: it has {found} transactions, but {RUN_FILE} noted {committed}, {aborted}, \
         {unknown}: it was cut off or changed since",
        log.display()
    ));
}

/// The log in the folder of a run, or of what a proxy recorded, which stands for it.
pub(crate) fn log_of(folder: &Path) -> Option<PathBuf> {
    let log = folder.join(HISTORY_FILE);
    let is_known = [RUN_FILE, PROXY_FILE].iter().any(|name| folder.join(name).is_file());
    (is_known && log.is_file()).then_some(log)
}

/// The database that a run drove.
pub(crate) struct Driven {
    /// Its name or URL.
    pub(crate) target: String,
    pub(crate) isolation: String,
}

/// Which database the run drove that recorded this log, if it is one beside its `run.json`.
pub(crate) fn driven(log: &Path) -> Option<Driven> {
    let run = run_of_log(log)?;
    let text = |name: &str| run[name].as_str().map(str::to_owned);
    Some(Driven { target: text("target")?, isolation: text("isolation")? })
}

/// What the run noted that recorded this log, if it is one beside its `run.json`.
fn run_of_log(log: &Path) -> Option<Value> {
    let run = read_json(&log.with_file_name(RUN_FILE)).ok()?;
    let recorded = Path::new(run["history"].as_str()?).file_name();
    (recorded == log.file_name()).then_some(run)
}
