//! SQLite, compiled in: a file and no server.

mod driver;
mod errors;

pub(crate) use driver::TARGET;
