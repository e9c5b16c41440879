//! Directories in which every client has its own `*.log`.

use super::{Input, Sample, names};
use crate::builder::HistoryBuilder;
use crate::error::ReadError;
use crate::history::SessionId;
use crate::source::Source;
use std::ffi::OsStr;
use std::path::Path;

/// Reads every log of a directory in order of their names; what else lies there
/// (debug output, errors) is not looked at. A single file is a log whatever its name.
pub(super) fn each<'a>(
    input: Input<'a>,
    mut read: impl FnMut(Source<'a>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let directory = input.name().to_owned();
    let single = matches!(input, Input::File(_));
    let mut found = false;
    for source in input.files() {
        if single || Path::new(source.name()).extension() == Some(OsStr::new("log")) {
            found = true;
            read(source)?;
        }
    }
    if found {
        return Ok(());
    }
    let message = "expected files called `*.log`, found none";
    Err(ReadError::new(&directory, message))
}

/// Whether a directory whose first log is empty has logs called `letter` and a number,
/// as a recorder calls them, and no others.
pub(super) fn are_called(sample: &Sample<'_>, letter: char) -> bool {
    let numbered = |stem: &str| {
        let number = stem.strip_prefix(letter).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let Some(names) = sample.names else {
        return false;
    };
    let mut logs = names.iter().filter_map(|name| name.strip_suffix(".log"));
    sample.head.is_empty() && logs.clone().next().is_some() && logs.all(numbered)
}

/// The session that a file holds, called after the file.
pub(super) fn session(builder: &mut HistoryBuilder, path: &str) -> SessionId {
    let name = super::base_name(path);
    let stem = name.strip_suffix(".log").unwrap_or(&name);
    let label = names::number_or_text(builder.values(), stem);
    let session = builder.new_session(label);
    let origin = builder.values().text(&name);
    builder.origin(session, origin);
    session
}
