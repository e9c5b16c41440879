//! Driving `DuckDB`: every session is a connection to one database in this process.
//!
//! A transaction has a snapshot from its first request on. Who writes a row that
//! another has written since is refused at once; two that insert one key are told
//! apart when the second commits. Nobody waits for anybody.
//!
//! Without a path the database is in memory. A path must be new: the library does not
//! notice a second database of the same process on one file.

use super::errors::failure;
use crate::profiles::LOST_IN_PLACE;
use crate::sql::{SUPPORTED, Tables, Texts, elements};
use crate::{Stop, Target};
use duckdb::{Config, Connection, Error, OptionalExt, params};
use isolde_harness::{
    Access, Address, Answer, BLOCK, Claim, Database, Endpoint, Failure, Filter, Function, Needs,
    Request, RequestKind, Session, SnapshotPoint,
};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// How `DuckDB` is reached.
pub(crate) const TARGET: Target = Target {
    schemes: &["duckdb"],
    title: "DuckDB, in memory unless a new file is given",
    example: "duckdb:/path/to/new/file.db",
    open,
};

fn open(address: &Address, _: &Stop) -> Result<Box<dyn Database>, Failure> {
    if !address.hosts.is_empty() {
        return Err(Failure::Refused(format!(
            "expected the path of a new file, as in {}, found a server's address",
            TARGET.example
        )));
    }
    let path = (!address.path.is_empty()).then(|| PathBuf::from(&address.path));
    if let Some(path) = path.as_ref().filter(|path| path.exists()) {
        return Err(Failure::Refused(format!(
            "expected a path where nothing is yet, found {}",
            path.display()
        )));
    }
    let name = path.as_ref().map_or("memory".to_owned(), |path| path.display().to_string());
    let unusable = |error: Error| Failure::Refused(format!("cannot use {name}: {error}"));
    let connection = connection(path.as_deref()).map_err(unusable)?;
    let version = connection.version().map_err(unusable)?;
    Ok(Box::new(DuckDb {
        endpoints: vec![Endpoint { name, access: Access::ReadWrite }],
        path,
        version,
        claims: vec![
            Claim::new("snapshot", &["snapshot-isolation"], SnapshotPoint::FirstRequest)
                .deviates("snapshot-isolation", LOST_IN_PLACE),
        ],
        tables: Tables::default(),
        first: Mutex::new(Some(connection)),
    }))
}

fn connection(path: Option<&Path>) -> Result<Connection, Error> {
    // Nothing is fetched while a run goes on.
    let config = Config::default().enable_autoload_extension(false)?;
    match path {
        Some(path) => Connection::open_with_flags(path, config),
        None => Connection::open_in_memory_with_flags(config),
    }
}

struct DuckDb {
    /// The file, which was created here and is removed in the end.
    path: Option<PathBuf>,
    version: String,
    endpoints: Vec<Endpoint>,
    claims: Vec<Claim>,
    tables: Tables,
    /// What other connections are made of. `None` once the database is gone.
    first: Mutex<Option<Connection>>,
}

impl DuckDb {
    fn another(&self) -> Result<Connection, Failure> {
        // A connection is not changed by what is done here, so a panic harms nothing.
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let first = first.as_ref().ok_or_else(|| {
            Failure::Refused("expected a database that is open, found one that is closed".into())
        })?;
        first
            .try_clone()
            .map_err(|error| Failure::Refused(format!("cannot connect to DuckDB: {error}")))
    }
}

impl Drop for DuckDb {
    fn drop(&mut self) {
        let _ = self.clean_up();
        *self.first.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let Some(path) = &self.path else { return };
        for suffix in ["", ".wal"] {
            let mut path = path.clone().into_os_string();
            path.push(suffix);
            // What is not there need not be removed.
            let _ = std::fs::remove_file(Path::new(&path));
        }
    }
}

impl Database for DuckDb {
    fn name(&self) -> &'static str {
        "DuckDB"
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn claims(&self) -> &[Claim] {
        &self.claims
    }

    fn default_isolation(&self) -> &'static str {
        "snapshot"
    }

    fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    fn supports(&self, kind: RequestKind) -> bool {
        SUPPORTED.contains(&kind)
    }

    fn prepare(&mut self, needs: &Needs) -> Result<(), Failure> {
        let connection = self.another()?;
        let columns = (
            "key BIGINT PRIMARY KEY, value BIGINT NOT NULL",
            "key BIGINT PRIMARY KEY, elements VARCHAR NOT NULL",
        );
        self.tables.create(needs, columns, |text| connection.execute_batch(text))
    }

    fn connect(&self, _endpoint: usize, _isolation: &str) -> Result<Box<dyn Session>, Failure> {
        let connection = self.another()?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(Box::new(DuckDbSession { connection, statements: Texts::new(&self.tables) }))
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        if self.tables.names().next().is_none() {
            return Ok(());
        }
        let connection = self.another()?;
        self.tables.remove(|statement| {
            let refused = |error: Error| Failure::Refused(error.to_string());
            connection.execute_batch(statement).map_err(refused)
        })
    }

    fn removal(&self) -> Option<String> {
        self.tables.names().next()?;
        let path = self.path.as_ref()?.display().to_string().replace('\'', "'\\''");
        Some(format!("rm -f '{path}' '{path}.wal'"))
    }
}

struct DuckDbSession {
    connection: Connection,
    statements: Texts,
}

impl DuckDbSession {
    /// The failure, with the transaction rolled back.
    fn failed(&self, error: &Error) -> Failure {
        // After a commit that failed there is none any more, and this fails too.
        let _ = self.connection.execute_batch("ROLLBACK");
        failure(error)
    }

    fn rows(&self, statement: &str, parameters: &[u64]) -> Result<Answer, Error> {
        let mut statement = self.connection.prepare_cached(statement)?;
        let parameters = duckdb::params_from_iter(parameters);
        let rows = statement.query_map(parameters, |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Answer::Rows(rows.collect::<Result<_, _>>()?))
    }

    fn changed(&self, statement: &str, parameters: &[u64]) -> Result<bool, Error> {
        let mut statement = self.connection.prepare_cached(statement)?;
        Ok(statement.execute(duckdb::params_from_iter(parameters))? > 0)
    }

    fn answer(&self, request: &Request) -> Result<Answer, Error> {
        let Self { connection, statements } = self;
        Ok(match *request {
            Request::Read { key } => {
                let mut read = connection.prepare_cached(&statements.read)?;
                Answer::Value(read.query_row([key], |row| row.get(0)).optional()?)
            }
            Request::Write { key, value } => {
                self.changed(&statements.write, &[key, value])?;
                Answer::Done
            }
            Request::ReadList { key } => {
                let mut read = connection.prepare_cached(&statements.read_list)?;
                let text: Option<String> = read.query_row([key], |row| row.get(0)).optional()?;
                Answer::List(elements(text.as_deref().unwrap_or("")))
            }
            Request::Append { key, value } => {
                let mut append = connection.prepare_cached(&statements.append)?;
                append.execute(params![key, value.to_string()])?;
                Answer::Done
            }
            Request::Insert { key, value }
            | Request::CompareAndSet { key, expected: None, value } => {
                Answer::Applied(self.changed(&statements.insert, &[key, value])?)
            }
            Request::Delete { key } => Answer::Applied(self.changed(&statements.delete, &[key])?),
            Request::CompareAndSet { key, expected: Some(expected), value } => {
                Answer::Applied(self.changed(&statements.swap, &[value, key, expected])?)
            }
            Request::Range { low, high } => self.rows(&statements.range, &[low, high])?,
            Request::UpdateRange { low, high, first } => {
                self.rows(&statements.update_range, &[first, low, low, high])?
            }
            Request::Select { filter }
            | Request::Aggregate { filter, .. }
            | Request::UpdateWhere { filter, .. }
            | Request::DeleteWhere { filter } => self.by_condition(request, filter)?,
            ref other => {
                return Err(Error::InvalidParameterName(other.kind().name().to_owned()));
            }
        })
    }

    /// Answers a request by condition.
    fn by_condition(&self, request: &Request, filter: Filter) -> Result<Answer, Error> {
        let table = &self.statements.registers;
        let condition = Texts::condition(filter);
        let numbers = filter.numbers();
        match *request {
            Request::Aggregate { function, .. } => {
                let result = match function {
                    Function::Count => "count(*)",
                    Function::Min => "min(value)",
                    Function::Max => "max(value)",
                    Function::Sum => "sum(value)::BIGINT",
                };
                let text = format!("SELECT {result} FROM {table} WHERE {condition}");
                let mut statement = self.connection.prepare_cached(&text)?;
                Ok(Answer::Value(statement.query_row(numbers, |row| row.get(0))?))
            }
            Request::UpdateWhere { first, .. } => {
                let text = format!(
                    "UPDATE {table} SET value = ? + key % {BLOCK} WHERE {condition} \
                     RETURNING key, value"
                );
                self.rows(&text, &[first, numbers[0], numbers[1]])
            }
            Request::DeleteWhere { .. } => {
                let text = format!("DELETE FROM {table} WHERE {condition} RETURNING key, value");
                self.rows(&text, &numbers)
            }
            _ => {
                let text = format!("SELECT key, value FROM {table} WHERE {condition}");
                self.rows(&text, &numbers)
            }
        }
    }
}

impl Session for DuckDbSession {
    fn begin(&mut self, _access: Access) -> Result<(), Failure> {
        self.connection.execute_batch("BEGIN").map_err(|error| self.failed(&error))
    }

    fn execute(&mut self, request: &Request) -> Result<Answer, Failure> {
        self.answer(request).map_err(|error| self.failed(&error))
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.connection.execute_batch("COMMIT").map_err(|error| self.failed(&error))
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.connection.execute_batch("ROLLBACK").map_err(|error| failure(&error))
    }
}
