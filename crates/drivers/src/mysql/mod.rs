//! MariaDB and MySQL, clusters of them, and the databases that speak their protocol.

mod claims;
mod driver;
mod errors;
mod product;
mod recover;
mod statements;
mod stored_versions;

pub(crate) use claims::{GALERA, MARIADB, TIDB};
pub(crate) use driver::{is_synced, open_at};
