//! SQLite, compiled in: a file and no server.

mod driver;
mod errors;
mod recover;
mod temporary;

pub(crate) use driver::TARGET;
