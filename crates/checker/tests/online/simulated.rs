//! The simulated database, watched.
