//! Decides which isolation levels a recorded history satisfies.
//!
//! [`check`] decides levels of a [`History`](isolde_history::History) and gives a
//! [`Verdict`] for each, with the commit order or the anomaly that shows it.
//! [`lint`](mod@lint) looks for mistakes of the recording first.
//! [`Level`] names the levels and [`IMPLICATIONS`] how they relate.
//! [`reference`](mod@reference) decides small histories by the definitions
//! themselves.

mod anomaly;
mod by_cases;
mod certify;
mod check;
mod choices;
pub mod elle;
mod explain;
mod forbidden;
mod given;
mod implied;
mod level;
mod limits;
pub mod linearizable;
pub mod lint;
mod naming;
pub mod online;
mod outcomes;
mod readings;
pub mod reference;
mod single;
mod strong;
mod turns;
mod verdict;
mod weak;

pub use anomaly::{
    Anomaly, AnomalyKind, Cases, Evidence, FOUND_BY_READING, FoundByReading, Seen, Way,
    found_by_reading,
};
pub use certify::Certified;
pub use check::{Check, applicable_levels, check, decided_levels};
pub use explain::{Explanation, Progress, explain, in_depth, shrink, with_conflicts};
pub use given::{Axiom, Clash, Conflict, Contradiction, conflicts, replay, timestamps};
pub use implied::implied;
pub use level::{IMPLICATIONS, Implication, LEVELS, Level, LevelRow};
pub use limits::{Limits, Stage, Work};
pub use strong::{Apart, Constraints, Engine, Options, Pruned, Saturate, Sources, constraints};
pub use verdict::{Cycle, Edge, INITIAL, Reason, Satisfied, Unknown, Verdict, Violated};
