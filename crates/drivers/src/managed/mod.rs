//! Databases that are started here, from the programs installed on this machine.
//!
//! One file for each: which programs, with which settings, and when they are ready. What all
//! of them need is in `server`.

#[cfg(feature = "etcd")]
pub(crate) mod etcd;
#[cfg(feature = "mysql")]
pub(crate) mod galera;
#[cfg(feature = "mysql")]
pub(crate) mod mariadb;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "postgres")]
pub(crate) mod postgres_standby;
mod proxy;
#[cfg(feature = "redis")]
pub(crate) mod redis;
pub(crate) mod server;

use isolde_harness::{
    Claim, Database, Endpoint, Evidence, Failure, Fault, Needs, RequestKind, Session, Style,
};
pub(crate) use server::Home;
use server::Server;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long a server may take to answer after a fault. A node of Galera copies all files of
/// another one.
const RECOVERY_LIMIT: Duration = Duration::from_mins(1);

/// Between two looks whether it does.
const PAUSE: Duration = Duration::from_millis(50);

/// A database with its servers, which end with it.
///
/// Invariant: the fields are dropped in their order, so that the database can remove its
/// tables, and the folder outlives the servers. Each endpoint is the server of its number.
pub(crate) struct Managed {
    pub(crate) database: Box<dyn Database>,
    pub(crate) servers: Servers,
    #[expect(dead_code, reason = "held until the end")]
    pub(crate) home: Home,
}

/// Servers that end in the opposite order of their start: what follows another one need not
/// see it end.
pub(crate) struct Servers(pub(crate) Vec<Server>);

impl Drop for Servers {
    fn drop(&mut self) {
        while let Some(server) = self.0.pop() {
            drop(server);
        }
    }
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

    fn is_timeout(&self, reason: &str) -> bool {
        self.database.is_timeout(reason)
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

    fn expect_faults(&mut self, faults: &[Fault]) -> Result<(), Failure> {
        if !faults.contains(&Fault::Partition) {
            return Ok(());
        }
        let endpoints: Vec<Endpoint> = self.database.endpoints().to_vec();
        for (number, (endpoint, server)) in endpoints.iter().zip(&mut self.servers.0).enumerate() {
            let address: SocketAddr = endpoint.name.parse().map_err(|_| {
                Failure::Refused(format!("connections to {} cannot be cut", endpoint.name))
            })?;
            let proxied = server.proxied(address)?;
            self.database.reroute(number, proxied)?;
        }
        Ok(())
    }

    fn disturb(&self, fault: Fault, endpoint: usize) -> Result<(), Failure> {
        let server = &self.servers.0[endpoint];
        match fault {
            Fault::Kill => server.kill(),
            Fault::Pause => server.pause(),
            Fault::Restart => server.shut_down(),
            Fault::Partition => server.proxy().expect("faults are expected").cut(),
        }
        Ok(())
    }

    fn recover(&self, fault: Fault, endpoint: usize) -> Result<(), Failure> {
        let server = &self.servers.0[endpoint];
        match fault {
            Fault::Pause => server.resume(),
            Fault::Partition => server.proxy().expect("faults are expected").mend(),
            Fault::Kill | Fault::Restart => {}
        }
        let deadline = Instant::now() + RECOVERY_LIMIT;
        loop {
            // Also again: the first one may meet what the one before left behind.
            if !server.is_running() {
                server.start_again()?;
            }
            match self.database.connect(endpoint, self.database.default_isolation()) {
                Ok(_) => return Ok(()),
                Err(failure) if Instant::now() >= deadline => {
                    return Err(Failure::Refused(format!(
                        "does not answer after {}: {}",
                        fault.name(),
                        failure.reason()
                    )));
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    fn evidence(&self) -> Result<Box<dyn Evidence>, Failure> {
        self.database.evidence()
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        self.database.clean_up()
    }
}
