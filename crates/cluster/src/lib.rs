//! Verification as a dataflow, in windows of time.
//!
//! `docs/windows.md` says why windows suffice.

mod cycle;
mod event;
mod windows;

pub use cycle::shortest;
pub use event::{Dependency, Event, Kind, TxnNumber};
pub use windows::{SPANS_APART, SPANS_WHOLE, Windows};
