//! `isolde stats`: what is in a history.

use crate::exit::{Failure, Status};
use crate::output::{self, OutputFormat};
use crate::{input, limits};
use isolde_history::Index;
use isolde_report::{Stats, stats_to_text, to_json};
use std::path::PathBuf;

/// Options of `isolde stats`.
#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// The history: a file, or a directory of client logs; `-` is standard input
    file: PathBuf,
    /// How to print the figures
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    /// Write the figures to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    input: input::Arguments,
    #[command(flatten)]
    limits: limits::Arguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    arguments.limits.resources.apply()?;
    output::refuse_input(arguments.output.as_deref(), &arguments.file)?;
    let options = arguments.clone();
    let counted = match limits::within(&arguments.limits.clock(None), move || counted(&options)) {
        Ok(counted) => counted?,
        Err(reached) => return limits::end(reached, &arguments.file, &arguments.limits.resources),
    };
    output::write(&counted, arguments.format, arguments.output.as_deref())?;
    Ok(Status::Satisfied)
}

fn counted(arguments: &Arguments) -> Result<String, Failure> {
    let memory_max = arguments.limits.resources.memory_max();
    let (history, format) = input::read(&arguments.file, &arguments.input, memory_max)?;
    let index = Index::new(&history);
    let stats = Stats::new(&history, &index, (&input::name(&arguments.file), format.name));
    Ok(match arguments.format {
        OutputFormat::Text => stats_to_text(&stats),
        OutputFormat::Json => to_json(&stats),
    })
}
