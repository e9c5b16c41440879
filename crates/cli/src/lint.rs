//! `isolde lint`: your harness, not your database.
//!
//! Exits 1 if any rule found something: a verdict on such a recording may say more
//! about the recording than about the database.

use crate::exit::{Failure, Status};
use crate::output::{self, OutputFormat};
use crate::run_metadata::RunMetadata;
use crate::{input, limits, out};
use isolde::lint::{RULES, lint};
use isolde_history::Index;
use isolde_report::{LintReport, lint_to_text, to_json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Options of `isolde lint`.
#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// The history: a file, or a directory of client logs; `-` is standard input
    #[arg(required_unless_present = "rules")]
    file: Option<PathBuf>,
    /// How to print the findings
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    /// Write the findings to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// List what is looked for, instead of looking
    #[arg(long, conflicts_with = "file")]
    rules: bool,
    #[command(flatten)]
    input: input::Arguments,
    #[command(flatten)]
    limits: limits::Arguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let Some(file) = &arguments.file else { return list_rules() };
    arguments.limits.resources.apply()?;
    output::refuse_input(arguments.output.as_deref(), file)?;
    let (path, options) = (file.clone(), arguments.clone());
    let clock = arguments.limits.clock(None);
    let (text, status) = match limits::within(&clock, move || linted(&path, &options)) {
        Ok(linted) => linted?,
        Err(reached) => return limits::end(reached, file, &arguments.limits.resources),
    };
    output::write(&text, arguments.format, arguments.output.as_deref())?;
    Ok(status)
}

fn linted(file: &Path, arguments: &Arguments) -> Result<(String, Status), Failure> {
    let memory_max = arguments.limits.resources.memory_max();
    let (history, format) = input::read(file, &arguments.input, memory_max)?;
    let index = Index::new(&history);
    let findings = lint(&history, &index);
    let source = RunMetadata::of(file, memory_max).source;
    let mut report = LintReport::new(&history, &index, (&source, format.name), &findings);
    report.file = input::name(file);
    let text = match arguments.format {
        OutputFormat::Text => lint_to_text(&report),
        OutputFormat::Json => to_json(&report),
    };
    Ok((text, if findings.is_empty() { Status::Satisfied } else { Status::Violated }))
}

fn list_rules() -> Result<Status, Failure> {
    let mut text = String::new();
    for rule in RULES {
        let certainty = rule.certainty.name();
        writeln!(text, "{} ({certainty})\n  {}\n  to do: {}", rule.name, rule.meaning, rule.advice)
            .expect("writing to a string cannot fail");
    }
    out(&text)?;
    Ok(Status::Satisfied)
}
