//! Any program that speaks JSON lines on its standard input and output.
//!
//! The protocol is described in `docs/databases/exec.md`. `process.rs` talks to one
//! process, `message.rs` writes requests and reads answers, `driver.rs` opens databases.

mod driver;
mod message;
mod process;

pub(crate) use driver::TARGET;
