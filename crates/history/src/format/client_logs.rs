//! Directories in which every client has its own `*.log`.

use super::Input;
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

/// The session that a file holds, called after the file.
pub(super) fn session(builder: &mut HistoryBuilder, path: &str) -> SessionId {
    let name = super::base_name(path);
    let stem = name.strip_suffix(".log").unwrap_or(&name);
    let label = match stem.parse() {
        Ok(number) => builder.values().unsigned(number),
        Err(_) => builder.values().text(stem),
    };
    let session = builder.new_session(label);
    let origin = builder.values().text(&name);
    builder.origin(session, origin);
    session
}
