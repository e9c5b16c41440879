//! Databases that are started here, from the programs installed on this machine.
//!
//! One file for each: which programs, with which settings, and when they are ready. What all
//! of them need is in `server.rs`.

pub(crate) mod etcd;
#[cfg(feature = "mysql")]
pub(crate) mod galera;
#[cfg(feature = "mysql")]
pub(crate) mod mariadb;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "postgres")]
pub(crate) mod postgres_standby;
pub(crate) mod redis;
pub(crate) mod server;

use isolde_harness::{Claim, Database, Endpoint, Failure, Needs, RequestKind, Session, Style};
use server::{Home, Server};

/// A database with its servers, which end with it.
///
/// Invariant: the fields are dropped in their order, so that the database can remove its
/// tables, and the folder outlives the servers.
pub(crate) struct Managed {
    pub(crate) database: Box<dyn Database>,
    #[expect(dead_code, reason = "held until the end")]
    pub(crate) servers: Vec<Server>,
    #[expect(dead_code, reason = "held until the end")]
    pub(crate) home: Home,
}

impl Database for Managed {
    fn name(&self) -> &str {
        self.database.name()
    }

    fn version(&self) -> String {
        self.database.version()
    }

    fn claims(&self) -> &[Claim] {
        self.database.claims()
    }

    fn default_isolation(&self) -> &str {
        self.database.default_isolation()
    }

    fn endpoints(&self) -> &[Endpoint] {
        self.database.endpoints()
    }

    fn supports(&self, kind: RequestKind) -> bool {
        self.database.supports(kind)
    }

    fn style(&self) -> Style {
        self.database.style()
    }

    fn prepare(&mut self, needs: &Needs) -> Result<(), Failure> {
        self.database.prepare(needs)
    }

    fn connect(&self, endpoint: usize, isolation: &str) -> Result<Box<dyn Session>, Failure> {
        self.database.connect(endpoint, isolation)
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        self.database.clean_up()
    }
}
