//! A folder for what is needed only while this process runs.

use crate::Stop;
use crate::managed::Home;
use isolde_harness::Failure;
use std::path::Path;

/// A new folder among the temporary files. It is removed when it is dropped, and also if this
/// process is killed: whoever watches over servers does it.
pub struct TemporaryFolder(Home);

impl TemporaryFolder {
    /// A new folder, in whose name this one is.
    pub fn new(name: &str) -> Result<TemporaryFolder, Failure> {
        Home::new(name, &[], &Stop::default()).map(TemporaryFolder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}
