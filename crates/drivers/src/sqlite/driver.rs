//! Driving SQLite: every session is a connection to one file.
//!
//! The file has a write-ahead log, so that readers and the one writer run side by side:
//! a transaction's snapshot is the last commit when it first reads, and a writer whose
//! snapshot is no longer the last is refused with `BUSY_SNAPSHOT`. A writer that waits
//! for another gives up after a while with `BUSY`. Both leave nothing behind.
//!
//! Without a path a file in the folder for temporary files is used, and removed.

use super::errors::failure;
use super::recover::{Numbered, Places};
use super::temporary::{self, Temporary};
use crate::sql::{Tables, Texts, elements};
use crate::{Stop, Target};
use isolde_harness::{
    Access, Address, Answer, BLOCK, Claim, Database, Endpoint, Evidence, Failure, Filter, Function,
    Identity, Needs, Request, RequestKind, Session, SnapshotPoint, prefix_of, prefixes_of,
};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How SQLite is reached.
pub(crate) const TARGET: Target = Target {
    schemes: &["sqlite"],
    title: "SQLite, compiled in; a temporary file unless one is given",
    example: "sqlite:/path/to/file.db",
    open,
};

/// How long a writer waits for another.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

fn open(address: &Address, _: &Stop) -> Result<Box<dyn Database>, Failure> {
    if !address.hosts.is_empty() {
        return Err(Failure::Refused(format!(
            "expected the path of a file, as in {}, found a server's address",
            TARGET.example
        )));
    }
    let temporary = address.path.is_empty().then(Temporary::new);
    let (path, is_ours) = if let Some(temporary) = &temporary {
        (temporary.path.clone(), true)
    } else {
        let path = PathBuf::from(&address.path);
        let is_ours = !path.exists();
        (path, is_ours)
    };
    let database = Sqlite {
        endpoints: vec![Endpoint { name: path.display().to_string(), access: Access::ReadWrite }],
        path,
        is_ours,
        claims: vec![Claim::new(
            "serializable",
            &["strict-serializable"],
            SnapshotPoint::FirstRequest,
        )],
        tables: Tables::default(),
        _temporary: temporary,
        is_asked: AtomicBool::new(false),
    };
    // A path that cannot be opened, or is no database, shows now.
    let connection = database.connection()?;
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(|error| database.unusable(&error))?;
    if mode != "wal" {
        return Err(Failure::Refused(format!(
            "expected a file that can have a write-ahead log, found journal mode {mode}"
        )));
    }
    Ok(Box::new(database))
}

struct Sqlite {
    path: PathBuf,
    /// Whether the file was created here, and is removed in the end.
    is_ours: bool,
    endpoints: Vec<Endpoint>,
    claims: Vec<Claim>,
    tables: Tables,
    /// Keeps others from taking the file for a leftover, to the end.
    _temporary: Option<Temporary>,
    /// Whether evidence is asked for: then sessions tell their snapshots.
    is_asked: AtomicBool,
}

impl Sqlite {
    fn connection(&self) -> Result<Connection, Failure> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)
            .map_err(|error| self.unusable(&error))?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(|error| self.unusable(&error))?;
        // What survives a power failure is not what is tested.
        connection
            .pragma_update(None, "synchronous", "off")
            .map_err(|error| self.unusable(&error))?;
        Ok(connection)
    }

    /// The tables of the file.
    fn names(&self) -> Result<Vec<String>, Failure> {
        let connection = self.connection()?;
        let names = || {
            let asked = "SELECT name FROM sqlite_master WHERE type = 'table'";
            let mut names = connection.prepare(asked)?;
            names.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()
        };
        names().map_err(|error| self.unusable(&error))
    }

    fn unusable(&self, error: &rusqlite::Error) -> Failure {
        Failure::Refused(format!("cannot use {}: {error}", self.path.display()))
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        let _ = self.clean_up();
    }
}

impl Database for Sqlite {
    fn name(&self) -> &'static str {
        "SQLite"
    }

    fn version(&self) -> String {
        rusqlite::version().to_owned()
    }

    fn claims(&self) -> &[Claim] {
        &self.claims
    }

    fn default_isolation(&self) -> &'static str {
        "serializable"
    }

    fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    fn supports(&self, _kind: RequestKind) -> bool {
        true
    }

    fn prepare(&mut self, needs: &Needs) -> Result<(), Failure> {
        let connection = self.connection()?;
        let columns = (
            "key INTEGER PRIMARY KEY, value INTEGER NOT NULL",
            "key INTEGER PRIMARY KEY, elements TEXT NOT NULL",
        );
        self.tables.create(needs, columns, |text| connection.execute_batch(text))
    }

    fn connect(&self, _endpoint: usize, _isolation: &str) -> Result<Box<dyn Session>, Failure> {
        let connection = self.connection()?;
        connection.set_prepared_statement_cache_capacity(32);
        let is_asked = self.is_asked.load(Ordering::Relaxed);
        let places = is_asked.then(|| Places::new(&self.tables.registers));
        let statements = Texts::new(&self.tables);
        Ok(Box::new(SqliteSession { connection, statements, places }))
    }

    fn evidence(&self) -> Result<Box<dyn Evidence>, Failure> {
        let numbered = Numbered::begin(self.connection()?, &self.tables.registers)?;
        self.is_asked.store(true, Ordering::Relaxed);
        Ok(Box::new(numbered))
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        if self.is_ours {
            temporary::remove(&self.path);
            self.tables = Tables::default();
            return Ok(());
        }
        if self.tables.names().next().is_none() {
            return Ok(());
        }
        let connection = self.connection()?;
        self.tables.remove(|statement| {
            let refused = |error: rusqlite::Error| Failure::Refused(error.to_string());
            connection.execute_batch(statement).map_err(refused)
        })
    }

    fn removal(&self) -> Option<String> {
        let mut names = self.tables.names().peekable();
        names.peek()?;
        if self.is_ours {
            return Some(temporary::removal(&self.path));
        }
        let statements = names.map(|name| format!("DROP TABLE IF EXISTS {name}"));
        Some(statements.collect::<Vec<_>>().join("; "))
    }

    fn leftovers(&self) -> Result<Vec<String>, Failure> {
        Ok(prefixes_of(self.names()?))
    }

    fn discard(&mut self, prefix: &str) -> Result<(), Failure> {
        let connection = self.connection()?;
        for name in self.names()?.iter().filter(|name| prefix_of(name) == Some(prefix)) {
            let dropped = connection.execute_batch(&format!("DROP TABLE IF EXISTS {name}"));
            dropped.map_err(|error| self.unusable(&error))?;
        }
        Ok(())
    }
}

struct SqliteSession {
    connection: Connection,
    statements: Texts,
    /// What is told about snapshots, if anything is.
    places: Option<Places>,
}

impl SqliteSession {
    /// The failure, with the transaction rolled back if there still is one.
    fn failed(&self, error: &rusqlite::Error) -> Failure {
        if !self.connection.is_autocommit() {
            // If this fails too, the next begin does and ends the run.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        failure(error)
    }

    fn answer(&self, request: &Request) -> Result<Answer, rusqlite::Error> {
        let Self { connection, statements, .. } = self;
        Ok(match *request {
            Request::Read { key } => {
                let mut read = connection.prepare_cached(&statements.read)?;
                Answer::Value(read.query_row([key], |row| row.get(0)).optional()?)
            }
            Request::Write { key, value } => {
                connection.prepare_cached(&statements.write)?.execute([key, value])?;
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
                let mut insert = connection.prepare_cached(&statements.insert)?;
                Answer::Applied(insert.execute([key, value])? > 0)
            }
            Request::Delete { key } => {
                let mut delete = connection.prepare_cached(&statements.delete)?;
                Answer::Applied(delete.execute([key])? > 0)
            }
            Request::CompareAndSet { key, expected: Some(expected), value } => {
                let mut swap = connection.prepare_cached(&statements.swap)?;
                Answer::Applied(swap.execute([value, key, expected])? > 0)
            }
            Request::Range { low, high } => {
                let mut range = connection.prepare_cached(&statements.range)?;
                let rows = range.query_map([low, high], |row| Ok((row.get(0)?, row.get(1)?)))?;
                Answer::Rows(rows.collect::<Result<_, _>>()?)
            }
            Request::UpdateRange { low, high, first } => {
                let mut update = connection.prepare_cached(&statements.update_range)?;
                let rows = update
                    .query_map([first, low, low, high], |row| Ok((row.get(0)?, row.get(1)?)))?;
                Answer::Rows(rows.collect::<Result<_, _>>()?)
            }
            Request::Select { filter }
            | Request::Aggregate { filter, .. }
            | Request::UpdateWhere { filter, .. }
            | Request::DeleteWhere { filter } => self.by_condition(request, filter)?,
            ref other => {
                let message = other.kind().name().to_owned();
                return Err(rusqlite::Error::InvalidParameterName(message));
            }
        })
    }
}

impl SqliteSession {
    /// Answers a request by condition.
    fn by_condition(&self, request: &Request, filter: Filter) -> Result<Answer, rusqlite::Error> {
        let table = &self.statements.registers;
        let condition = Texts::condition(filter);
        let text = match request {
            Request::Aggregate { function, .. } => {
                let result = match function {
                    Function::Count => "count(*)",
                    Function::Min => "min(value)",
                    Function::Max => "max(value)",
                    Function::Sum => "sum(value)",
                };
                format!("SELECT {result} FROM {table} WHERE {condition}")
            }
            Request::UpdateWhere { first, .. } => format!(
                "UPDATE {table} SET value = {first} + key % {BLOCK} WHERE {condition} \
                 RETURNING key, value"
            ),
            Request::DeleteWhere { .. } => {
                format!("DELETE FROM {table} WHERE {condition} RETURNING key, value")
            }
            _ => format!("SELECT key, value FROM {table} WHERE {condition}"),
        };
        let numbers = filter.numbers();
        if let Request::UpdateWhere { .. } = request {
            // Its text is another one each time.
            return rows(&mut self.connection.prepare(&text)?, numbers);
        }
        let mut statement = self.connection.prepare_cached(&text)?;
        if let Request::Aggregate { .. } = request {
            return Ok(Answer::Value(statement.query_row(numbers, |row| row.get(0))?));
        }
        rows(&mut statement, numbers)
    }
}

fn rows(
    statement: &mut rusqlite::Statement<'_>,
    numbers: [u64; 2],
) -> Result<Answer, rusqlite::Error> {
    let rows = statement.query_map(numbers, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(Answer::Rows(rows.collect::<Result<_, _>>()?))
}

impl Session for SqliteSession {
    fn begin(&mut self, _access: Access) -> Result<(), Failure> {
        if let Some(places) = &mut self.places {
            places.before = None;
        }
        self.connection.execute_batch("BEGIN").map_err(|error| self.failed(&error))
    }

    fn execute(&mut self, request: &Request) -> Result<Answer, Failure> {
        if let Some(places) = &mut self.places
            && let Err(error) = places.look(&self.connection)
        {
            return Err(self.failed(&error));
        }
        self.answer(request).map_err(|error| self.failed(&error))
    }

    fn identity(&mut self) -> Result<Identity, Failure> {
        let Some(places) = &self.places else { return Ok(Identity::default()) };
        places.identity(&self.connection).map_err(|error| self.failed(&error))
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.connection.execute_batch("COMMIT").map_err(|error| self.failed(&error))
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.connection.execute_batch("ROLLBACK").map_err(|error| failure(&error))
    }
}
