//! Decides which isolation levels a recorded history satisfies.
//!
//! [`check`] decides levels of a [`History`](isolde_history::History) and gives a
//! [`Verdict`] for each, with the commit order or the anomaly that shows it.
//! [`lint`](mod@lint) looks for mistakes of the recording first.
//! [`Level`] names the levels and [`IMPLICATIONS`] how they relate.
//! [`reference`](mod@reference) decides small histories by the definitions
//! themselves.

mod anomaly;
mod check;
mod choices;
mod database_claims;
mod derivation;
pub mod elle;
mod evidence;
mod explain;
mod forbidden;
mod level;
mod limits;
pub mod linearizable;
pub mod lint;
mod naming;
pub mod online;
pub mod reference;
mod strategy;
mod strong;
mod unknown;
mod verdict;
mod weak;

pub use anomaly::{
    Anomaly, AnomalyKind, Cases, Evidence, FOUND_BY_READING, FoundByReading, Seen, Way,
    found_by_reading,
};
pub use check::{Certified, Check, applicable_levels, check, decided_levels, implied};
pub use database_claims::{Axiom, Clash, Conflict, Contradiction, conflicts, replay, timestamps};
pub use evidence::{Cycle, Edge, EdgeKind, INITIAL, Reason};
pub use explain::{
    COUNTEREXAMPLES_MAX, Counterexample, Counterexamples, Explanation, Progress, counterexamples,
    explain, shrink,
};
pub use isolde_certificate::Rule;
pub use level::{IMPLICATIONS, Implication, LEVELS, Level, LevelRow};
pub use limits::{Limits, Stage, Work};
pub use strategy::{Strategies, StrategyName};
pub use strong::{Constraints, Engine, Options, Pruned, Sources, constraints};
pub use unknown::{Limit, Obstacle, Size, Undefined, Unknown, VersionsKnown};
pub use verdict::{Satisfied, Verdict, Violated};
