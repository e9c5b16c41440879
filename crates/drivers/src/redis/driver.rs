//! Driving Redis: which servers there are, and how transactions are made.
//!
//! With `WATCH` (the default) a transaction reads at once, watching what it reads, and
//! collects its writes for `MULTI` and `EXEC`, which does nothing if anything watched has
//! changed. With `?style=lua` a whole transaction is one script. Either way everything
//! happens at one moment on one server.
//!
//! `rediss://` is the same with encrypted connections.
//!
//! Replicas get everything in the same order, but later: who reads there sees the past.

use super::errors::{lost, unexpected};
use super::protocol::Connection;
use super::{script::ScriptSession, watch::WatchSession};
use crate::network::{self, Encryption, Server};
use crate::{Stop, Target, managed};
use isolde_harness::{
    Access, Address, Claim, Database, Endpoint, FIRST, Failure, Needs, RequestKind, Session,
    SnapshotPoint, Style, prefixes_of,
};
use redis::Value;
use std::net::SocketAddr;

/// How Redis is reached.
pub(crate) const TARGET: Target = Target {
    schemes: &["redis", "rediss"],
    title: "Redis, with WATCH and MULTI, or scripts by ?style=lua; without a URL, a private one",
    example: "redis://user@host:6379,replica:6379/0",
    open,
};

const DEFAULT_PORT: u16 = 6379;

fn open(address: &Address, stop: &Stop) -> Result<Box<dyn Database>, Failure> {
    if address.is_bare && address.scheme == "redis" {
        managed::redis::open(stop)
    } else {
        open_at(address)
    }
}

/// Opens servers that exist.
pub(crate) fn open_at(address: &Address) -> Result<Box<dyn Database>, Failure> {
    Ok(Box::new(Redis::open(address)?))
}

/// Whether a replica has caught up with its primary.
pub(crate) fn follows(host: &str, port: u16) -> Result<(), Failure> {
    let mut connection = Connection::open(&Server::plain(host, port))?;
    let role = connection.call(&["ROLE"]).map_err(|error| lost(&error))?;
    match &role {
        Value::Array(parts) if parts.contains(&Value::BulkString(b"connected".to_vec())) => Ok(()),
        _ => Err(Failure::Lost("the replica has not found its primary".to_owned())),
    }
}

struct Redis {
    login: Login,
    servers: Vec<Server>,
    endpoints: Vec<Endpoint>,
    version: String,
    claims: Vec<Claim>,
    style: Style,
    /// Empty if nothing was prepared.
    prefix: String,
}

#[derive(Clone, Default)]
struct Login {
    user: Option<String>,
    password: Option<String>,
    database: u32,
}

impl Redis {
    fn open(address: &Address) -> Result<Redis, Failure> {
        let style = match address.option("style") {
            None | Some("watch") => Style::Interactive,
            Some("lua") => Style::Whole,
            Some(other) => {
                return Err(Failure::Refused(format!(
                    "expected style watch or lua, found {other}"
                )));
            }
        };
        network::refuse_other_options(address, &["style"])?;
        let database = match address.path.as_str() {
            "" => 0,
            number => number.parse().map_err(|_| {
                Failure::Refused(format!("expected the number of a database, found {number}"))
            })?,
        };
        let login =
            Login { user: address.user.clone(), password: address.password.clone(), database };
        let is_encrypted = address.scheme == "rediss";
        let encryption = if is_encrypted { Encryption::Always } else { Encryption::Never };
        let servers = Server::all(address, DEFAULT_PORT, encryption)?;
        let mut redis = Redis {
            login,
            servers,
            endpoints: Vec::new(),
            version: String::new(),
            claims: Vec::new(),
            style,
            prefix: String::new(),
        };
        redis.look().map_err(network::unreachable)?;
        Ok(redis)
    }

    /// Finds out what the servers are.
    fn look(&mut self) -> Result<(), Failure> {
        for place in 0..self.servers.len() {
            let mut connection = self.connection(place)?;
            let role = connection.call(&["ROLE"]).map_err(|error| lost(&error))?;
            let is_primary = match &role {
                Value::Array(parts) => {
                    parts.first() == Some(&Value::BulkString(b"master".to_vec()))
                }
                other => return Err(unexpected(other)),
            };
            self.endpoints.push(Endpoint {
                name: self.servers[place].name(),
                access: if is_primary { Access::ReadWrite } else { Access::ReadOnly },
            });
            if place == 0 {
                self.version = version(&mut connection)?;
            }
        }
        let has_replica = self.endpoints.iter().any(|it| it.access == Access::ReadOnly);
        let name = if self.style == Style::Whole { "lua" } else { "watch" };
        let promise = if has_replica { "session-serializable" } else { "strict-serializable" };
        self.claims = vec![Claim::new(name, &[promise], SnapshotPoint::Begin)];
        Ok(())
    }

    fn connection(&self, endpoint: usize) -> Result<Connection, Failure> {
        let server = &self.servers[endpoint];
        let mut connection = Connection::open(server)?;
        let mut command = |parts: &[&str]| -> Result<(), Failure> {
            match connection.call(parts).map_err(|error| lost(&error))? {
                Value::ServerError(error) => {
                    // The message of a refused login does not repeat it.
                    let (code, details) = (error.code(), error.details().unwrap_or_default());
                    let name = server.name();
                    Err(Failure::Refused(format!("Redis at {name} answered: {code} {details}")))
                }
                _ => Ok(()),
            }
        };
        match (&self.login.user, &self.login.password) {
            (Some(user), password) => {
                command(&["AUTH", user, password.as_deref().unwrap_or_default()])?;
            }
            (None, Some(password)) => command(&["AUTH", password])?,
            (None, None) => {}
        }
        if self.login.database > 0 {
            command(&["SELECT", &self.login.database.to_string()])?;
        }
        Ok(connection)
    }

    /// A connection to the first server that takes writes.
    fn primary(&self) -> Result<Connection, Failure> {
        let place = self.endpoints.iter().position(|it| it.access == Access::ReadWrite);
        let place = place.ok_or_else(|| {
            Failure::Refused("expected a server that takes writes, found replicas".to_owned())
        })?;
        self.connection(place)
    }

    fn owner(prefix: &str) -> String {
        format!("{prefix}owner")
    }
}

fn version(connection: &mut Connection) -> Result<String, Failure> {
    match connection.call(&["INFO", "server"]).map_err(|error| lost(&error))? {
        Value::BulkString(text) => {
            let text = String::from_utf8_lossy(&text);
            let line = text.lines().find_map(|line| line.strip_prefix("redis_version:"));
            Ok(line.unwrap_or("of unknown version").trim().to_owned())
        }
        other => Err(unexpected(&other)),
    }
}

/// All keys that begin like this.
fn keys(connection: &mut Connection, prefix: &str) -> Result<Vec<Vec<u8>>, Failure> {
    // Prefixes are letters, digits and underscores, none of which is special.
    let pattern = format!("{prefix}*");
    let mut cursor = "0".to_owned();
    let mut found = Vec::new();
    loop {
        let command = ["SCAN", &cursor, "MATCH", &pattern, "COUNT", "1000"];
        let reply = connection.call(&command).map_err(|error| lost(&error))?;
        let Value::Array(parts) = &reply else { return Err(unexpected(&reply)) };
        let [Value::BulkString(next), Value::Array(names)] = &parts[..] else {
            return Err(unexpected(&reply));
        };
        for name in names {
            let Value::BulkString(name) = name else { return Err(unexpected(&reply)) };
            found.push(name.clone());
        }
        cursor = String::from_utf8_lossy(next).into_owned();
        if cursor == "0" {
            return Ok(found);
        }
    }
}

impl Database for Redis {
    fn name(&self) -> &'static str {
        "Redis"
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn claims(&self) -> &[Claim] {
        &self.claims
    }

    fn default_isolation(&self) -> &str {
        &self.claims[0].isolation
    }

    fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    fn supports(&self, kind: RequestKind) -> bool {
        !kind.is_by_condition()
    }

    fn style(&self) -> Style {
        self.style
    }

    fn prepare(&mut self, needs: &Needs) -> Result<(), Failure> {
        let mut connection = self.primary()?;
        let owner = Self::owner(&needs.prefix);
        let taken = connection.call(&["SETNX", &owner, "isolde"]).map_err(|error| lost(&error))?;
        match taken {
            Value::Int(1) => {}
            Value::Int(_) => {
                return Err(Failure::Refused(format!("keys {}* exist already", needs.prefix)));
            }
            other => return Err(unexpected(&other)),
        }
        if keys(&mut connection, &needs.prefix)?.len() > 1 {
            connection.call(&["DEL", &owner]).map_err(|error| lost(&error))?;
            return Err(Failure::Refused(format!("keys {}* exist already", needs.prefix)));
        }
        self.prefix.clone_from(&needs.prefix);
        Ok(())
    }

    fn connect(&self, endpoint: usize, _isolation: &str) -> Result<Box<dyn Session>, Failure> {
        let connection = self.connection(endpoint)?;
        Ok(match self.style {
            Style::Interactive => Box::new(WatchSession::new(connection, &self.prefix)),
            Style::Whole => Box::new(ScriptSession::new(connection, &self.prefix)),
        })
    }

    fn reroute(&mut self, endpoint: usize, address: SocketAddr) -> Result<(), Failure> {
        self.servers[endpoint].reroute(address);
        Ok(())
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        if !self.prefix.is_empty() {
            self.remove(&self.prefix)?;
            self.prefix.clear();
        }
        Ok(())
    }

    fn removal(&self) -> Option<String> {
        let prefix = &self.prefix;
        (!prefix.is_empty())
            .then(|| format!("redis-cli --scan --pattern '{prefix}*' | xargs redis-cli del"))
    }

    fn leftovers(&self) -> Result<Vec<String>, Failure> {
        let names = keys(&mut self.primary()?, FIRST)?;
        Ok(prefixes_of(names.iter().map(|name| String::from_utf8_lossy(name))))
    }

    fn discard(&mut self, prefix: &str) -> Result<(), Failure> {
        self.remove(prefix)
    }
}

impl Redis {
    /// Removes all keys with this prefix.
    fn remove(&self, prefix: &str) -> Result<(), Failure> {
        const AT_ONCE: usize = 1000;
        let mut connection = self.primary()?;
        for names in keys(&mut connection, prefix)?.chunks(AT_ONCE) {
            let mut command = vec![b"DEL".to_vec()];
            command.extend_from_slice(names);
            match connection.call(&command).map_err(|error| lost(&error))? {
                Value::Int(_) => {}
                other => return Err(unexpected(&other)),
            }
        }
        Ok(())
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.clean_up();
    }
}

/// The name of a register.
pub(super) fn register(prefix: &str, key: u64) -> String {
    format!("{prefix}r{key}")
}

/// The name of a list.
pub(super) fn list(prefix: &str, key: u64) -> String {
    format!("{prefix}l{key}")
}

/// The value of a key, if it has one. What is no number shows as one that nobody wrote.
pub(super) fn value(reply: &Value) -> Result<Option<u64>, Failure> {
    match reply {
        Value::Nil => Ok(None),
        Value::BulkString(text) => {
            let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            Ok(Some(number.unwrap_or(u64::MAX >> 1)))
        }
        other => Err(unexpected(other)),
    }
}

/// The widest range, in keys: every one of them is named.
pub(super) const RANGE_MAX: u64 = 1 << 12;

/// The keys of a range.
pub(super) fn range(low: u64, high: u64) -> Result<std::ops::RangeInclusive<u64>, Failure> {
    if high.saturating_sub(low) >= RANGE_MAX {
        return Err(Failure::Refused(format!(
            "expected a range of at most {RANGE_MAX} keys, found {low} to {high}"
        )));
    }
    Ok(low..=high)
}
