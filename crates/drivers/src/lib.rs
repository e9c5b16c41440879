//! Databases that can be driven, one folder each.
//!
//! A folder has `driver.rs`, which implements the harness's `Database` and `Session`,
//! and `errors.rs`, which says what each error means for a transaction. [`TARGETS`] has a
//! row for each; [`open`] finds the row of an address. Every driver passes the
//! harness's conformance suite.

// What several databases share is there in a build with one of them, too.
#![cfg_attr(
    not(all(feature = "etcd", feature = "mysql", feature = "postgres", feature = "redis")),
    allow(dead_code, unused_imports)
)]

#[cfg(feature = "duckdb")]
mod duckdb;
#[cfg(any(feature = "fjall", feature = "redb"))]
mod embedded;
#[cfg(feature = "etcd")]
mod etcd;
mod exec;
#[cfg(any(feature = "etcd", feature = "mysql"))]
mod http;
mod managed;
#[cfg(feature = "mongodb")]
mod mongodb;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(any(feature = "etcd", feature = "mongodb", feature = "mysql", feature = "redis"))]
mod network;
#[cfg(feature = "postgres")]
mod postgres;
pub mod profiles;
#[cfg(feature = "redis")]
mod redis;
mod simulated;
#[cfg(any(
    feature = "duckdb",
    feature = "mongodb",
    feature = "mysql",
    feature = "postgres",
    feature = "sqlite"
))]
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;
mod temporary;
#[cfg(any(
    feature = "etcd",
    feature = "mongodb",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
mod tls;

use isolde_harness::{Address, Database, Failure};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
pub use temporary::TemporaryFolder;

/// Set by whoever no longer waits for a database.
pub type Stop = Arc<AtomicBool>;

/// A database, or why there is none.
pub type Opened = Result<Box<dyn Database>, Failure>;

/// A kind of database that can be driven.
pub struct Target {
    /// What its addresses begin with; the first one is its name.
    pub schemes: &'static [&'static str],
    /// What it is, in a few words.
    pub title: &'static str,
    /// An address as an example.
    pub example: &'static str,
    /// Opens the database: connects at least once, so that a wrong address shows. Servers that
    /// are starting end once it is to stop.
    pub open: fn(&Address, &Stop) -> Opened,
}

/// All of them. A new one is a folder and a row.
pub static TARGETS: &[Target] = &[
    #[cfg(feature = "sqlite")]
    sqlite::TARGET,
    #[cfg(feature = "postgres")]
    postgres::POSTGRES,
    #[cfg(feature = "postgres")]
    managed::postgres_standby::TARGET,
    #[cfg(feature = "mysql")]
    mysql::MARIADB,
    #[cfg(feature = "mysql")]
    mysql::GALERA,
    #[cfg(feature = "postgres")]
    postgres::COCKROACH,
    #[cfg(feature = "postgres")]
    postgres::YUGABYTE,
    #[cfg(feature = "mysql")]
    mysql::TIDB,
    #[cfg(feature = "redis")]
    redis::TARGET,
    #[cfg(feature = "redis")]
    managed::redis::REPLICA,
    #[cfg(feature = "etcd")]
    etcd::TARGET,
    #[cfg(feature = "etcd")]
    managed::etcd::CLUSTER,
    #[cfg(feature = "fjall")]
    embedded::FJALL,
    #[cfg(feature = "redb")]
    embedded::REDB,
    #[cfg(feature = "duckdb")]
    duckdb::TARGET,
    #[cfg(feature = "mongodb")]
    mongodb::TARGET,
    exec::TARGET,
    simulated::TARGET,
];

/// The database that is driven if no other is named.
pub const DEFAULT_TARGET: &str = "sqlite";

/// The variable of the environment that has the password, for an address without one: what is
/// typed as an argument can be seen by others, and a report must not repeat it.
pub const PASSWORD_VARIABLE: &str = "ISOLDE_PASSWORD";

/// What a server that wants a password means for its user.
#[cfg(any(feature = "mysql", feature = "postgres"))]
const PASSWORD_HINT: &str = "a password is taken from the address, as in user:password@host, or from the \
                             environment variable ISOLDE_PASSWORD";

/// Reads an address, with the password of [`PASSWORD_VARIABLE`] if it has none. The message
/// never repeats the text, which may have a password.
pub fn address(text: &str) -> Result<Address, String> {
    let mut address = Address::parse(text)?;
    // Redis has users without a name.
    let takes_one = address.user.is_some() || address.scheme.starts_with("redis");
    if takes_one && !address.hosts.is_empty() && address.password.is_none() {
        address.password = std::env::var(PASSWORD_VARIABLE).ok();
    }
    Ok(address)
}

/// Opens the database at this address.
pub fn open(address: &Address) -> Opened {
    open_until(address, &Stop::default())
}

/// Opens the database at this address, or fails soon after it is to stop, if that means to wait
/// for servers of our own.
pub fn open_until(address: &Address, stop: &Stop) -> Opened {
    let target = TARGETS.iter().find(|target| target.schemes.contains(&address.scheme.as_str()));
    let Some(target) = target else {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.schemes[0]).collect();
        let others = if cfg!(feature = "postgres") {
            ""
        } else {
            "; others are in a build with --features databases"
        };
        return Err(Failure::Refused(format!(
            "expected a database that can be driven ({}), found {}{others}",
            names.join(", "),
            address.scheme
        )));
    };
    (target.open)(address, stop)
}
