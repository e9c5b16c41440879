//! Options that say how a history is read, and reading it.

use crate::exit::Failure;
use crate::{heap, run_metadata, subject, suggestion};
use isolde_history::format::{self, Format, ReadOptions};
use isolde_history::{History, ReadError, memory_size};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// How to read histories.
#[derive(clap::Args, Clone)]
#[group(skip)]
pub(crate) struct Arguments {
    /// The format of the files, if it is not to be found from their content
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// The value every key starts with, if not what the format says
    #[arg(long, value_name = "NUMBER")]
    pub(crate) initial: Option<u64>,
    /// The log lacks nothing: a value whose writer is in no log was written by nobody. Where a
    /// format names the writer of what was read, the writer is otherwise taken to be lost
    #[arg(long)]
    pub(crate) complete_log: bool,
}

impl Arguments {
    /// How to read within the limit of memory.
    pub(crate) fn options(&self, memory_max: Option<usize>) -> ReadOptions {
        let complete_log = self.complete_log;
        ReadOptions { complete_log, ..options(memory_max, self.initial) }
    }
}

/// Whether a history is being read.
static IS_READING: AtomicBool = AtomicBool::new(false);

pub(crate) fn is_reading() -> bool {
    IS_READING.load(Relaxed)
}

/// Reads one history, that of a run or a bundle, or standard input for `-`. If a run noted other
/// counts than there are, that is said.
pub(crate) fn read(
    path: &Path,
    arguments: &Arguments,
    memory_max: Option<usize>,
) -> Result<(History, &'static Format), Failure> {
    let read = read_again(path, arguments, memory_max)?;
    run_metadata::warn_of_other_counts(path, &read.0);
    Ok(read)
}

/// The same, of a history about which everything was said before.
pub(crate) fn read_again(
    path: &Path,
    arguments: &Arguments,
    memory_max: Option<usize>,
) -> Result<(History, &'static Format), Failure> {
    IS_READING.store(true, Relaxed);
    let read = read_any(path, arguments, memory_max);
    IS_READING.store(false, Relaxed);
    if read.is_ok() && heap::is_full() {
        return Err(too_large(path, memory_max));
    }
    read
}

/// How to read within the limit of memory.
pub(crate) const fn options(memory_max: Option<usize>, initial: Option<u64>) -> ReadOptions {
    ReadOptions { memory_max, is_memory_full: Some(heap::is_full), initial, complete_log: false }
}

/// What is said of a history that does not fit.
pub(crate) fn too_large(path: &Path, memory_max: Option<usize>) -> Failure {
    let size = memory_size(memory_max.unwrap_or(usize::MAX));
    let message = format!("expected a history that fits in {size}, found a larger one");
    let hint = "give more with --memory, or check a part of the history";
    ReadError::new(&name(path), message).hint(hint).into()
}

fn read_any(
    path: &Path,
    arguments: &Arguments,
    memory_max: Option<usize>,
) -> Result<(History, &'static Format), Failure> {
    let options = arguments.options(memory_max);
    let known = arguments.from.as_deref().map(by_name).transpose()?;
    if known.is_none()
        && let Some(bundled) = subject::bundled(path, options)?
    {
        return Ok(bundled);
    }
    // The folder of a run stands for what was recorded in it.
    let log = run_metadata::log_of(path);
    refuse_folder_without_files(path)?;
    let input = format::open(log.as_deref().unwrap_or(path))?;
    Ok(match known {
        Some(known) => (format::read(known, input, options)?, known),
        None => format::read_detected(input, options)?,
    })
}

/// Histories may lie one level deeper than where the user looked.
fn refuse_folder_without_files(path: &Path) -> Result<(), Failure> {
    let Ok(entries) = std::fs::read_dir(path) else { return Ok(()) };
    let entries: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
    if entries.iter().any(|entry| entry.is_file()) {
        return Ok(());
    }
    let wrong = |found: &str| {
        let expected = "expected a directory of client logs, found";
        ReadError::new(&name(path), format!("{expected} {found}"))
    };
    let error = match (entries.iter().filter(|entry| entry.is_dir()).min(), entries.len()) {
        (None, _) => wrong("an empty one"),
        (Some(folder), 1) => wrong("a folder in it and no files")
            .hint(format!("name that one: {}", folder.display())),
        (Some(folder), _) => wrong("folders in it and no files")
            .hint(format!("name one of them, such as {}", folder.display())),
    };
    Err(error.into())
}

/// Standard input can be read once.
pub(crate) fn refuse_second_standard_input(files: &[PathBuf]) -> Result<(), Failure> {
    match files.iter().filter(|file| *file == Path::new("-")).count() {
        0 | 1 => Ok(()),
        count => Err(Failure::Usage(format!(
            "expected `-`, standard input, once, found it {count} times"
        ))),
    }
}

/// What messages and reports call a file.
pub(crate) fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".into() } else { path.display().to_string() }
}

/// The format of this name.
pub(crate) fn by_name(name: &str) -> Result<&'static Format, Failure> {
    one_of(name, |_| true)
}

/// The format of this name, which should be one of those that `fits`.
pub(crate) fn one_of(name: &str, fits: fn(&Format) -> bool) -> Result<&'static Format, Failure> {
    format::by_name(name).ok_or_else(|| {
        let fitting = format::FORMATS.iter().filter(|format| fits(format));
        let names: Vec<&str> = fitting.map(|format| format.name).collect();
        Failure::Usage(suggestion::expected("a format", name, &names))
    })
}
