//! `MongoDB`, by a small client of our own: messages, logging in, transactions.
//!
//! The official client sends a commit again by itself if the first one fails, whatever its
//! options say, and so hides the failures that a recording is about. Documents are its own.
//!
//! No real server was met yet: `tests.rs` has a stand-in that answers as the documents
//! of `MongoDB` say.

mod document;
mod driver;
mod errors;
mod login;
mod protocol;
mod session;
#[cfg(test)]
mod tests;

pub(crate) use driver::TARGET;
