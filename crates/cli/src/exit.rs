//! Exit statuses, and failures that are not verdicts.

use isolde_history::ReadError;
use isolde_history::format::WriteError;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// What `isolde --help` says about exit statuses.
pub(crate) const HELP: &str = "\
Exit status: 0 satisfied, 1 violated, 2 unknown, 3 bad usage or input.";

/// How the program ends. Ordered by what wins when several histories are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    Satisfied,
    Unknown,
    Violated,
    BadInput,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        ExitCode::from(match status {
            Status::Satisfied => 0,
            Status::Violated => 1,
            Status::Unknown => 2,
            Status::BadInput => 3,
        })
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The options make no sense.
    Usage(String),
    /// A history could not be read.
    Read(ReadError),
    /// A history could not be written.
    Write(String, WriteError),
    /// The user did not wait for it.
    Interrupted(String),
    /// Standard output is gone.
    Output(io::Error),
}

impl Failure {
    /// How the program ends because of it.
    pub(crate) fn status(&self) -> Status {
        match self {
            Failure::Interrupted(_) => Status::Unknown,
            _ => Status::BadInput,
        }
    }

    /// Whether the reader of standard output closed the pipe; that is no bad input.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        match self {
            Failure::Output(error) | Failure::Write(_, WriteError::Io(error)) => {
                error.kind() == io::ErrorKind::BrokenPipe
            }
            _ => false,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) | Failure::Interrupted(message) => out.write_str(message),
            Failure::Read(error) => error.fmt(out),
            Failure::Write(file, WriteError::Io(error))
                if error.kind() == io::ErrorKind::AlreadyExists =>
            {
                write!(out, "{file}: exists already; move it away or name another file")
            }
            Failure::Write(file, error) => write!(out, "{file}: {error}"),
            Failure::Output(error) => write!(out, "standard output: {error}"),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Failure::Read(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}
