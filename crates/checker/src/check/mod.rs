//! Deciding the levels of one history.
//!
//! | file | what it does |
//! |---|---|
//! | `lattice.rs` | [`Check`]: levels from strong to weak, with the work that they share |
//! | `strategies/` | how a level is decided: a table for each family of levels |
//! | `implied.rs` | what follows from levels that were decided |
//! | `schedule.rs` | which level is tried when, if time is limited |
//! | `single_operation.rs` | what levels say of each other where transactions are single operations |
//! | `interpretations.rs` | which transactions and appends there are, where the history leaves that open |
//! | `outcomes.rs` | transactions of unknown outcome where there are reads by condition |
//! | `by_cases.rs` | refutations case by case of what the history leaves open |
//! | `certify.rs` | verdicts as claims with proofs |

mod by_cases;
mod certify;
mod implied;
mod interpretations;
mod lattice;
mod outcomes;
mod schedule;
pub(crate) mod single_operation;
mod strategies;

pub use certify::Certified;
pub use implied::implied;
pub(crate) use interpretations::Interpretations;
pub use lattice::{Check, applicable_levels, check, decided_levels};
