//! `MongoDB`, by a small client of our own: documents, messages, transactions.
//!
//! No real server was met yet: `tests.rs` has a stand-in that answers as the documents
//! of `MongoDB` say.

mod bson;
mod driver;
mod errors;
mod login;
mod protocol;
mod session;
#[cfg(test)]
mod tests;

pub(crate) use driver::TARGET;
