//! Where results go: standard output or a file, as text or JSON.

use crate::exit::Failure;
use crate::{out, terminal};
use clap::ValueEnum;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

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
    // Names of files and texts of others may contain commands to a terminal.
    let text = match format {
        OutputFormat::Json => format!("{result}\n"),
        OutputFormat::Text => isolde_report::visible(result),
    };
    match path {
        None if format == OutputFormat::Text => out(&terminal::dressed(&text)),
        None => out(&text),
        Some(path) => write_whole(path, |out| out.write_all(text.as_bytes())),
    }
}

/// Writes a file as [`filled_whole`] does.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    filled_whole(path, write)
        .map_err(|error| Failure::Write(path.display().to_string(), error.into()))
}

/// Writes a file beside its place and moves it there when complete, so that a failure
/// leaves what was there before. A link stays one, a file keeps its mode, and what is no
/// file, such as a device or a pipe, is written to as it is.
pub(crate) fn filled_whole<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    let there = std::fs::metadata(path).ok();
    if there.as_ref().is_some_and(|it| !it.is_file() && !it.is_dir()) {
        return filled(OpenOptions::new().write(true).open(path)?, write);
    }
    let place = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut partial = place.as_os_str().to_owned();
    partial.push(".partial");
    let partial = Partial::at(PathBuf::from(partial));
    let partial = &partial.0;
    let moved = || {
        // What a killed program left of its own is in the way, and so is a link, which would
        // lead the result elsewhere. A new file is neither.
        match std::fs::remove_file(partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let written = filled(File::create_new(partial)?, write)?;
        if let Some(there) = there {
            std::fs::set_permissions(partial, there.permissions())?;
        }
        std::fs::rename(partial, &place)?;
        Ok(written)
    };
    moved().inspect_err(|_| {
        let _ = std::fs::remove_file(partial);
    })
}

/// Files that are being written.
static PARTIAL: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file that is noted as long as it is being written.
struct Partial(PathBuf);

impl Partial {
    fn at(path: PathBuf) -> Partial {
        PARTIAL.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
        Partial(path)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        PARTIAL.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.0);
    }
}

/// Removes what a thread was writing that nobody waits for any more.
pub(crate) fn forget_partial() {
    // The thread may be held by the limit of memory, also while it takes note of a file.
    let Ok(paths) = PARTIAL.try_lock() else { return };
    for path in &*paths {
        let _ = std::fs::remove_file(path);
    }
}

/// Nobody wants a result in place of what it was made of.
pub(crate) fn refuse_input(result: Option<&Path>, input: &Path) -> Result<(), Failure> {
    let Some(result) = result else { return Ok(()) };
    let real = |path: &Path| std::fs::canonicalize(path).ok().filter(|path| path.is_file());
    match (real(result), real(input)) {
        (Some(result), Some(input)) if result == input => Err(Failure::Usage(format!(
            "{}: expected a file other than the input, which would be lost",
            result.display()
        ))),
        _ => Ok(()),
    }
}

fn filled<T, E: From<io::Error>>(
    file: File,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    let mut file = BufWriter::new(file);
    let written = write(&mut file)?;
    file.flush()?;
    Ok(written)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_link_stays_a_link_and_a_file_keeps_its_mode() {
        let folder = std::env::temp_dir().join(format!("isolde-output-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a new folder");
        let (file, link) = (folder.join("file"), folder.join("link"));
        std::fs::write(&file, "before").expect("a file");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("a mode");
        symlink(&file, &link).expect("a link");
        assert!(write_whole(&link, |out| out.write_all(b"after")).is_ok());
        assert!(std::fs::symlink_metadata(&link).expect("it is there").is_symlink());
        assert_eq!(std::fs::read(&file).expect("it is there"), b"after");
        let mode = std::fs::metadata(&file).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::remove_dir_all(&folder).expect("our folder");
    }

    /// The victim was overwritten, and the result became a link to it.
    #[test]
    fn what_stands_where_the_unfinished_result_goes_is_replaced_and_not_followed() {
        let folder = std::env::temp_dir().join(format!("isolde-partial-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a new folder");
        let (file, partial) = (folder.join("file"), folder.join("file.partial"));
        let victim = folder.join("victim");
        std::fs::write(&victim, "precious").expect("a file");
        symlink(&victim, &partial).expect("a link");
        assert!(write_whole(&file, |out| out.write_all(b"result")).is_ok());
        assert_eq!(std::fs::read(&victim).expect("it is there"), b"precious");
        assert!(std::fs::symlink_metadata(&file).expect("it is there").is_file());
        std::fs::write(&partial, "left by a killed program").expect("a file");
        assert!(write_whole(&file, |out| out.write_all(b"again")).is_ok());
        assert_eq!(std::fs::read(&file).expect("it is there"), b"again");
        assert!(!partial.exists());
        std::fs::remove_dir_all(&folder).expect("our folder");
    }

    #[test]
    fn a_device_is_written_to_and_stays_a_device() {
        let path = Path::new("/dev/null");
        assert!(write_whole(path, |out| out.write_all(b"text")).is_ok());
        assert!(!std::fs::metadata(path).expect("it is there").is_file());
    }
}
