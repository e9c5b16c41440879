//! `isolde proxy` between real programs and a private PostgreSQL.
//!
//! What goes through is byte for byte what it is without the proxy; what is recorded has the
//! anomalies that the level permits, and no others. About a minute.

#[path = "../../../drivers/tests/install/mod.rs"]
mod install;
mod programs;
mod raw;
mod server;
mod shop;
mod troubles;
