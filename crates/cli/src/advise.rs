//! `isolde advise`: what is wrong with a recording, by the statements of its application.

use crate::exit::{Failure, Status};
use crate::interruption::Interruption;
use crate::job::Job;
use crate::output::{self, OutputFormat};
use crate::recorded::weakest_setting;
use crate::{input, limits};
use isolde::Limit;
use isolde_history::Index;
use isolde_report::statements::{Findings, Setting, by_statements, statements_to_text};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of `isolde advise`.
#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// What `isolde proxy` recorded
    recording: PathBuf,
    /// Tell what this level would have prevented: read-committed, repeatable-read or serializable
    #[arg(long, short, value_name = "LEVEL", value_parser = parse_setting, default_value = "serializable")]
    level: Setting,
    /// How to print the result
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    input: input::Arguments,
    #[command(flatten)]
    limits: limits::Arguments,
}

pub(crate) fn parse_setting(name: &str) -> Result<Setting, String> {
    Setting::parse(name).ok_or_else(|| {
        format!("expected read-committed, repeatable-read or serializable, found `{name}`")
    })
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    arguments.limits.resources.apply()?;
    let interruption = Interruption::of("advise")?;
    let clock = arguments.limits.clock(Some(limits::USUAL_TIME)).interrupted_by(&interruption);
    let found = findings(&arguments.recording, &arguments.input, &arguments.limits, clock)?;
    let findings = match found {
        Ok(findings) => findings,
        Err(reached) => {
            return limits::end(reached, &arguments.recording, &arguments.limits.resources);
        }
    };
    let text = match arguments.format {
        OutputFormat::Json => serde_json::to_string_pretty(&findings).expect("plain data"),
        OutputFormat::Text => to_text(&findings, &arguments.recording, arguments.level),
    };
    output::write(&text, arguments.format, None)?;
    Ok(status(&findings, arguments.level))
}

/// A recording in which something was found has not passed.
pub(crate) fn status(findings: &Findings, level: Setting) -> Status {
    let is_prevented = findings.findings.iter().any(|it| it.prevented_by <= level);
    if is_prevented { Status::Violated } else { Status::Satisfied }
}

/// What is found in a recording within the limits; or the limit that was reached.
pub(crate) fn findings(
    recording: &Path,
    input: &input::Arguments,
    limits: &limits::Arguments,
    clock: limits::Clock,
) -> Result<Result<Findings, Limit>, Failure> {
    let job = Arc::new(Job::new(clock, &limits.resources, false));
    let (path, input) = (recording.to_owned(), input.clone());
    let found = job.within(move |job| {
        let (history, _) = input::read(&path, &input, job.memory_max)?;
        Ok::<Findings, Failure>(by_statements(&history, &Index::new(&history)))
    });
    match found {
        Ok(findings) => findings.map(Ok),
        Err(reached) => Ok(Err(reached)),
    }
}

pub(crate) fn to_text(findings: &Findings, recording: &Path, level: Setting) -> String {
    let setting = weakest_setting(recording);
    let mut text = statements_to_text(findings, setting, level, crate::subject::HISTORY_FILE);
    if !findings.findings.is_empty() {
        let name = recording.display();
        let _ = write!(text, "\nproof: isolde check {name}\nwhy: isolde explain {name}\n");
    }
    text
}
