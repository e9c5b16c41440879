//! Verifying while a database runs, against the definition by brute force, on small
//! traces and on the simulated database.

mod judge;
mod mechanisms;
mod notation;
mod pipeline;
mod placements;
mod simulated;
