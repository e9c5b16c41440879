//! Driving PostgreSQL, and what speaks its protocol: every session is a connection.
//!
//! Several servers in an address are several endpoints; one that is in recovery is a
//! standby, and is only read. Statements are prepared when a session begins, so that a
//! request is one round trip.

use super::changefeed::Changefeed;
use super::claims::{Flavour, Servers};
use super::errors::{self, connecting, described, failure};
use super::recover::{self, Decoding};
use super::statements::{Snapshots, Statements};
use super::tls::Tls;
use crate::Stop;
use crate::sql::{SUPPORTED, Stage, Tables};
use crate::tls::OPTIONS;
use isolde_harness::{
    Access, Address, Answer, Claim, Database, Endpoint, Evidence, Failure, Identity, Installed,
    Needs, Past, Request, RequestKind, Session, Snapshot, SnapshotPoint, prefix_of, prefixes_of,
};
use postgres::{Client, Config};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long connecting may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How long a standby may take to have the tables that were created on its primary.
const REPLAY_LIMIT: Duration = Duration::from_secs(20);

/// What each session sets: nothing waits for ever.
const SETTINGS: &str = "SET lock_timeout = '2s'; SET statement_timeout = '10s'; \
                        SET idle_in_transaction_session_timeout = '60s'";

/// The option that says what the commits of a session wait for, and what it may be.
const WAITS_OPTION: &str = "synchronous_commit";

/// What commits wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// What the server says.
    AsConfigured,
    /// Every second session does not wait for standbys, the others do.
    Alternating,
}

impl Waits {
    fn of(address: &Address) -> Result<Waits, Failure> {
        match address.option(WAITS_OPTION) {
            None => Ok(Waits::AsConfigured),
            Some("alternating") => Ok(Waits::Alternating),
            Some(other) => Err(Failure::Refused(format!(
                "expected {WAITS_OPTION} to be alternating, found `{other}`"
            ))),
        }
    }
}

/// Opens the database at this address, or starts a server of our own if there is none.
pub(super) fn open(
    flavour: &'static Flavour,
    address: &Address,
    stop: &Stop,
) -> Result<Box<dyn Database>, Failure> {
    if address.hosts.is_empty() {
        if address.is_bare && flavour.name == "PostgreSQL" {
            return crate::managed::postgres::open(stop);
        }
        return Err(Failure::Refused(format!(
            "expected the address of a server, as in {}://user@host:{}/{}",
            address.scheme, flavour.port, flavour.database
        )));
    }
    open_with(flavour, address)
}

/// Opens PostgreSQL at this address.
pub(crate) fn open_at(address: &Address) -> Result<Box<dyn Database>, Failure> {
    open_with(&super::claims::FLAVOURS[0], address)
}

fn open_with(flavour: &'static Flavour, address: &Address) -> Result<Box<dyn Database>, Failure> {
    let is_known = |name: &str| OPTIONS.contains(&name) || name == WAITS_OPTION;
    if let Some((name, _)) = address.options.iter().find(|option| !is_known(&option.0)) {
        return Err(Failure::Refused(format!(
            "expected one of the options {}, {WAITS_OPTION} in the address, found `{name}`",
            OPTIONS.join(", ")
        )));
    }
    let tls = Tls::of(address)?;
    let mut servers = Vec::new();
    let mut endpoints = Vec::new();
    let mut version = String::new();
    for host in &address.hosts {
        let server = Server::new(flavour, address, host);
        // Down at the start is a wrong address, not a server that comes up again.
        let refused = |failure: Failure| Failure::Refused(failure.reason().to_owned());
        let mut client = server.connect(&tls).map_err(refused)?;
        let row = client
            .query_one("SELECT version(), pg_is_in_recovery()", &[])
            .map_err(|error| Failure::Refused(format!("{}: {}", server.name, described(&error))))?;
        version = row.get(0);
        let access = if row.get(1) { Access::ReadOnly } else { Access::ReadWrite };
        endpoints.push(Endpoint { name: server.name.clone(), access });
        servers.push(server);
    }
    let has = |access| endpoints.iter().any(|endpoint| endpoint.access == access);
    if !has(Access::ReadWrite) {
        return Err(Failure::Refused(
            "expected a primary among the servers, found only standbys".to_owned(),
        ));
    }
    let kind = if has(Access::ReadOnly) { Servers::WithStandby } else { Servers::Writable };
    Ok(Box::new(Postgres {
        flavour,
        claims: (flavour.claims)(kind),
        version: short(&version),
        servers,
        endpoints,
        tls,
        waits: Waits::of(address)?,
        sessions: AtomicUsize::new(0),
        is_asked: AtomicBool::new(false),
        tables: Tables::default(),
    }))
}

/// `PostgreSQL 15.18 (Debian …) on x86_64…` without its name and what follows its number.
fn short(version: &str) -> String {
    let number = version.split_whitespace().find(|word| {
        word.trim_start_matches('v').starts_with(|first: char| first.is_ascii_digit())
    });
    number.unwrap_or(version).to_owned()
}

struct Server {
    /// Host and port.
    name: String,
    /// Where it is, or what passes everything on to it.
    host: String,
    port: u16,
    config: Config,
}

impl Server {
    fn new(flavour: &Flavour, address: &Address, host: &isolde_harness::Host) -> Server {
        let (name, port) = host.with_port(flavour.port);
        let mut config = Config::new();
        let user = address.user.as_deref().unwrap_or("postgres");
        let database = if address.path.is_empty() { flavour.database } else { &address.path };
        config.user(user).dbname(database);
        config.application_name("isolde").connect_timeout(CONNECT_LIMIT);
        if let Some(password) = &address.password {
            config.password(password);
        }
        Server { name: format!("{name}:{port}"), host: name, port, config }
    }

    fn connect(&self, tls: &Tls) -> Result<Client, Failure> {
        let mut config = self.config.clone();
        config.host(&self.host).port(self.port).ssl_mode(tls.mode);
        let mut client =
            config.connect(tls.clone()).map_err(|error| connecting(&error, &self.name))?;
        client.batch_execute(SETTINGS).map_err(|error| connecting(&error, &self.name))?;
        Ok(client)
    }
}

struct Postgres {
    flavour: &'static Flavour,
    version: String,
    claims: Vec<Claim>,
    servers: Vec<Server>,
    /// One for each server.
    endpoints: Vec<Endpoint>,
    tls: Tls,
    waits: Waits,
    /// How many sessions there were.
    sessions: AtomicUsize,
    /// Whether evidence is asked for: then sessions tell their snapshots.
    is_asked: AtomicBool,
    tables: Tables,
}

impl Postgres {
    fn primary(&self) -> Result<Client, Failure> {
        let is_primary = |endpoint: &Endpoint| endpoint.access == Access::ReadWrite;
        let place = self.endpoints.iter().position(is_primary).expect("there is a primary");
        self.servers[place].connect(&self.tls)
    }

    /// The tables that names without a schema mean.
    fn names(&self) -> Result<Vec<String>, Failure> {
        let asked = "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()";
        let rows = self.primary()?.query(asked, &[]);
        let rows = rows.map_err(|error| failure(&error, Stage::Statement))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// What sessions of this setting tell about snapshots.
    fn snapshots(&self, isolation: &str) -> Snapshots {
        let claim = self.claims.iter().find(|claim| claim.isolation == isolation);
        if !self.is_asked.load(Ordering::Relaxed) {
            Snapshots::Untold
        } else if claim.is_some_and(|claim| claim.snapshot == SnapshotPoint::EachRequest) {
            Snapshots::OfReads
        } else {
            Snapshots::OfTransactions
        }
    }

    fn create(&mut self, needs: &Needs) -> Result<(), Failure> {
        let mut client = self.primary()?;
        let mut create = |name: String, columns: &str| {
            let statement = format!("CREATE TABLE {name} ({columns})");
            match client.batch_execute(&statement) {
                Ok(()) => Ok(name),
                Err(error) => {
                    Err(Failure::Refused(format!("cannot create a table: {}", described(&error))))
                }
            }
        };
        if needs.registers() {
            let name = format!("{}registers", needs.prefix);
            self.tables.registers = create(name, "key bigint PRIMARY KEY, value bigint NOT NULL")?;
        }
        if needs.lists() {
            let name = format!("{}lists", needs.prefix);
            self.tables.lists = create(name, "key bigint PRIMARY KEY, elements bigint[] NOT NULL")?;
        }
        self.tables.note(needs);
        Ok(())
    }

    /// Waits until the tables are on a server that follows another.
    fn wait_for_tables(&self, server: &Server) -> Result<(), Failure> {
        let mut client = server.connect(&self.tls)?;
        let started = Instant::now();
        for name in self.tables.names() {
            loop {
                let row = client
                    .query_one("SELECT to_regclass($1::text) IS NOT NULL", &[name])
                    .map_err(|error| failure(&error, Stage::Statement))?;
                if row.get(0) {
                    break;
                }
                if started.elapsed() > REPLAY_LIMIT {
                    return Err(Failure::Refused(format!(
                        "expected {} to follow its primary, found no table after {REPLAY_LIMIT:?}",
                        server.name
                    )));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = self.clean_up();
    }
}

impl Database for Postgres {
    fn name(&self) -> &str {
        self.flavour.name
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn claims(&self) -> &[Claim] {
        &self.claims
    }

    fn default_isolation(&self) -> &str {
        self.flavour.default_isolation
    }

    fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    fn supports(&self, kind: RequestKind) -> bool {
        SUPPORTED.contains(&kind)
    }

    fn is_timeout(&self, reason: &str) -> bool {
        errors::is_timeout(reason)
    }

    fn prepare(&mut self, needs: &Needs) -> Result<(), Failure> {
        self.create(needs)?;
        for (server, endpoint) in self.servers.iter().zip(&self.endpoints) {
            if endpoint.access == Access::ReadOnly {
                self.wait_for_tables(server)?;
            }
        }
        Ok(())
    }

    fn connect(&self, endpoint: usize, isolation: &str) -> Result<Box<dyn Session>, Failure> {
        let mut client = self.servers[endpoint].connect(&self.tls)?;
        // The sessions of two servers alternate too, so two each.
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        if self.waits == Waits::Alternating && number / self.servers.len() % 2 == 1 {
            client
                .batch_execute("SET synchronous_commit = local")
                .map_err(|error| failure(&error, Stage::Statement))?;
        }
        let level = isolation.replace('-', " ");
        let statements = Statements::new(&mut client, &self.tables, self.snapshots(isolation))
            .map_err(|error| failure(&error, Stage::Statement))?;
        let begin = format!("BEGIN ISOLATION LEVEL {level}");
        Ok(Box::new(PostgresSession { client, begin, statements }))
    }

    fn reroute(&mut self, endpoint: usize, address: SocketAddr) -> Result<(), Failure> {
        let server = &mut self.servers[endpoint];
        (server.host, server.port) = (address.ip().to_string(), address.port());
        Ok(())
    }

    fn evidence(&self) -> Result<Box<dyn Evidence>, Failure> {
        if self.flavour.name == "CockroachDB" {
            let (client, feed) = (self.primary()?, self.primary()?);
            return Ok(Box::new(Changefeed::begin(client, feed, &self.tables.registers)?));
        }
        if self.flavour.name != "PostgreSQL" {
            return Err(Failure::Refused(format!(
                "expected PostgreSQL or CockroachDB for --white-box, found {}, whose log is another",
                self.flavour.name
            )));
        }
        let decoding = Decoding::begin(self.primary()?, &self.tables)?;
        self.is_asked.store(true, Ordering::Relaxed);
        Ok(Box::new(decoding))
    }

    fn recall(&self, past: &Past) -> Result<Vec<Installed>, Failure> {
        recover::recall(self.primary()?, past)
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        if self.tables.names().next().is_none() {
            return Ok(());
        }
        let mut client = self.primary()?;
        self.tables.remove(|statement| {
            client.batch_execute(statement).map_err(|error| failure(&error, Stage::Statement))
        })
    }

    fn removal(&self) -> Option<String> {
        self.tables.removal()
    }

    fn leftovers(&self) -> Result<Vec<String>, Failure> {
        Ok(prefixes_of(self.names()?))
    }

    fn discard(&mut self, prefix: &str) -> Result<(), Failure> {
        let mut client = self.primary()?;
        for name in self.names()?.iter().filter(|name| prefix_of(name) == Some(prefix)) {
            let dropped = client.batch_execute(&format!("DROP TABLE IF EXISTS {name}"));
            dropped.map_err(|error| failure(&error, Stage::Statement))?;
        }
        Ok(())
    }
}

struct PostgresSession {
    client: Client,
    begin: String,
    statements: Statements,
}

impl PostgresSession {
    /// The failure, with the transaction rolled back if there still is one.
    fn failed(&mut self, error: &postgres::Error, stage: Stage) -> Failure {
        let failure = failure(error, stage);
        if matches!(failure, Failure::Aborted(_))
            && let Err(error) = self.client.batch_execute("ROLLBACK")
        {
            // It was not committed, and a session that is gone takes it along.
            return Failure::Lost(described(&error));
        }
        failure
    }
}

impl Session for PostgresSession {
    fn begin(&mut self, _access: Access) -> Result<(), Failure> {
        let begun = self.client.batch_execute(&self.begin);
        begun.map_err(|error| self.failed(&error, Stage::Statement))
    }

    fn execute(&mut self, request: &Request) -> Result<Answer, Failure> {
        if !SUPPORTED.contains(&request.kind()) {
            return Err(Failure::unsupported(request));
        }
        let answer = self.statements.answer(&mut self.client, request);
        let answer = answer.map_err(|error| self.failed(&error, Stage::Statement))?;
        // A row that the transaction has inserted, and beside it the one that others have
        // deleted since its snapshot. There is no such value, and no going on with it.
        if let (Request::Read { .. }, Answer::Rows(_)) = (request, &answer) {
            self.rollback()?;
            return Err(Failure::Aborted("two rows have this key".to_owned()));
        }
        Ok(answer)
    }

    fn snapshot(&mut self) -> Option<Snapshot> {
        recover::snapshot(&self.statements.last_seen.take()?)
    }

    fn identity(&mut self) -> Result<Identity, Failure> {
        let told = self.statements.identity(&mut self.client);
        let (number, seen) = told.map_err(|error| self.failed(&error, Stage::Statement))?;
        let number = number.and_then(|number| number.parse().ok());
        Ok(Identity { number, snapshot: seen.and_then(|seen| recover::snapshot(&seen)) })
    }

    fn commit(&mut self) -> Result<(), Failure> {
        let committed = self.client.batch_execute("COMMIT");
        committed.map_err(|error| self.failed(&error, Stage::Commit))
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        let rolled_back = self.client.batch_execute("ROLLBACK");
        rolled_back.map_err(|error| failure(&error, Stage::Statement))
    }
}
