//! SQLite, compiled in: a file and no server.

mod driver;
mod errors;
mod recover;

pub(crate) use driver::TARGET;
