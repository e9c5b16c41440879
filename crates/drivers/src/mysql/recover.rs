//! The order of versions as MariaDB and MySQL have it: the binary log, row by row.
//!
//! The log has the changed rows of committed transactions in the order of their commits.
//! Of one key that is the order of its versions: a writer keeps its lock on the row until
//! its transaction is in the log, so the next writer comes later. Several versions by one
//! transaction are all there, because each statement logs the rows that it changed.
//!
//! The log is asked for as a replica would ask, but up to its present end instead of for
//! ever. What was read ends with a whole transaction, and the next question begins there.

use super::driver::Server;
use super::errors::described;
use isolde_harness::{Evidence, Failure, Installed, Numbered, Past, Snapshot};
use mysql::binlog::events::{
    Event, EventData, QueryEvent, RotateEvent, RowsEventData, TableMapEvent,
};
use mysql::binlog::{EventType, row::BinlogRow, value::BinlogValue};
use mysql::prelude::Queryable;
use mysql::{BinlogDumpFlags, BinlogRequest, Conn, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Variables that decide what the log has, what they must be, and what to do about it. The
/// last one matters to clusters alone.
const REQUIRED: &[(&str, &[&str], &str)] = &[
    ("log_bin", &["ON", "1"], "start the server with --log-bin"),
    (
        "binlog_format",
        &["ROW"],
        "the log has statements and not the rows that they changed; SET GLOBAL binlog_format = ROW",
    ),
    (
        "binlog_row_image",
        &["FULL", "NOBLOB"],
        "the log has parts of rows; SET GLOBAL binlog_row_image = FULL",
    ),
    ("log_bin_compress", &["OFF", "0", ""], "SET GLOBAL log_bin_compress = OFF"),
    (
        "binlog_transaction_compression",
        &["OFF", "0", ""],
        "SET GLOBAL binlog_transaction_compression = OFF",
    ),
    (
        "log_slave_updates",
        &["ON", "1"],
        "the log of a node lacks what others wrote; start the nodes with --log-slave-updates",
    ),
];

/// Reads the changes of one table from the binary log.
pub(super) struct BinaryLog {
    server: Server,
    /// How the server tells us from its replicas.
    replica_id: u32,
    database: String,
    /// Which tables are meant.
    past: Past,
    file: String,
    /// The end of the last transaction that was read.
    position: u64,
    /// Transactions by the ends of their entries, until they are asked for.
    numbers: Vec<Numbered>,
}

impl BinaryLog {
    /// Begins to read the changes of the registers, from now on.
    pub(super) fn begin(server: &Server, registers: &str) -> Result<BinaryLog, Failure> {
        if registers.is_empty() {
            return Err(Failure::Refused(
                "this workload has no registers; the order of lists shows in what is read of them, \
                 so leave --white-box out"
                    .to_owned(),
            ));
        }
        let mut conn = server.connect()?;
        check_variables(&mut conn)?;
        let database: Option<String> =
            conn.query_first("SELECT DATABASE()").map_err(|error| refusal(&error))?;
        let database = database.unwrap_or_default();
        let (file, position) = present_end(&mut conn, &database)?;
        let mut log = BinaryLog {
            server: server.clone(),
            replica_id: replica_id(registers),
            database,
            past: Past { table: Some(registers.to_owned()), ..Past::default() },
            file,
            position,
            numbers: Vec::new(),
        };
        // What a replica needs shows when one asks as a replica.
        log.collect(&mut Vec::new())?;
        Ok(log)
    }

    fn events(&self) -> Result<mysql::BinlogStream, mysql::Error> {
        let mut conn = match self.server.connect() {
            Ok(conn) => conn,
            Err(failure) => return Err(std::io::Error::other(failure.reason()).into()),
        };
        // MariaDB sends events of its own only to who says that they are understood; for
        // others it would rewrite the log.
        conn.query_drop("SET @mariadb_slave_capability = 4")?;
        let request = BinlogRequest::new(self.replica_id)
            .with_filename(self.file.as_bytes())
            .with_pos(self.position)
            .with_flags(BinlogDumpFlags::BINLOG_DUMP_NON_BLOCK);
        conn.get_binlog_stream(request)
    }
}

/// A place in the log as one number: files are numbered, places in them have 32 bits.
fn place_in_log(file: &str, position: u64) -> Option<u64> {
    let (_, number) = file.rsplit_once('.')?;
    let number: u64 = number.parse().ok()?;
    (number < 1 << 20 && position < 1 << 40).then_some(number << 40 | position)
}

/// What a transaction sees that has begun with a consistent snapshot: everything whose entry
/// in the log ends where the snapshot stands, or before. MariaDB alone tells.
pub(super) fn snapshot(conn: &mut Conn) -> Result<Option<Snapshot>, mysql::Error> {
    let rows: Vec<(String, String)> = conn.query("SHOW SESSION STATUS LIKE 'binlog_snapshot_%'")?;
    let of = |name: &str| {
        let row = rows.iter().find(|row| row.0.eq_ignore_ascii_case(name));
        row.map(|row| row.1.as_str())
    };
    let place = of("binlog_snapshot_file").zip(of("binlog_snapshot_position"));
    let place = place.and_then(|(file, at)| place_in_log(file, at.parse().ok()?));
    Ok(place.map(|place| Snapshot { below: place + 1, except: Vec::new() }))
}

/// Refuses what would leave something out of the log.
fn check_variables(conn: &mut Conn) -> Result<(), Failure> {
    let found: Vec<(String, String)> =
        conn.query("SHOW GLOBAL VARIABLES").map_err(|error| refusal(&error))?;
    let found: HashMap<String, String> = found.into_iter().collect();
    let is_cluster = found.get("wsrep_on").is_some_and(|value| value == "ON");
    let required = if is_cluster { REQUIRED } else { &REQUIRED[..REQUIRED.len() - 1] };
    for (name, accepted, advice) in required {
        let value = found.get(*name).map_or("", String::as_str);
        if !accepted.iter().any(|accepted| accepted.eq_ignore_ascii_case(value)) {
            return Err(Failure::Refused(format!(
                "expected {name} to be {} for --white-box, found {value}: {advice}",
                accepted[0]
            )));
        }
    }
    Ok(())
}

/// File and position of the end of the log, if the log has this database.
fn present_end(conn: &mut Conn, database: &str) -> Result<(String, u64), Failure> {
    // The one name is that of newer MySQL, the other one everybody else's.
    let status = match conn.query::<mysql::Row, _>("SHOW MASTER STATUS") {
        Err(mysql::Error::MySqlError(error)) if error.code == 1064 => {
            conn.query("SHOW BINARY LOG STATUS")
        }
        other => other,
    };
    let rows = status.map_err(|error| refusal(&error))?;
    let row = rows.into_iter().next().ok_or_else(|| {
        Failure::Refused(
            "expected a binary log, found none: start the server with --log-bin".into(),
        )
    })?;
    let text = |place: usize| row.get::<String, _>(place).unwrap_or_default();
    let names = |list: &str, name: &str| list.split(',').any(|entry| entry == name);
    let (only, without) = (text(2), text(3));
    if (!only.is_empty() && !names(&only, database)) || names(&without, database) {
        return Err(Failure::Refused(format!(
            "expected the binary log to have the database {database}, found that binlog_do_db or \
             binlog_ignore_db leave it out; use a database that is logged"
        )));
    }
    let position = row.get::<u64, _>(1).unwrap_or(4);
    Ok((text(0), position))
}

/// A number that no replica should have: large, and different for each run.
fn replica_id(name: &str) -> u32 {
    let mixed = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    mixed | 1 << 30
}

/// What is missing, and how to get it.
fn refusal(error: &mysql::Error) -> Failure {
    let code = if let mysql::Error::MySqlError(error) = error { error.code } else { 0 };
    let advice = match code {
        1045 | 1227 => {
            "; the user needs two privileges: GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* \
             TO name (MariaDB calls the second one BINLOG MONITOR)"
        }
        1236 | 1373 => {
            "; a part of the binary log was removed before it was read: do not purge it during \
             the run, and let binlog_expire_logs_seconds be longer"
        }
        1381 => "; start the server with --log-bin",
        _ => "",
    };
    Failure::Refused(format!("cannot read the binary log: {}{advice}", described(error)))
}

fn damaged(error: &std::io::Error) -> Failure {
    Failure::Refused(format!("cannot read the binary log: {error}"))
}

/// The versions of the past that the binary logs still have.
pub(super) fn recall(server: &Server, past: &Past) -> Result<Vec<Installed>, Failure> {
    let mut conn = server.connect()?;
    check_variables(&mut conn)?;
    let database: Option<String> =
        conn.query_first("SELECT DATABASE()").map_err(|error| refusal(&error))?;
    let oldest: Option<mysql::Row> =
        conn.query_first("SHOW BINARY LOGS").map_err(|error| refusal(&error))?;
    let mut log = BinaryLog {
        server: server.clone(),
        replica_id: replica_id("recall"),
        database: database.unwrap_or_default(),
        past: past.clone(),
        file: oldest.and_then(|row| row.get(0)).unwrap_or_default(),
        // Where the first event of a file is.
        position: 4,
        numbers: Vec::new(),
    };
    let mut tables: BTreeMap<String, Vec<Installed>> = BTreeMap::new();
    log.read(&mut |table, installed| {
        tables.entry(table.to_owned()).or_default().push(installed);
    })?;
    past.choose(tables)
}

impl Evidence for BinaryLog {
    fn collect(&mut self, found: &mut Vec<Installed>) -> Result<(), Failure> {
        self.read(&mut |_, installed| found.push(installed))
    }

    fn numbers(&mut self) -> Vec<Numbered> {
        std::mem::take(&mut self.numbers)
    }
}

/// Takes a version and the table it is of.
type Take<'a> = dyn FnMut(&str, Installed) + 'a;

impl BinaryLog {
    /// Reads everything up to the present end of the log.
    fn read(&mut self, take: &mut Take<'_>) -> Result<(), Failure> {
        let mut stream = self.events().map_err(|error| refusal(&error))?;
        let mut tables = HashMap::new();
        let mut txn = Vec::new();
        // The first event repeats the file that was asked for, in a form that only the
        // second one describes.
        stream.next().transpose().map_err(|error| refusal(&error))?;
        for event in stream {
            let event = event.map_err(|error| refusal(&error))?;
            self.event(&event, &mut tables, &mut txn, take)?;
        }
        Ok(())
    }

    /// Adds the rows of an event to their transaction, and that to what was found if the
    /// event ends it.
    fn event(
        &mut self,
        event: &Event,
        tables: &mut Tables,
        txn: &mut Vec<(Arc<str>, Installed)>,
        take: &mut Take<'_>,
    ) -> Result<(), Failure> {
        let header = event.header();
        // Events that only one of the servers has say nothing about rows.
        let Ok(kind) = header.event_type() else { return Ok(()) };
        let is_end = match kind {
            EventType::ROTATE_EVENT => {
                let rotate: RotateEvent<'_> =
                    event.read_event().map_err(|error| damaged(&error))?;
                self.file = rotate.name().into_owned();
                self.position = rotate.position();
                false
            }
            EventType::XID_EVENT => true,
            EventType::QUERY_EVENT => {
                let query: QueryEvent<'_> = event.read_event().map_err(|error| damaged(&error))?;
                match query.query().trim().to_ascii_uppercase().as_str() {
                    "COMMIT" => true,
                    "ROLLBACK" => {
                        txn.clear();
                        true
                    }
                    _ => false,
                }
            }
            _ => {
                self.rows(event, kind, tables, txn)?;
                false
            }
        };
        if is_end {
            let first = txn.iter().find_map(|(_, it)| it.value.map(|value| (it.key, value)));
            if let (Some((key, value)), Some(number)) =
                (first, place_in_log(&self.file, header.log_pos().into()))
            {
                self.numbers.push(Numbered { number, key, value });
            }
            txn.drain(..).for_each(|(table, installed)| take(&table, installed));
            self.position = u64::from(header.log_pos());
        }
        Ok(())
    }

    fn rows(
        &self,
        event: &Event,
        kind: EventType,
        tables: &mut Tables,
        txn: &mut Vec<(Arc<str>, Installed)>,
    ) -> Result<(), Failure> {
        let is_about_rows = matches!(
            kind,
            EventType::TABLE_MAP_EVENT
                | EventType::WRITE_ROWS_EVENT
                | EventType::UPDATE_ROWS_EVENT
                | EventType::DELETE_ROWS_EVENT
                | EventType::WRITE_ROWS_EVENT_V1
                | EventType::UPDATE_ROWS_EVENT_V1
                | EventType::DELETE_ROWS_EVENT_V1
        );
        if !is_about_rows {
            return Ok(());
        }
        match event.read_data().map_err(|error| damaged(&error))? {
            Some(EventData::TableMapEvent(table)) => {
                let name = table.table_name();
                if table.database_name() == self.database && self.past.is_wanted(&name) {
                    let name = Arc::from(name);
                    tables.insert(table.table_id(), (name, table.into_owned()));
                }
            }
            Some(EventData::RowsEvent(rows)) => {
                if let Some((name, table)) = tables.get(&rows.table_id()) {
                    let versions = installed(&rows, table)?;
                    txn.extend(versions.into_iter().map(|it| (Arc::clone(name), it)));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Tables that are meant and their names, by the numbers that rows name them by.
type Tables = HashMap<u64, (Arc<str>, TableMapEvent<'static>)>;

/// The versions that these rows are.
fn installed(
    rows: &RowsEventData<'_>,
    table: &TableMapEvent<'_>,
) -> Result<Vec<Installed>, Failure> {
    let mut versions = Vec::new();
    for row in rows.rows(table) {
        let (before, after) = row.map_err(|error| damaged(&error))?;
        let version = match (&before, &after) {
            (_, Some(after)) => number(after, 0)
                .zip(number(after, 1))
                .map(|(key, value)| Installed { key, value: Some(value), number: None }),
            (Some(before), None) => {
                number(before, 0).map(|key| Installed { key, value: None, number: None })
            }
            (None, None) => None,
        };
        versions.push(version.ok_or_else(|| {
            Failure::Refused("expected a row of key and value in the binary log".to_owned())
        })?);
    }
    Ok(versions)
}

fn number(row: &BinlogRow, column: usize) -> Option<u64> {
    match row.as_ref(column)? {
        BinlogValue::Value(Value::Int(number)) => u64::try_from(*number).ok(),
        BinlogValue::Value(Value::UInt(number)) => Some(*number),
        _ => None,
    }
}
