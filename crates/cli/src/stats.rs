//! `isolde stats`: what is in a history.

use crate::exit::{Failure, Status};
use crate::output::{self, OutputFormat, Results};
use crate::{input, limits};
use isolde_history::Index;
use isolde_report::{Stats, stats_to_text, to_json};
use std::path::PathBuf;

/// Options of `isolde stats`.
#[derive(clap::Args)]
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
    resources: limits::Resources,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    arguments.resources.apply_threads();
    let memory_max = arguments.resources.memory_max();
    let (history, format) = input::read(&arguments.file, &arguments.input, memory_max)?;
    let index = Index::new(&history);
    let stats = Stats::new(&history, &index, (&input::name(&arguments.file), format.name));
    let text = match arguments.format {
        OutputFormat::Text => stats_to_text(&stats),
        OutputFormat::Json => to_json(&stats),
    };
    output::write(&Results::One(Some(text)), arguments.format, arguments.output.as_deref())?;
    Ok(Status::Satisfied)
}
