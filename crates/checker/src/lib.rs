//! Decides which isolation levels a recorded history satisfies.
//!
//! [`Level`] names the levels and [`IMPLICATIONS`] how they relate. [`reference`](mod@reference)
//! decides small histories by the definitions themselves.

mod level;
pub mod reference;

pub use level::{IMPLICATIONS, Implication, LEVELS, Level, LevelRow};
