//! Databases that are started here, from the programs installed on this machine.

pub(crate) mod server;
