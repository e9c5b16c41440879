//! PostgreSQL, and the databases that speak its protocol.

mod changefeed;
mod claims;
mod driver;
mod errors;
mod recover;
mod statements;
mod tls;

pub(crate) use claims::{COCKROACH, POSTGRES, YUGABYTE};
pub(crate) use driver::open_at;
