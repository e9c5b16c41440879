//! Opening files: compression by content, directories, standard input.

use super::Input;
use crate::error::ReadError;
use crate::source::Source;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// A path that could not be opened.
pub type OpenError = ReadError;

/// Opens a file or directory, or standard input for `-`. Compressed files
/// (`gzip`, `zstd`) are recognised by their first bytes, whatever their name. A
/// directory that holds nothing but one file stands for it, if that is no client's log.
pub fn open(path: &Path) -> Result<Input<'static>, OpenError> {
    let name = path.display().to_string();
    if name == "-" {
        return Ok(Input::File(decompressed("standard input", io::stdin(), 0)?));
    }
    let fail = |error: io::Error| ReadError::new(&name, format!("cannot be opened: {error}"));
    if path.is_dir() {
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(path).map_err(fail)? {
            let entry = entry.map_err(fail)?.path();
            if entry.is_file() {
                paths.push(entry);
            }
        }
        // Recorders put each history in a folder of its own.
        if let [only] = paths.as_slice()
            && only.extension() != Some(OsStr::new("log"))
        {
            return open(only);
        }
        paths.sort();
        let files = paths
            .into_iter()
            .map(|path| Source::new(path.display().to_string(), Lazy::Closed(path)))
            .collect();
        return Ok(Input::Directory { name, files });
    }
    // Read and not mapped: another program may cut the file meanwhile, and then a map of it ends
    // this one with a signal.
    let file = File::open(path).map_err(fail)?;
    let length = file.metadata().map_err(fail)?.len();
    Ok(Input::File(decompressed(&name, file, length)?))
}

/// A file of a directory, opened when first read: there may be more of them than
/// a process may have open.
enum Lazy {
    Closed(PathBuf),
    Open(File),
    Ended,
}

impl Read for Lazy {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Lazy::Closed(path) = self {
            *self = Lazy::Open(File::open(path)?);
        }
        let Lazy::Open(file) = self else { return Ok(0) };
        let count = file.read(buffer)?;
        if count == 0 && !buffer.is_empty() {
            *self = Lazy::Ended;
        }
        Ok(count)
    }
}

fn decompressed(
    name: &str,
    reader: impl Read + Send + 'static,
    length: u64,
) -> Result<Source<'static>, ReadError> {
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    let head = {
        let fail = |error| ReadError::new(name, format!("cannot be read: {error}"));
        while let Err(error) = io::BufRead::fill_buf(&mut reader) {
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(fail(error));
            }
        }
        reader.buffer()[..reader.buffer().len().min(4)].to_vec()
    };
    if head.starts_with(&[0x1f, 0x8b]) {
        return Ok(Source::new(name, flate2::bufread::MultiGzDecoder::new(reader)));
    }
    if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let decoder = zstd::stream::read::Decoder::with_buffer(reader)
            .map_err(|error| ReadError::new(name, format!("cannot be decompressed: {error}")))?;
        return Ok(Source::new(name, decoder));
    }
    Ok(Source::new(name, reader).of_length(length))
}
