//! etcd, through its JSON gateway.
//!
//! `message.rs` writes and reads what is in requests, `errors.rs`
//! says what errors mean, `driver.rs` opens databases, `interactive.rs` and `whole.rs`
//! are its two ways to make transactions.

mod driver;
mod errors;
mod interactive;
mod message;
mod whole;

pub(crate) use driver::{TARGET, open_at};
