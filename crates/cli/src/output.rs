//! Where results go: standard output or a file, as text or JSON.

use crate::exit::Failure;
use crate::out;
use clap::ValueEnum;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// How a result is printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    Text,
    Json,
}

/// Writes a result to a file or to standard output.
pub(crate) fn write(
    result: &str,
    format: OutputFormat,
    path: Option<&Path>,
) -> Result<(), Failure> {
    let end = if format == OutputFormat::Json { "\n" } else { "" };
    let text = format!("{result}{end}");
    match path {
        None => out(&text),
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Failure::Write(path.display().to_string(), error.into())),
    }
}

/// Writes a file beside its place and moves it there when complete, so that a failure
/// leaves what was there before.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = File::create(&partial).and_then(|file| {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.flush()
    });
    let moved = written.and_then(|()| std::fs::rename(&partial, path));
    moved.map_err(|error| {
        let _ = std::fs::remove_file(&partial);
        Failure::Write(path.display().to_string(), error.into())
    })
}
