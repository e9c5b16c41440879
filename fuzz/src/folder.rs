//! Directories in memory.

use isolde_history::Source;
use isolde_history::format::{Folder, Input};
use std::io::{self, Write};

/// Formats of which every client has its own file.
const DIRECTORY_FORMATS: [&str; 4] = ["cobra", "vbox", "viper-json", "viper-edn"];
/// What stands between the files of a directory in the bytes of an input.
const SEPARATOR: &[u8] = b"--8<--";
const FILES_MAX: usize = 3;

/// Files that belong together.
pub(crate) enum Parts {
    One(Vec<u8>),
    Many(Vec<(String, Vec<u8>)>),
}

impl Parts {
    /// The files that an input stands for, if the format can be a directory.
    pub(crate) fn of(format: &str, bytes: &[u8]) -> Option<Parts> {
        if !DIRECTORY_FORMATS.contains(&format) {
            return None;
        }
        let mut files = Vec::new();
        let mut rest = bytes;
        while files.len() + 1 < FILES_MAX
            && let Some(at) = rest.windows(SEPARATOR.len()).position(|part| part == SEPARATOR)
        {
            files.push((file_name(files.len()), rest[..at].to_vec()));
            rest = &rest[at + SEPARATOR.len()..];
        }
        files.push((file_name(files.len()), rest.to_vec()));
        Some(Parts::Many(files))
    }

    pub(crate) fn input(&self) -> Input<'_> {
        match self {
            Parts::One(bytes) => Input::File(Source::from_bytes("file", bytes)),
            Parts::Many(files) => Input::Directory {
                name: "folder".into(),
                files: files
                    .iter()
                    .map(|(name, bytes)| Source::from_bytes(format!("folder/{name}"), bytes))
                    .collect(),
            },
        }
    }
}

fn file_name(index: usize) -> String {
    format!("T{index}.log")
}

/// Where writers of directories put their files.
pub(crate) struct Memory<'m>(pub(crate) &'m mut Vec<(String, Vec<u8>)>);

impl Folder for Memory<'_> {
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Write + '_>> {
        self.0.push((name.to_owned(), Vec::new()));
        let (_, bytes) = self.0.last_mut().expect("just added");
        Ok(Box::new(bytes))
    }
}
