//! The formats of dbcop: its own of 2019 (`bincode.rs`), and JSON and text of later versions,
//! whose events are the same (`events.rs`).

pub(super) mod bincode;
mod events;
pub(super) mod hist;
pub(super) mod json;
