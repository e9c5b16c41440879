//! Verification as a dataflow, in windows of time, on any number of workers.
//!
//! `docs/windows.md` says why windows suffice.
//!
//! ```text
//! pieces ─► survey ─► by key: who read what, which version came after which ─► dependencies
//!                     by session: their order                                      │
//!                                                      by window of time: cycles ◄─┘
//!                                                                    │
//!       verdicts ◄─ the ordinary checker ◄─ the transactions of a finding, fetched back
//! ```

mod access;
mod cycle;
mod event;
mod evidence;
mod folder;
mod hosts;
mod key;
mod options;
mod parts;
mod session;
mod share;
mod survey;
mod verdicts;
mod windows;
mod worker;

pub use cycle::shortest;
pub use event::{Dependency, Event, Kind, TxnNumber};
pub use folder::{FolderError, MANIFEST, Manifest, split};
pub use hosts::Hosts;
pub use options::{Options, USUAL_WINDOW};
pub use parts::{Piece, Pieces, Reader};
pub use verdicts::{Counts, Outcome, Ruling, verify};
pub use windows::{SPANS_APART, SPANS_WHOLE, Windows};
