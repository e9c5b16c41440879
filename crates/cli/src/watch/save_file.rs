//! The file of `--save`: what is acknowledged stands in it.
//!
//! Invariant: after the first write that fails there is no other, and the file ends with the last
//! message that was written whole. Who asks learns why; nothing is acknowledged any more.

use isolde_history::trace::write;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// See the file's first line.
pub(super) struct SaveFile {
    path: PathBuf,
    open: Mutex<Open>,
    failure: OnceLock<String>,
}

struct Open {
    file: Box<dyn Disk>,
    /// Bytes of whole messages.
    length: u64,
}

/// What can be written to and cut: a file, or that of a simulation.
pub(super) trait Disk: Write + Seek + Send {
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Disk for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

/// What was taken is not in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unsaved(pub(super) String);

impl SaveFile {
    /// A new file; none if not even its head can be written.
    pub(super) fn create(path: &Path) -> io::Result<SaveFile> {
        let file = File::options().write(true).create_new(true).open(path)?;
        SaveFile::on(Box::new(file), path).inspect_err(|_| {
            let _ = std::fs::remove_file(path);
        })
    }

    /// The same of what is called so and is empty.
    pub(super) fn on(mut file: Box<dyn Disk>, path: &Path) -> io::Result<SaveFile> {
        let head = write::merged_head();
        file.write_all(head.as_bytes())?;
        let open = Mutex::new(Open { file, length: head.len() as u64 });
        Ok(SaveFile { path: path.to_owned(), open, failure: OnceLock::new() })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().expect("nobody panics while writing")
    }

    /// Adds whole messages.
    pub(super) fn append(&self, lines: &[u8]) -> Result<(), Unsaved> {
        let mut open = self.open();
        if let Some(failure) = self.failure() {
            return Err(Unsaved(failure));
        }
        let Err(error) = open.file.write_all(lines) else {
            open.length += lines.len() as u64;
            return Ok(());
        };
        let length = open.length;
        // Half a message would make the file one that cannot be read to its end.
        let cut = open.file.cut(length).and_then(|()| open.file.seek(SeekFrom::Start(length)));
        let mut failure = format!("cannot save the trace to {}: {error}", self.path.display());
        if let Err(error) = cut {
            failure.push_str("; its last message may be cut off: ");
            failure.push_str(&error.to_string());
        }
        Err(Unsaved(self.failure.get_or_init(|| failure).clone()))
    }

    /// Nothing more comes: the file says that it is whole.
    pub(super) fn end(&self) {
        let mut line = Vec::new();
        write::bye_of_all(&mut line);
        // If it cannot, it does not say so.
        let _ = self.append(&line);
    }

    /// Why nothing is saved any more.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }
}
