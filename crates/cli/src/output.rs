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

/// What a command has to say.
pub(crate) enum Results {
    /// About the one history it was given, if it could be read.
    One(Option<String>),
    /// About those that could be read of several: an array in JSON, however many.
    Several(Vec<String>),
}

/// Writes results to a file or to standard output.
pub(crate) fn write(
    results: &Results,
    format: OutputFormat,
    path: Option<&Path>,
) -> Result<(), Failure> {
    let text = match (format, results) {
        (_, Results::One(None)) => return Ok(()),
        (OutputFormat::Text, Results::One(Some(text))) => text.clone(),
        (OutputFormat::Text, Results::Several(texts)) => texts.concat(),
        (OutputFormat::Json, Results::One(Some(json))) => format!("{json}\n"),
        (OutputFormat::Json, Results::Several(array)) => format!("[{}]\n", array.join(",\n")),
    };
    match path {
        None => out(&text),
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Failure::Write(path.display().to_string(), error.into())),
    }
}
