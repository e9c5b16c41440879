//! Verifying while a database runs, against the definition by brute force, on small
//! traces and on the simulated database.

mod as_read;
mod gone;
mod judge;
mod mechanisms;
mod notation;
mod offences;
mod pipeline;
mod placements;
mod recorded;
mod simulated;
