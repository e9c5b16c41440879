//! Where things are: the tree, the program, the histories, the page.

use crate::measure::Program;
use crate::{benches, say};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A file of the tree.
pub(crate) fn in_tree(path: &str) -> PathBuf {
    Path::new(ROOT).join(path)
}

/// Builds the program as it is given to others.
pub(crate) fn built() -> Result<PathBuf, String> {
    let build = Program::new(
        benches::cargo(),
        ["build", "--profile", "dist", "--package", "isolde-cli", "--manifest-path"]
            .map(String::from)
            .into_iter()
            .chain([format!("{ROOT}/Cargo.toml")]),
    );
    build.run()?;
    Ok(target()?.join("dist").join("isolde"))
}

/// The folder that this program was built in.
pub(crate) fn target() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = own.parent().and_then(Path::parent);
    Ok(target.ok_or("expected a program in a target directory")?.to_owned())
}

/// Where the histories lie: given, or a temporary one that is removed at the end.
pub(crate) struct Folder {
    path: PathBuf,
    temporary: bool,
}

impl Folder {
    pub(crate) fn new(given: Option<&Path>) -> Result<Folder, String> {
        let temporary =
            || std::env::temp_dir().join(format!("isolde-bench-{}", std::process::id()));
        let path = given.map_or_else(temporary, Path::to_owned);
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Folder { path, temporary: given.is_none() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.temporary {
            // What cannot be removed is in the temporary directory anyway.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Writes the page.
pub(crate) fn written(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    say(&format!("wrote {}", path.display()));
    Ok(())
}

/// The size of a file.
#[expect(clippy::cast_precision_loss, reason = "less than 2^52 bytes")]
pub(crate) fn megabytes(path: &Path) -> f64 {
    fs::metadata(path).map_or(0.0, |data| data.len() as f64 / 1e6)
}

/// Adds a line.
pub(crate) fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}
