//! Driving PostgreSQL, and what speaks its protocol: every session is a connection.
//!
//! Several servers in an address are several endpoints; one that is in recovery is a
//! standby, and is only read. Statements are prepared when a session begins, so that a
//! request is one round trip.

use super::claims::{Flavour, Servers};
use super::errors::{connecting, described, failure};
use super::recover::Decoding;
use super::tls::Tls;
use crate::sql::{SUPPORTED, Stage, Tables};
use crate::tls::OPTIONS;
use isolde_harness::{
    Access, Address, Answer, Claim, Database, Endpoint, Evidence, Failure, Needs, Request,
    RequestKind, Session,
};
use postgres::{Client, Config, Statement};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
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
) -> Result<Box<dyn Database>, Failure> {
    if address.hosts.is_empty() {
        if address.is_bare && flavour.name == "PostgreSQL" {
            return crate::managed::postgres::open();
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
    tables: Tables,
}

impl Postgres {
    fn primary(&self) -> Result<Client, Failure> {
        let is_primary = |endpoint: &Endpoint| endpoint.access == Access::ReadWrite;
        let place = self.endpoints.iter().position(is_primary).expect("there is a primary");
        self.servers[place].connect(&self.tls)
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
        let statements = Statements::new(&mut client, &self.tables)
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
        if self.flavour.name != "PostgreSQL" {
            return Err(Failure::Refused(format!(
                "expected PostgreSQL itself for --white-box, found {}, whose log is another",
                self.flavour.name
            )));
        }
        Ok(Box::new(Decoding::begin(self.primary()?, &self.tables)?))
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        if self.tables.names().next().is_none() {
            return Ok(());
        }
        let mut client = self.primary()?;
        for table in [&mut self.tables.registers, &mut self.tables.lists] {
            if !table.is_empty() {
                client.batch_execute(&format!("DROP TABLE {table}")).map_err(|error| {
                    Failure::Refused(format!("cannot drop {table}: {}", described(&error)))
                })?;
                table.clear();
            }
        }
        Ok(())
    }
}

/// What a session can ask for.
struct Statements {
    registers: Option<RegisterStatements>,
    lists: Option<ListStatements>,
}

struct RegisterStatements {
    read: Statement,
    write: Statement,
    insert: Statement,
    delete: Statement,
    range: Statement,
    swap: Statement,
    update_range: Statement,
}

struct ListStatements {
    read: Statement,
    append: Statement,
}

impl Statements {
    fn new(client: &mut Client, tables: &Tables) -> Result<Statements, postgres::Error> {
        let Tables { registers, lists } = tables;
        let mut prepare = |text: String| client.prepare(&text);
        Ok(Statements {
            registers: if registers.is_empty() {
                None
            } else {
                Some(RegisterStatements {
                    read: prepare(format!("SELECT value FROM {registers} WHERE key = $1"))?,
                    write: prepare(format!(
                        "INSERT INTO {registers} (key, value) VALUES ($1, $2) \
                         ON CONFLICT (key) DO UPDATE SET value = excluded.value"
                    ))?,
                    insert: prepare(format!(
                        "INSERT INTO {registers} (key, value) VALUES ($1, $2) \
                         ON CONFLICT (key) DO NOTHING"
                    ))?,
                    delete: prepare(format!("DELETE FROM {registers} WHERE key = $1"))?,
                    range: prepare(format!(
                        "SELECT key, value FROM {registers} WHERE key BETWEEN $1 AND $2"
                    ))?,
                    swap: prepare(format!(
                        "UPDATE {registers} SET value = $3 WHERE key = $1 AND value = $2"
                    ))?,
                    update_range: prepare(format!(
                        "UPDATE {registers} SET value = $3::bigint + (key - $1) \
                         WHERE key BETWEEN $1 AND $2 RETURNING key, value"
                    ))?,
                })
            },
            lists: if lists.is_empty() {
                None
            } else {
                Some(ListStatements {
                    read: prepare(format!("SELECT elements FROM {lists} WHERE key = $1"))?,
                    append: prepare(format!(
                        "INSERT INTO {lists} AS stored (key, elements) \
                         VALUES ($1, ARRAY[$2::bigint]) ON CONFLICT (key) \
                         DO UPDATE SET elements = stored.elements || excluded.elements"
                    ))?,
                })
            },
        })
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

    fn answer(&mut self, request: &Request) -> Result<Answer, postgres::Error> {
        let Self { client, statements, .. } = self;
        if request.kind().is_list() {
            let statements = statements.lists.as_ref().expect("lists were asked for");
            return list_answer(client, statements, request);
        }
        let statements = statements.registers.as_ref().expect("registers were asked for");
        Ok(match *request {
            Request::Read { key } => {
                let row = client.query_opt(&statements.read, &[&stored(key)])?;
                Answer::Value(row.map(|row| row.try_get(0)).transpose()?.map(seen))
            }
            Request::Write { key, value } => {
                client.execute(&statements.write, &[&stored(key), &stored(value)])?;
                Answer::Done
            }
            Request::Insert { key, value }
            | Request::CompareAndSet { key, expected: None, value } => {
                let count = client.execute(&statements.insert, &[&stored(key), &stored(value)])?;
                Answer::Applied(count > 0)
            }
            Request::Delete { key } => {
                Answer::Applied(client.execute(&statements.delete, &[&stored(key)])? > 0)
            }
            Request::CompareAndSet { key, expected: Some(expected), value } => {
                let values = [stored(key), stored(expected), stored(value)];
                let count =
                    client.execute(&statements.swap, &[&values[0], &values[1], &values[2]])?;
                Answer::Applied(count > 0)
            }
            Request::Range { low, high } => {
                rows(&client.query(&statements.range, &[&stored(low), &stored(high)])?)?
            }
            Request::UpdateRange { low, high, first } => {
                let values = [stored(low), stored(high), stored(first)];
                let statement = &statements.update_range;
                rows(&client.query(statement, &[&values[0], &values[1], &values[2]])?)?
            }
            ref other => unreachable!("{other:?} is refused before"),
        })
    }
}

fn list_answer(
    client: &mut Client,
    statements: &ListStatements,
    request: &Request,
) -> Result<Answer, postgres::Error> {
    match *request {
        Request::Append { key, value } => {
            client.execute(&statements.append, &[&stored(key), &stored(value)])?;
            Ok(Answer::Done)
        }
        Request::ReadList { key } => {
            let row = client.query_opt(&statements.read, &[&stored(key)])?;
            let elements: Option<Vec<i64>> = row.map(|row| row.try_get(0)).transpose()?;
            Ok(Answer::List(elements.unwrap_or_default().into_iter().map(seen).collect()))
        }
        ref other => unreachable!("{other:?} is about no list"),
    }
}

fn rows(rows: &[postgres::Row]) -> Result<Answer, postgres::Error> {
    let pair = |row: &postgres::Row| Ok((seen(row.try_get(0)?), seen(row.try_get(1)?)));
    Ok(Answer::Rows(rows.iter().map(pair).collect::<Result<_, postgres::Error>>()?))
}

/// Numbers are below 2^63, so both directions keep them.
fn stored(number: u64) -> i64 {
    number.cast_signed()
}

fn seen(number: i64) -> u64 {
    number.cast_unsigned()
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
        self.answer(request).map_err(|error| self.failed(&error, Stage::Statement))
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
