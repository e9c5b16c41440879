//! Threads that the system may refuse, where many connections come or a container has few.

use crate::exit::Failure;
use std::io;
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Starts a thread, if the system lets it be.
pub(super) fn start<'scope, 'env, T: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, NoThread> {
    Builder::new().name(name.to_owned()).spawn_scoped(scope, work).map_err(NoThread)
}

/// Why a thread was refused.
#[derive(Debug)]
pub(super) struct NoThread(io::Error);

impl std::fmt::Display for NoThread {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "the system refuses another thread ({}): allow more (ulimit -u, or the limit of \
             processes of the container)",
            self.0
        )
    }
}

impl From<NoThread> for Failure {
    fn from(error: NoThread) -> Failure {
        Failure::Usage(format!("watch: {error}"))
    }
}
