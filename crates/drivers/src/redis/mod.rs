//! Redis, through its own protocol.
//!
//! `protocol.rs` sends commands and reads replies, `errors.rs` says what errors mean,
//! `driver.rs` opens databases, `watch.rs` and `script.rs` are its two ways to make
//! transactions.

mod driver;
mod errors;
mod protocol;
mod script;
mod watch;

pub(crate) use driver::{TARGET, follows, open_at};
