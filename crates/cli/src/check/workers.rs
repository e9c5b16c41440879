//! `isolde check` by several workers: threads, or processes on one machine or several.
//!
//! Described in `docs/cluster.md`. Of a folder of parts, workers hold windows of time and never
//! the whole.

use super::{Arguments as Check, Engine, levels_of, options, rendered, status_of};
use crate::exit::{Failure, Status};
use crate::job::Job;
use crate::reports::Rendered;
use crate::{heap, input, say};
use isolde::{Limits, Obstacle, Options, Satisfied, Unknown, Verdict, Violated};
use isolde_cluster::{Hosts, Manifest, Outcome, Pieces, Ruling, verify};
use isolde_history::{History, Index, ReadError};
use isolde_report::{Decided, Findings, Report, Size};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long processes wait for each other.
const PATIENCE: Duration = Duration::from_mins(1);
/// What satisfied levels that windows decide are shown by.
const BY_WINDOWS: &str = "no window of time has a cycle";

/// Who verifies.
#[derive(clap::Args, Clone)]
#[group(skip)]
pub(super) struct Arguments {
    /// Verify in windows of time, with so many threads; a folder of parts always is
    #[arg(long, value_name = "NUMBER", value_parser = parse_workers)]
    workers: Option<usize>,
    /// Verify in windows of time together with other processes: a file with the address of each,
    /// such as 10.0.0.1:7000, a line each. All are started with the same options
    #[arg(long, value_name = "FILE", requires = "process", conflicts_with = "workers")]
    processes: Option<PathBuf>,
    /// Which of the processes this one is, from 0
    #[arg(long, value_name = "NUMBER", requires = "processes")]
    process: Option<usize>,
}

fn parse_workers(text: &str) -> Result<usize, String> {
    const WORKERS_MAX: usize = 1024;
    let number = text.parse().ok().filter(|number| (1..=WORKERS_MAX).contains(number));
    number.ok_or_else(|| format!("expected a number from 1 to {WORKERS_MAX}, found `{text}`"))
}

impl Arguments {
    /// Whether workers are to verify this history.
    pub(super) fn are_for(&self, file: &Path) -> bool {
        self.workers.is_some() || self.processes.is_some() || Manifest::is_at(file)
    }

    fn hosts(&self) -> Result<Hosts, Failure> {
        let (Some(file), Some(process)) = (&self.processes, self.process) else {
            return Ok(Hosts::Threads(self.workers.unwrap_or(1)));
        };
        let text = std::fs::read_to_string(file).map_err(|error| {
            Failure::from(ReadError::new(&input::name(file), error.to_string()))
        })?;
        let lines = text.lines().map(str::trim).enumerate();
        let is_address = |it: &(usize, &str)| !it.1.is_empty() && !it.1.starts_with('#');
        let mut addresses: Vec<String> = Vec::new();
        for (line, address) in lines.filter(is_address) {
            let port = address.rsplit_once(':').map(|it| it.1.parse::<u16>());
            if !matches!(port, Some(Ok(1..))) || addresses.iter().any(|it| it == address) {
                let expected = "expected the address of another process, such as 10.0.0.1:7000";
                let message = format!("line {}: {expected}, found `{address}`", line + 1);
                return Err(ReadError::new(&input::name(file), message).into());
            }
            addresses.push(address.to_owned());
        }
        if process >= addresses.len() {
            let (count, name) = (addresses.len(), input::name(file));
            let message = format!("{name} has {count} addresses, found --process {process}");
            return Err(Failure::Usage(message));
        }
        Ok(Hosts::Processes { addresses, process, patience: PATIENCE })
    }
}

/// Whatever workers cannot do is refused before anything is read.
fn refuse_unfit(arguments: &Check) -> Result<(), Failure> {
    let unfit = [
        (arguments.engine != Engine::Fast, "--engine"),
        (arguments.certificate.is_some(), "--certificate"),
        (!arguments.without.is_empty(), "--without"),
        (arguments.claims, "--claims"),
        (arguments.files.len() > 1, "several histories"),
    ];
    match unfit.iter().find(|it| it.0) {
        None => Ok(()),
        Some((_, what)) => {
            Err(Failure::Usage(format!("workers verify without {what}: leave one of the two out")))
        }
    }
}

/// A history in pieces, and what is known of all of it.
struct Subject {
    pieces: Pieces,
    /// What must be the same for all processes.
    text: String,
    format: &'static str,
    sessions: usize,
    keys: usize,
}

fn subject(file: &Path, arguments: &Check, job: &Job) -> Result<Subject, Failure> {
    if Manifest::is_at(file) {
        let wrong = |error: isolde_cluster::FolderError| Failure::Usage(error.to_string());
        let manifest = Manifest::read(file).map_err(wrong)?;
        let (sessions, keys) = (manifest.sessions as usize, manifest.keys as usize);
        let text = manifest.subject();
        let pieces = manifest.pieces(file, job.memory_max);
        return Ok(Subject { pieces, text, format: "parts", sessions, keys });
    }
    let (history, format) = super::with_evidence(file, arguments, job)?;
    let (sessions, keys) = (history.session_count(), history.key_count());
    let (txns, ops) = (history.txn_count(), history.op_count());
    let text = format!("history of {sessions} sessions, {txns} transactions, {ops} operations");
    Ok(Subject { pieces: Pieces::of(history), text, format: format.name, sessions, keys })
}

/// The result of all workers.
pub(super) fn checked(
    file: &Path,
    arguments: &Check,
    job: &Job,
) -> Result<(Vec<Rendered>, Status), Failure> {
    refuse_unfit(arguments)?;
    let hosts = arguments.workers.hosts()?;
    let start = Instant::now();
    let subject = subject(file, arguments, job)?;
    let levels = match &subject.pieces {
        Pieces::Whole { history, .. } => levels_of(arguments, Some(history)),
        Pieces::Parts { .. } => levels_of(arguments, None),
    };
    let asked = isolde_cluster::Options {
        levels,
        clock_drift: options(arguments).clock_drift,
        subject: subject.text.clone(),
        window: isolde_cluster::USUAL_WINDOW,
        is_full: heap::is_full,
    };
    let outcome = verify(&subject.pieces, &asked, &hosts).map_err(Failure::Usage)?;
    if arguments.verbose {
        let seconds = start.elapsed().as_secs_f64();
        say(&format!("isolde: {}: workers took {seconds:.3} s", input::name(file)));
    }
    let report = report(file, arguments, job, (&subject, &outcome));
    let decided: Vec<Decided> = outcome.rulings.iter().map(verdict).collect();
    Ok((rendered(&report, None, file, arguments)?, status_of(&decided, arguments)))
}

fn report(
    file: &Path,
    arguments: &Check,
    job: &Job,
    (subject, outcome): (&Subject, &Outcome),
) -> Report {
    let name = input::name(file);
    let names = (name.as_str(), subject.format);
    let counts = outcome.counts;
    let size = Size {
        sessions: subject.sessions,
        transactions: counts.txns as usize,
        operations: counts.ops as usize,
        keys: subject.keys,
        committed: counts.committed as usize,
        aborted: counts.aborted as usize,
        unknown: (counts.txns - counts.committed - counts.aborted) as usize,
    };
    let mut report = if let Some(part) = &outcome.part {
        explained(part, names, outcome, options(arguments), job)
    } else {
        let decided: Vec<Decided> = outcome.rulings.iter().map(verdict).collect();
        Report::of_verdicts(names, size, &decided, "")
    };
    report.history = size;
    for level in &mut report.levels {
        let ruling = outcome.rulings.iter().find(|it| it.0.name() == level.level);
        match ruling.map(|it| &it.1) {
            Some(Ruling::Satisfied(by)) if by == level.level => {
                level.reason = Some(BY_WINDOWS.to_owned());
            }
            Some(Ruling::Unknown(reason)) => level.reason = Some(reason.clone()),
            _ => {}
        }
    }
    report
}

/// What the ordinary checker says of the transactions that show violations.
fn explained(
    part: &History,
    names: (&str, &str),
    outcome: &Outcome,
    options: Options,
    job: &Job,
) -> Report {
    let index = Index::new(part);
    let mut check = isolde::Check::new(part, &index, &Limits::NONE).with_options(options);
    let shown = |ruled: &(isolde::Level, Ruling)| match ruled.1 {
        Ruling::Violated => match check.decide(ruled.0) {
            violated @ Verdict::Violated(_) => (ruled.0, violated, 0.0),
            _ => verdict(ruled),
        },
        _ => verdict(ruled),
    };
    let decided: Vec<Decided> = outcome.rulings.iter().map(shown).collect();
    job.clock.begin_explaining();
    let counterexamples = job.explain((part, &index), &decided, options);
    job.clock.use_the_rest();
    let findings =
        Findings { decided: &decided, counterexamples: &counterexamples, by_reading: &[], options };
    Report::new(part, &index, names, &findings)
}

fn verdict((level, ruling): &(isolde::Level, Ruling)) -> Decided {
    let verdict = match ruling {
        Ruling::Satisfied(by) => Verdict::Satisfied(match isolde::Level::parse(by) {
            Some(stronger) if stronger != *level => Satisfied::Implied(stronger),
            _ => Satisfied::Definition,
        }),
        Ruling::Violated => Verdict::Violated(Violated::by(Vec::new())),
        // The report has the reason as the workers say it.
        Ruling::Unknown(_) => Verdict::Unknown(Unknown::Unsupported(Obstacle::NotSearched)),
    };
    (*level, verdict, 0.0)
}
