//! The simulated database: versions in memory, of a chosen level, with chosen bugs.
//!
//! Its stores are those that histories are generated from; here real clients reach them,
//! each in a thread of its own. `bug.rs` lists what it can get wrong.

mod bug;
mod database;
mod numbers;
mod world;

pub use bug::{BUGS, Bug, BugRow};
pub use database::Simulated;
