//! Driving `MongoDB`: which servers there are, and what their settings promise.
//!
//! Registers and lists are two collections, and a key is a document's `_id`.
//! Transactions need a replica set or a router; a lone server has none. They run on the
//! primary, so a secondary is refused.

use super::document::{array, number};
use super::errors::accepted;
use super::login::Login;
use super::protocol::Connection;
use super::session::{MongoSession, Setting};
use crate::network::{self, Encryption, Server};
use crate::sql::{SUPPORTED, Stage, Tables};
use crate::{Stop, Target};
use bson::{Document, doc};
use isolde_harness::{
    Access, Address, Claim, Database, Endpoint, Failure, Needs, RequestKind, Session, SnapshotPoint,
};
use std::net::SocketAddr;

/// How `MongoDB` is reached.
pub(crate) const TARGET: Target = Target {
    schemes: &["mongodb"],
    title: "MongoDB, a replica set's primary or routers; encrypted by ?tls=true",
    example: "mongodb://user:password@host:27017/database?authSource=admin",
    open,
};

const DEFAULT_PORT: u16 = 27017;
/// The code of a collection that does not exist.
const NAMESPACE_NOT_FOUND: i64 = 26;

fn open(address: &Address, _: &Stop) -> Result<Box<dyn Database>, Failure> {
    network::refuse_other_options(address, &["tls", "authSource"])?;
    let login = Login::of(address)?;
    let encryption = match address.option("tls") {
        None | Some("false") => Encryption::Never,
        Some("true") => Encryption::Always,
        Some(other) => {
            return Err(Failure::Refused(format!("expected tls=true or tls=false, found {other}")));
        }
    };
    let database = if address.path.is_empty() { "isolde" } else { &address.path };
    let mut mongo = Mongo {
        database: database.to_owned(),
        servers: Server::all(address, DEFAULT_PORT, encryption)?,
        login,
        endpoints: Vec::new(),
        version: String::new(),
        claims: vec![
            Claim::new("local", &["read-uncommitted"], SnapshotPoint::EachRequest),
            Claim::new("snapshot", &["snapshot-isolation"], SnapshotPoint::FirstRequest),
        ],
        tables: Tables::default(),
    };
    mongo.look().map_err(network::unreachable)?;
    Ok(Box::new(mongo))
}

struct Mongo {
    database: String,
    servers: Vec<Server>,
    login: Option<Login>,
    endpoints: Vec<Endpoint>,
    version: String,
    claims: Vec<Claim>,
    tables: Tables,
}

impl Mongo {
    fn connection(&self, server: &Server) -> Result<Connection, Failure> {
        let mut connection = Connection::open(server)?;
        if let Some(login) = &self.login {
            login.log_in(&mut connection)?;
        }
        Ok(connection)
    }

    /// Finds out what the servers are.
    fn look(&mut self) -> Result<(), Failure> {
        for server in &self.servers.clone() {
            let mut connection = self.connection(server)?;
            let name = server.name();
            let hello = command(&mut connection, "admin", doc! { "hello": 1 })?;
            let is_router = hello.get_str("msg").is_ok_and(|it| it == "isdbgrid");
            if !is_router && hello.get_str("setName").is_err() {
                return Err(Failure::Refused(format!(
                    "expected a replica set or a router, found a lone server at {name}, which has \
                     no transactions"
                )));
            }
            if !hello.get_bool("isWritablePrimary").unwrap_or(false) {
                return Err(Failure::Refused(format!(
                    "expected the primary or a router, found a secondary at {name}"
                )));
            }
            let build = command(&mut connection, "admin", doc! { "buildInfo": 1 })?;
            build.get_str("version").unwrap_or("of unknown version").clone_into(&mut self.version);
            self.endpoints.push(Endpoint { name, access: Access::ReadWrite });
        }
        Ok(())
    }

    fn create(&self, connection: &mut Connection, name: &str) -> Result<(), Failure> {
        // Newer servers create a collection again without a word.
        let list = doc! { "listCollections": 1, "filter": { "name": name }, "nameOnly": true };
        let found = command(connection, &self.database, list)?;
        if found.get_document("cursor").is_ok_and(|it| !array(it, "firstBatch").is_empty()) {
            return Err(Failure::Refused(format!("collection {name} exists already")));
        }
        command(connection, &self.database, doc! { "create": name }).map(|_| ())
    }
}

/// The reply to a command outside of transactions.
fn command(
    connection: &mut Connection,
    database: &str,
    mut command: Document,
) -> Result<Document, Failure> {
    command.insert("$db", database);
    let reply = connection.call(&command).map_err(|error| Failure::Lost(error.to_string()))?;
    accepted(reply, Stage::Statement)
}

impl Database for Mongo {
    fn name(&self) -> &'static str {
        "MongoDB"
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn claims(&self) -> &[Claim] {
        &self.claims
    }

    fn default_isolation(&self) -> &'static str {
        "local"
    }

    fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    fn supports(&self, kind: RequestKind) -> bool {
        // An update of many tells how many, and not which.
        let is_by_condition = kind.is_by_condition() || kind == RequestKind::UpdateRange;
        SUPPORTED.contains(&kind) && !is_by_condition
    }

    fn prepare(&mut self, needs: &Needs) -> Result<(), Failure> {
        let mut connection = self.connection(&self.servers[0])?;
        if needs.registers() {
            let name = format!("{}registers", needs.prefix);
            self.create(&mut connection, &name)?;
            self.tables.registers = name;
        }
        if needs.lists() {
            let name = format!("{}lists", needs.prefix);
            self.create(&mut connection, &name)?;
            self.tables.lists = name;
        }
        Ok(())
    }

    fn connect(&self, endpoint: usize, isolation: &str) -> Result<Box<dyn Session>, Failure> {
        let connection = self.connection(&self.servers[endpoint])?;
        let setting = if isolation == "snapshot" { Setting::Snapshot } else { Setting::Local };
        Ok(Box::new(MongoSession::new(connection, setting, &self.database, &self.tables)))
    }

    fn reroute(&mut self, endpoint: usize, address: SocketAddr) -> Result<(), Failure> {
        self.servers[endpoint].reroute(address);
        Ok(())
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        for name in self.tables.names() {
            let mut connection = self.connection(&self.servers[0])?;
            let drop = doc! { "drop": name, "$db": &self.database };
            let reply = connection.call(&drop).map_err(|error| Failure::Lost(error.to_string()))?;
            if number(&reply, "code") != Some(NAMESPACE_NOT_FOUND) {
                accepted(reply, Stage::Statement)?;
            }
        }
        self.tables = Tables::default();
        Ok(())
    }

    fn removal(&self) -> Option<String> {
        let drops: Vec<String> =
            self.tables.names().map(|name| format!("db.{name}.drop()")).collect();
        (!drops.is_empty()).then(|| drops.join("; "))
    }
}

impl Drop for Mongo {
    fn drop(&mut self) {
        let _ = self.clean_up();
    }
}
