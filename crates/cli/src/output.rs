//! Where results go: standard output or a file, as text or JSON.

use crate::exit::Failure;
use crate::out;
use clap::ValueEnum;
use std::path::Path;

/// How a result is printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    Text,
    Json,
}

/// Writes the results of several histories: texts one after another, one JSON value
/// as it is and several as an array.
pub(crate) fn write(
    results: &[String],
    format: OutputFormat,
    path: Option<&Path>,
) -> Result<(), Failure> {
    let text = match format {
        OutputFormat::Text => results.join("\n"),
        OutputFormat::Json if results.is_empty() => String::new(),
        OutputFormat::Json if results.len() == 1 => results.concat() + "\n",
        OutputFormat::Json => format!("[{}]\n", results.join(",\n")),
    };
    match path {
        None => out(&text),
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Failure::Write(path.display().to_string(), error.into())),
    }
}
