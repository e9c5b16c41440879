//! Passes connections of an application on to its database, and records what it reads and writes.
//!
//! The application changes the port that it connects to, and nothing else. What goes between it
//! and the server is passed on as it is, but for statements whose rows can be told exactly: these
//! get columns with the key and the writer of each row, which are taken out of the answer again. See
//! `docs/proxy.md`.
//!
//! What is recorded is a trace whose values are versions. It is a history like any other.

mod catalog;
mod connection;
mod listener;
mod plan;
mod recording;
mod sql;
mod transaction;
mod wire;

pub use listener::{Listener, Route};
pub use recording::{Gap, Recording, Summary};
