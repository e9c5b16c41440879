//! The program as its users run it: arguments in; output, messages and status out.

mod browser;
mod bundle;
mod check;
#[cfg(unix)]
mod clean;
mod elle;
mod explain;
mod first_steps;
mod given_orders;
mod input;
#[path = "../../../drivers/tests/install/mod.rs"]
mod install;
#[cfg(unix)]
mod interruption;
mod jepsen;
mod key_value;
#[cfg(target_os = "linux")]
mod limits;
mod matrix;
#[cfg(target_os = "linux")]
mod memory;
mod other_commands;
mod outputs;
mod packages;
mod page;
mod profiles;
mod questions;
mod run;
mod run_schema;
mod run_troubles;
mod schema;
mod serve;
mod support;
#[cfg(unix)]
mod terminal;
mod unlogged;
mod verify;
mod watch;
mod watch_attacked;
mod watch_opinions;
mod watch_rounds;
mod watch_troubles;
mod workers;
