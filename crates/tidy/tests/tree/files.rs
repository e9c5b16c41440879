//! The files of the tree, and how rules are asserted on them.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Folders that hold what tools leave behind.
const LEFT_OUT: &[&str] = &["target", ".git", "artifacts", "coverage"];
/// Folders of input for parsers, whose content is damaged on purpose.
const DAMAGED: &[&str] = &["fuzz/seeds", "corpus/fuzz"];

/// A text file of the tree.
pub(crate) struct TextFile {
    /// Its path from the root, with `/` between folders.
    pub(crate) path: String,
    /// Its content.
    pub(crate) text: String,
}

/// The path of something in the tree.
pub(crate) fn at(path: &str) -> PathBuf {
    Path::new(ROOT).join(path)
}

/// The content of a file that the tree must have.
pub(crate) fn content(path: &str) -> String {
    fs::read_to_string(at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All files whose names end like this, in order of their paths.
pub(crate) fn ending_in(suffixes: &[&str]) -> Vec<TextFile> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(at(&folder)).expect("a folder of the tree") {
            let entry = entry.expect("an entry of a folder");
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if entry.file_type().expect("a kind of file").is_dir() {
                if !LEFT_OUT.contains(&name.as_str()) && !DAMAGED.contains(&path.as_str()) {
                    folders.push(path);
                }
            } else if suffixes.iter().any(|suffix| name.ends_with(suffix)) {
                found.push(TextFile { text: content(&path), path });
            }
        }
    }
    found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    assert!(!found.is_empty(), "no file ends in {suffixes:?}");
    found
}

/// Fails with everything that breaks a rule.
pub(crate) fn assert_none(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}
