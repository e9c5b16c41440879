//! The program as its users run it: arguments in; output, messages and status out.

mod check;
mod elle;
mod given_orders;
mod input;
mod other_commands;
mod run;
mod schema;
mod support;
mod verify;
