//! Driving etcd: which servers there are, and how transactions are made.
//!
//! A transaction reads at once and remembers the revisions of what it read; its end is one
//! `txn` that compares them and does all writes, or nothing (`interactive.rs`). With
//! `?style=txn` a whole transaction is one `txn` (`whole.rs`).
//!
//! `etcds://`, or `https://` as its own programs say, is the same with encrypted connections.
//!
//! The isolation setting is the kind of reads. Linearizable ones ask the whole cluster;
//! serializable ones ask only the server that the session is connected to, whose state may
//! be that of a moment ago.

use super::errors::{Asked, broken, lacks, succeeded};
use super::interactive::InteractiveSession;
use super::message::read_range;
use super::whole::WholeSession;
use crate::http::Connection;
use crate::network::{self, Encryption, Server};
use crate::{Stop, Target, managed};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use isolde_harness::{
    Access, Address, Claim, Database, Endpoint, Failure, Needs, RequestKind, Session,
    SnapshotPoint, Style,
};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// How etcd is reached.
pub(crate) const TARGET: Target = Target {
    schemes: &["etcd", "etcds", "https"],
    title: "etcd, by reads and a comparing txn, or one txn by ?style=txn; without a URL, a private one",
    example: "etcd://user@host:2379,host:2379",
    open,
};

const DEFAULT_PORT: u16 = 2379;
pub(super) const LINEARIZABLE: &str = "linearizable-reads";
pub(super) const SERIALIZABLE: &str = "serializable-reads";

fn open(address: &Address, stop: &Stop) -> Result<Box<dyn Database>, Failure> {
    if address.is_bare && address.scheme == "etcd" {
        managed::etcd::open(stop)
    } else {
        open_at(address)
    }
}

/// Opens servers that exist.
pub(crate) fn open_at(address: &Address) -> Result<Box<dyn Database>, Failure> {
    let style = match address.option("style") {
        None | Some("interactive") => Style::Interactive,
        Some("txn") => Style::Whole,
        Some(other) => {
            return Err(Failure::Refused(format!(
                "expected style interactive or txn, found {other}"
            )));
        }
    };
    network::refuse_other_options(address, &["style"])?;
    let is_plain = address.scheme == "etcd";
    let encryption = if is_plain { Encryption::Never } else { Encryption::Always };
    let servers = Server::all(address, DEFAULT_PORT, encryption)?;
    let endpoint = |server: &Server| Endpoint { name: server.name(), access: Access::ReadWrite };
    let mut etcd = Etcd {
        endpoints: servers.iter().map(endpoint).collect(),
        servers,
        login: address.user.clone().zip(address.password.clone()),
        version: String::new(),
        // A session's server has done what the session was told to be done.
        claims: vec![
            Claim::new(SERIALIZABLE, &["session-serializable"], SnapshotPoint::FirstRequest),
            Claim::new(LINEARIZABLE, &["strict-serializable"], SnapshotPoint::Begin),
        ],
        style,
        prefix: String::new(),
    };
    for place in 0..etcd.servers.len() {
        let mut connection = etcd.connection(place).map_err(network::unreachable)?;
        let status = asked(&mut connection, "/v3/maintenance/status", &json!({}))
            .map_err(network::unreachable)?;
        let version = status.get("version").and_then(Value::as_str);
        version.ok_or_else(|| lacks("a version"))?.clone_into(&mut etcd.version);
    }
    Ok(Box::new(etcd))
}

struct Etcd {
    servers: Vec<Server>,
    endpoints: Vec<Endpoint>,
    login: Option<(String, String)>,
    version: String,
    claims: Vec<Claim>,
    style: Style,
    /// Empty if nothing was prepared.
    prefix: String,
}

/// The answer to a message that changes nothing that matters.
pub(super) fn asked(
    connection: &mut Connection,
    path: &str,
    message: &Value,
) -> Result<Value, Failure> {
    let answered = connection.post(path, message).map_err(|error| broken(&error, Asked::ToRead))?;
    succeeded(answered, Asked::ToRead)
}

/// The first key after all that begin like this.
fn end_of(prefix: &str) -> String {
    // Prefixes end in an underscore, which the backquote follows.
    format!("{}`", prefix.strip_suffix('_').unwrap_or(prefix))
}

impl Etcd {
    fn connection(&self, endpoint: usize) -> Result<Connection, Failure> {
        let mut connection = Connection::open(&self.servers[endpoint])?;
        if let Some((user, password)) = &self.login {
            let message = json!({ "name": user, "password": password });
            let answer = asked(&mut connection, "/v3/auth/authenticate", &message)?;
            let token = answer.get("token").and_then(Value::as_str);
            connection.authorize(token.ok_or_else(|| lacks("a token"))?);
        }
        Ok(connection)
    }
}

impl Database for Etcd {
    fn name(&self) -> &'static str {
        "etcd"
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn claims(&self) -> &[Claim] {
        &self.claims
    }

    fn default_isolation(&self) -> &'static str {
        LINEARIZABLE
    }

    fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    fn supports(&self, kind: RequestKind) -> bool {
        use RequestKind::{CompareAndSet, Range, Read, Write};
        // What one transaction computes from what it reads, etcd cannot express.
        let is_known = !kind.is_by_condition();
        (self.style == Style::Interactive && is_known)
            || matches!(kind, Read | Write | Range | CompareAndSet)
    }

    fn style(&self) -> Style {
        self.style
    }

    fn prepare(&mut self, needs: &Needs) -> Result<(), Failure> {
        let mut connection = self.connection(0)?;
        // Taken and looked at in one step, so that of two runs one is refused.
        let owner = BASE64_STANDARD.encode(format!("{}owner", needs.prefix));
        let (first, end) = (&needs.prefix, end_of(&needs.prefix));
        let message = json!({
            "compare": [{
                "target": "CREATE", "result": "EQUAL", "create_revision": "0",
                "key": BASE64_STANDARD.encode(first), "range_end": BASE64_STANDARD.encode(end),
            }],
            "success": [{ "request_put": { "key": owner, "value": "" } }],
        });
        let answer = asked(&mut connection, "/v3/kv/txn", &message)?;
        if answer.get("succeeded").and_then(Value::as_bool) != Some(true) {
            return Err(Failure::Refused(format!("keys {first}* exist already")));
        }
        self.prefix.clone_from(&needs.prefix);
        Ok(())
    }

    fn connect(&self, endpoint: usize, isolation: &str) -> Result<Box<dyn Session>, Failure> {
        let connection = self.connection(endpoint)?;
        let is_local = isolation == SERIALIZABLE;
        Ok(match self.style {
            Style::Interactive => {
                Box::new(InteractiveSession::new(connection, &self.prefix, is_local))
            }
            Style::Whole => Box::new(WholeSession::new(connection, &self.prefix, is_local)),
        })
    }

    fn reroute(&mut self, endpoint: usize, address: SocketAddr) -> Result<(), Failure> {
        self.servers[endpoint].reroute(address);
        Ok(())
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        if self.prefix.is_empty() {
            return Ok(());
        }
        let mut connection = self.connection(0)?;
        let range = read_range(&self.prefix, &end_of(&self.prefix));
        asked(&mut connection, "/v3/kv/deleterange", &range)?;
        self.prefix.clear();
        Ok(())
    }

    fn removal(&self) -> Option<String> {
        (!self.prefix.is_empty()).then(|| format!("etcdctl del --prefix {}", self.prefix))
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.clean_up();
    }
}
