//! Driving MariaDB, MySQL and what speaks their protocol: every session is a connection.
//!
//! Several servers in an address are several endpoints, as the nodes of a cluster are.

use super::claims::{FLAVOURS, Flavour, Managed, Snapshots, WITH_SNAPSHOT};
use super::errors::{self, connecting, described, failure};
use super::product::Product;
use super::recover::{self, BinaryLog};
use super::statements::{Reread, Statements};
use super::stored_versions::StoredVersions;
use crate::Stop;
use crate::sql::{SUPPORTED, Stage, Tables};
use isolde_harness::{
    Access, Address, Answer, Claim, Database, Endpoint, Evidence, Failure, Host, Identity,
    Installed, Needs, Past, Request, RequestKind, Session, Snapshot, prefix_of, prefixes_of,
};
use mysql::prelude::Queryable;
use mysql::{ClientIdentity, Conn, OptsBuilder, SslOpts};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long connecting may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How long an answer may take. The servers' own limits are shorter.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// How long a node may take to have the tables that were created on another.
const REPLICATION_LIMIT: Duration = Duration::from_secs(20);

/// Options of an address that become a variable of each session, and what it may be.
const VARIABLES: &[(&str, &[&str])] = &[
    ("wsrep_sync_wait", &["0", "1", "2", "3", "4", "5", "6", "7"]),
    ("tidb_txn_mode", &["optimistic", "pessimistic"]),
];

/// Opens the database at this address, or starts servers of our own if there is none.
pub(super) fn open(
    flavour: &'static Flavour,
    address: &Address,
    stop: &Stop,
) -> Result<Box<dyn Database>, Failure> {
    if !address.hosts.is_empty() {
        return open_with(flavour, address);
    }
    match flavour.managed {
        Some(Managed::OneServer) if address.scheme == "mariadb" && address.is_bare => {
            crate::managed::mariadb::open(stop)
        }
        Some(Managed::Cluster) if address.is_bare => crate::managed::galera::open(stop),
        _ => Err(Failure::Refused(format!(
            "expected the address of a server, as in {}://user:password@host:{}/database",
            address.scheme, flavour.port
        ))),
    }
}

/// Opens the database at this address, which says by its scheme what it is.
pub(crate) fn open_at(address: &Address) -> Result<Box<dyn Database>, Failure> {
    let place = match address.scheme.as_str() {
        "galera" => 1,
        "tidb" => 2,
        _ => 0,
    };
    open_with(&FLAVOURS[place], address)
}

fn open_with(flavour: &'static Flavour, address: &Address) -> Result<Box<dyn Database>, Failure> {
    if address.path.is_empty() {
        return Err(Failure::Refused(format!(
            "expected the name of a database behind the server, as in {}://user@host:{}/test",
            address.scheme, flavour.port
        )));
    }
    let encryption = encryption(address)?;
    let variables = variables(address)?;
    // One of several providers could be compiled in; the first to be installed stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut servers = Vec::new();
    for host in &address.hosts {
        servers.push(Server::new(flavour, address, host, encryption.clone(), &variables));
    }
    let refused = |failure: Failure| Failure::Refused(failure.reason().to_owned());
    let mut product = Product::of("");
    let mut snapshots = Snapshots::Unknown;
    for server in &servers {
        // Down at the start is a wrong address, not a server that comes up again.
        let mut conn = server.connect().map_err(refused)?;
        let asked = |error: &mysql::Error| {
            Failure::Refused(format!("{}: {}", server.name, described(error)))
        };
        let found: Option<String> =
            conn.query_first("SELECT version()").map_err(|error| asked(&error))?;
        product = Product::of(&found.unwrap_or_default());
        product.expect(flavour, &address.scheme, &server.name)?;
        let variable: Option<(String, String)> = conn
            .query_first("SHOW GLOBAL VARIABLES LIKE 'innodb_snapshot_isolation'")
            .map_err(|error| asked(&error))?;
        if let Some((_, value)) = variable {
            snapshots = Snapshots::Known { is_on: value == "ON" };
        }
    }
    let endpoint =
        |server: &Server| Endpoint { name: server.name.clone(), access: Access::ReadWrite };
    Ok(Box::new(Mysql {
        name: if flavour.name == "MySQL" { product.name } else { flavour.name },
        claims: (flavour.claims)(snapshots),
        version: product.version,
        snapshots,
        endpoints: servers.iter().map(endpoint).collect(),
        servers,
        tables: Tables::default(),
        is_asked: AtomicBool::new(false),
    }))
}

/// Whether the node at this address is a working part of a cluster of this size.
pub(crate) fn is_synced(address: &Address, size: usize) -> Result<(), Failure> {
    let server = Server::new(&FLAVOURS[1], address, &address.hosts[0], None, &[]);
    let mut conn = server.connect()?;
    for (name, expected) in [
        ("wsrep_cluster_size", size.to_string()),
        ("wsrep_local_state_comment", "Synced".to_owned()),
        ("wsrep_ready", "ON".to_owned()),
    ] {
        let found: Option<(String, String)> = conn
            .query_first(format!("SHOW STATUS LIKE '{name}'"))
            .map_err(|error| failure(&error, Stage::Statement))?;
        let found = found.map(|row| row.1).unwrap_or_default();
        if found != expected {
            return Err(Failure::Lost(format!("{name} is {found} and not {expected}")));
        }
    }
    Ok(())
}

/// Options about encryption.
const ENCRYPTION: [&str; 4] = ["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key"];

/// What the options of the address say about encryption.
fn encryption(address: &Address) -> Result<Option<SslOpts>, Failure> {
    let root = certificates(address, "ssl-ca")?;
    let (own, key) = (certificates(address, "ssl-cert")?, certificates(address, "ssl-key")?);
    if own.is_some() != key.is_some() {
        return Err(Failure::Refused(
            "expected ssl-cert and ssl-key together, found one of them".to_owned(),
        ));
    }
    let mode = address.option("ssl-mode").unwrap_or("disabled");
    if mode == "disabled" && (root.is_some() || own.is_some()) {
        return Err(Failure::Refused(
            "expected ssl-mode required, verify-ca or verify-identity beside the files of \
             certificates, found a connection that is not encrypted"
                .to_owned(),
        ));
    }
    let identity = own.zip(key).map(|(own, key)| ClientIdentity::new(own, key));
    let options = SslOpts::default().with_root_cert_path(root).with_client_identity(identity);
    match mode {
        "disabled" => Ok(None),
        "required" => Ok(Some(
            options.with_danger_accept_invalid_certs(true).with_danger_skip_domain_validation(true),
        )),
        "verify-ca" => Ok(Some(options.with_danger_skip_domain_validation(true))),
        "verify-identity" => Ok(Some(options)),
        other => Err(Failure::Refused(format!(
            "expected ssl-mode disabled, required, verify-ca or verify-identity, found `{other}`"
        ))),
    }
}

/// The file that an option names, which must be there.
fn certificates(address: &Address, option: &str) -> Result<Option<PathBuf>, Failure> {
    let path = address.option(option).map(PathBuf::from);
    match path.as_ref().filter(|path| !path.is_file()) {
        Some(path) => Err(Failure::Refused(format!(
            "expected a file of certificates in {option}, found none at {}",
            path.display()
        ))),
        None => Ok(path),
    }
}

/// Variables of the session that the options of the address ask for.
fn variables(address: &Address) -> Result<Vec<String>, Failure> {
    let mut set = Vec::new();
    for (name, value) in &address.options {
        if ENCRYPTION.contains(&name.as_str()) {
            continue;
        }
        let Some((name, values)) = VARIABLES.iter().find(|row| row.0 == name) else {
            return Err(Failure::Refused(format!(
                "expected one of the options {}, wsrep_sync_wait, tidb_txn_mode in the address, \
                 found `{name}`",
                ENCRYPTION.join(", ")
            )));
        };
        if !values.contains(&value.as_str()) {
            return Err(Failure::Refused(format!(
                "expected {name} to be one of {}, found `{value}`",
                values.join(", ")
            )));
        }
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let quote = if is_number { "" } else { "'" };
        set.push(format!("{name} = {quote}{value}{quote}"));
    }
    Ok(set)
}

#[derive(Clone)]
pub(super) struct Server {
    /// Host and port.
    name: String,
    options: OptsBuilder,
    variables: Vec<String>,
}

impl Server {
    fn new(
        flavour: &Flavour,
        address: &Address,
        host: &Host,
        encryption: Option<SslOpts>,
        variables: &[String],
    ) -> Server {
        let (name, port) = host.with_port(flavour.port);
        let options = OptsBuilder::new()
            .ip_or_hostname(Some(&name))
            .tcp_port(port)
            .prefer_socket(false)
            .user(Some(address.user.as_deref().unwrap_or("root")))
            .pass(address.password.as_deref())
            .db_name(Some(&address.path))
            .tcp_connect_timeout(Some(CONNECT_LIMIT))
            .read_timeout(Some(ANSWER_LIMIT))
            .write_timeout(Some(ANSWER_LIMIT))
            .ssl_opts(encryption);
        Server { name: format!("{name}:{port}"), options, variables: variables.to_vec() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn connect(&self) -> Result<Conn, Failure> {
        let connected = Conn::new(self.options.clone());
        let mut conn = connected.map_err(|error| connecting(&error, &self.name))?;
        // Nothing waits for ever.
        conn.query_drop("SET SESSION innodb_lock_wait_timeout = 2")
            .map_err(|error| connecting(&error, &self.name))?;
        // The one name is MariaDB's, in seconds, the other one everybody else's.
        let limits = ["max_statement_time = 10", "max_execution_time = 10000"];
        let is_limited =
            limits.iter().any(|limit| conn.query_drop(format!("SET SESSION {limit}")).is_ok());
        if !is_limited {
            return Err(Failure::Refused(format!("{} has no limit for statements", self.name)));
        }
        for variable in &self.variables {
            conn.query_drop(format!("SET SESSION {variable}"))
                .map_err(|error| connecting(&error, &self.name))?;
        }
        Ok(conn)
    }
}

struct Mysql {
    name: &'static str,
    version: String,
    claims: Vec<Claim>,
    snapshots: Snapshots,
    servers: Vec<Server>,
    /// One for each server.
    endpoints: Vec<Endpoint>,
    tables: Tables,
    /// Whether evidence is asked for: then sessions tell their snapshots, if they can.
    is_asked: AtomicBool,
}

impl Mysql {
    /// The tables of the database.
    fn names(&self) -> Result<Vec<String>, Failure> {
        let names = self.servers[0].connect()?.query("SHOW TABLES");
        names.map_err(|error| failure(&error, Stage::Statement))
    }

    fn create(&mut self, needs: &Needs) -> Result<(), Failure> {
        let mut conn = self.servers[0].connect()?;
        let mut create = |name: String, columns: &str| {
            let engine = "ENGINE = InnoDB";
            match conn.query_drop(format!("CREATE TABLE {name} ({columns}) {engine}")) {
                Ok(()) => Ok(name),
                Err(error) => {
                    Err(Failure::Refused(format!("cannot create a table: {}", described(&error))))
                }
            }
        };
        if needs.registers() {
            let name = format!("{}registers", needs.prefix);
            self.tables.registers =
                create(name, "`key` BIGINT PRIMARY KEY, value BIGINT NOT NULL")?;
        }
        if needs.lists() {
            let name = format!("{}lists", needs.prefix);
            self.tables.lists =
                create(name, "`key` BIGINT PRIMARY KEY, elements LONGTEXT NOT NULL")?;
        }
        self.tables.note(needs);
        Ok(())
    }

    /// What sessions of a level tell: where what they read has a place in the log.
    fn told(&self, level: &str) -> Told {
        let tells = self.is_asked.load(Ordering::Relaxed)
            && self.name == "MariaDB"
            && self.servers.len() == 1
            && self.tables.by_condition;
        match level {
            "repeatable read" if tells => Told::OfBegin { snapshot: None, is_read: false },
            "serializable" if tells => Told::OfLocks,
            _ => Told::Nothing,
        }
    }

    /// Waits until the tables are on another server.
    fn wait_for_tables(&self, server: &Server) -> Result<(), Failure> {
        let started = Instant::now();
        loop {
            let found = server.connect().and_then(|mut conn| {
                Statements::new(&mut conn, &self.tables, Reread::Plain)
                    .map_err(|error| failure(&error, Stage::Statement))
            });
            match found {
                Ok(_) => return Ok(()),
                Err(failure) if started.elapsed() > REPLICATION_LIMIT => {
                    return Err(Failure::Refused(format!(
                        "expected {} to have the tables of {}: {}",
                        server.name,
                        self.servers[0].name,
                        failure.reason()
                    )));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for Mysql {
    fn drop(&mut self) {
        let _ = self.clean_up();
    }
}

impl Database for Mysql {
    fn name(&self) -> &str {
        self.name
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn claims(&self) -> &[Claim] {
        &self.claims
    }

    fn default_isolation(&self) -> &str {
        match self.snapshots {
            Snapshots::Known { is_on: true } => WITH_SNAPSHOT,
            _ => "repeatable-read",
        }
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
        for server in &self.servers[1..] {
            self.wait_for_tables(server)?;
        }
        Ok(())
    }

    fn connect(&self, endpoint: usize, isolation: &str) -> Result<Box<dyn Session>, Failure> {
        let mut conn = self.servers[endpoint].connect()?;
        let set = |conn: &mut Conn, text: String| {
            conn.query_drop(text).map_err(|error| failure(&error, Stage::Statement))
        };
        if self.snapshots != Snapshots::Unknown {
            let value = if isolation == WITH_SNAPSHOT { "ON" } else { "OFF" };
            set(&mut conn, format!("SET SESSION innodb_snapshot_isolation = {value}"))?;
        }
        let level = if isolation == WITH_SNAPSHOT { "repeatable-read" } else { isolation };
        let level = level.replace('-', " ");
        set(&mut conn, format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"))?;
        // Elsewhere each read has a snapshot of its own, or locks, or the begin has taken it.
        let reread = match level.as_str() {
            "repeatable read" if self.name != "TiDB" => Reread::Locking,
            _ => Reread::Plain,
        };
        let statements = Statements::new(&mut conn, &self.tables, reread)
            .map_err(|error| failure(&error, Stage::Statement))?;
        let told = self.told(&level);
        Ok(Box::new(MysqlSession { conn, statements, told }))
    }

    fn reroute(&mut self, endpoint: usize, address: SocketAddr) -> Result<(), Failure> {
        let options = &mut self.servers[endpoint].options;
        let host = address.ip().to_string();
        *options = options.clone().ip_or_hostname(Some(host)).tcp_port(address.port());
        Ok(())
    }

    fn evidence(&self) -> Result<Box<dyn Evidence>, Failure> {
        if self.name == "TiDB" {
            let registers = &self.tables.registers;
            return Ok(Box::new(StoredVersions::begin(&self.servers[0], registers)?));
        }
        self.is_asked.store(true, Ordering::Relaxed);
        Ok(Box::new(BinaryLog::begin(&self.servers[0], &self.tables.registers)?))
    }

    fn recall(&self, past: &Past) -> Result<Vec<Installed>, Failure> {
        if self.name == "TiDB" {
            return Err(Failure::Refused("TiDB has no binary log to look into".to_owned()));
        }
        recover::recall(&self.servers[0], past)
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        if self.tables.names().next().is_none() {
            return Ok(());
        }
        let mut conn = self.servers[0].connect()?;
        self.tables.remove(|statement| {
            conn.query_drop(statement).map_err(|error| failure(&error, Stage::Statement))
        })
    }

    fn removal(&self) -> Option<String> {
        self.tables.removal()
    }

    fn leftovers(&self) -> Result<Vec<String>, Failure> {
        Ok(prefixes_of(self.names()?))
    }

    fn discard(&mut self, prefix: &str) -> Result<(), Failure> {
        let mut conn = self.servers[0].connect()?;
        for name in self.names()?.iter().filter(|name| prefix_of(name) == Some(prefix)) {
            let dropped = conn.query_drop(format!("DROP TABLE IF EXISTS {name}"));
            dropped.map_err(|error| failure(&error, Stage::Statement))?;
        }
        Ok(())
    }
}

struct MysqlSession {
    conn: Conn,
    statements: Statements,
    told: Told,
}

/// What a session tells about the snapshot of its transaction.
enum Told {
    Nothing,
    /// Its begin takes a snapshot.
    OfBegin {
        snapshot: Option<Snapshot>,
        /// Whether the last request read by it: what changes rows sees the latest ones.
        is_read: bool,
    },
    /// It locks all that it looks at, rows and the gaps between them, until it ends. What it
    /// saw is therefore still there right before its commit, and a place in the log that is
    /// asked for then has all that came before it and nothing that has to wait for it.
    OfLocks,
}

impl MysqlSession {
    /// The failure, with the transaction rolled back if there still is one: some errors
    /// take back only the statement.
    fn failed(&mut self, error: &mysql::Error, stage: Stage) -> Failure {
        let failure = failure(error, stage);
        if matches!(failure, Failure::Aborted(_))
            && let Err(error) = self.conn.query_drop("ROLLBACK")
        {
            // It was not committed, and a session that is gone takes it along.
            return Failure::Lost(described(&error));
        }
        failure
    }
}

impl Session for MysqlSession {
    fn begin(&mut self, _access: Access) -> Result<(), Failure> {
        let Told::OfBegin { snapshot, is_read } = &mut self.told else {
            let begun = self.conn.query_drop("START TRANSACTION");
            return begun.map_err(|error| self.failed(&error, Stage::Statement));
        };
        let begun = self.conn.query_drop("START TRANSACTION WITH CONSISTENT SNAPSHOT");
        match begun.and_then(|()| recover::snapshot(&mut self.conn)) {
            Ok(taken) => (*snapshot, *is_read) = (taken, false),
            Err(error) => return Err(self.failed(&error, Stage::Statement)),
        }
        Ok(())
    }

    fn execute(&mut self, request: &Request) -> Result<Answer, Failure> {
        if !SUPPORTED.contains(&request.kind()) {
            return Err(Failure::unsupported(request));
        }
        if let Told::OfBegin { is_read, .. } = &mut self.told {
            use RequestKind::{Aggregate, Range, Select};
            *is_read = matches!(request.kind(), Range | Select | Aggregate);
        }
        let answer = self.statements.answer(&mut self.conn, request);
        answer.map_err(|error| self.failed(&error, Stage::Statement))
    }

    fn snapshot(&mut self) -> Option<Snapshot> {
        match &self.told {
            Told::OfBegin { snapshot, is_read: true } => snapshot.clone(),
            _ => None,
        }
    }

    fn identity(&mut self) -> Result<Identity, Failure> {
        let Told::OfLocks = self.told else { return Ok(Identity::default()) };
        let seen = recover::snapshot(&mut self.conn);
        let snapshot = seen.map_err(|error| self.failed(&error, Stage::Statement))?;
        Ok(Identity { number: None, snapshot })
    }

    fn commit(&mut self) -> Result<(), Failure> {
        let committed = self.conn.query_drop("COMMIT");
        committed.map_err(|error| self.failed(&error, Stage::Commit))
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        let rolled_back = self.conn.query_drop("ROLLBACK");
        rolled_back.map_err(|error| failure(&error, Stage::Statement))
    }
}
