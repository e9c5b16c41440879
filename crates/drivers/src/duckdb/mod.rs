//! `DuckDB`: in this process, with its own library.

mod driver;
mod errors;

pub(crate) use driver::TARGET;
