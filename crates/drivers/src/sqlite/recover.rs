//! The order of versions as SQLite has it: triggers that number every version.
//!
//! There is one writer at a time, so the numbers that a table gives out while it is
//! written are the order of versions, also of several by one transaction. What is rolled
//! back takes its numbers along. The triggers go with the table of registers, the table of
//! versions when the run is over.

use isolde_harness::{Evidence, Failure, Identity, Installed, Snapshot};
use rusqlite::{Connection, params};

/// Versions that are fetched at once.
const VERSIONS_MAX: i64 = 20_000;

/// Reads the numbered versions.
pub(super) struct Numbered {
    connection: Connection,
    versions: String,
    /// The last one that was read.
    last: i64,
}

impl Numbered {
    /// Begins to number the versions of the table of registers.
    pub(super) fn begin(connection: Connection, registers: &str) -> Result<Numbered, Failure> {
        if registers.is_empty() {
            return Err(Failure::Refused(
                "this workload has no registers; the order of lists shows in what is read of them, \
                 so leave --white-box out"
                    .to_owned(),
            ));
        }
        let versions = format!("{registers}_versions");
        let trigger = |event: &str, row: &str| {
            format!(
                "CREATE TRIGGER {versions}_{event} AFTER {event} ON {registers} BEGIN \
                 INSERT INTO {versions} (key, value) VALUES ({row}); END;"
            )
        };
        let text = format!(
            "BEGIN; CREATE TABLE {versions} \
             (place INTEGER PRIMARY KEY AUTOINCREMENT, key INTEGER NOT NULL, value INTEGER);\
             {}{}{}COMMIT",
            trigger("INSERT", "new.key, new.value"),
            trigger("UPDATE", "new.key, new.value"),
            trigger("DELETE", "old.key, NULL"),
        );
        connection.execute_batch(&text).map_err(|error| {
            Failure::Refused(format!("cannot create triggers for --white-box: {error}"))
        })?;
        Ok(Numbered { connection, versions, last: 0 })
    }
}

impl Evidence for Numbered {
    fn collect(&mut self, found: &mut Vec<Installed>) -> Result<(), Failure> {
        let lost = |error: rusqlite::Error| Failure::Lost(error.to_string());
        let text = format!(
            "SELECT place, key, value FROM {} WHERE place > ?1 ORDER BY place LIMIT ?2",
            self.versions
        );
        let mut statement = self.connection.prepare_cached(&text).map_err(lost)?;
        let mut rows = statement.query(params![self.last, VERSIONS_MAX]).map_err(lost)?;
        while let Some(row) = rows.next().map_err(lost)? {
            self.last = row.get(0).map_err(lost)?;
            let key: i64 = row.get(1).map_err(lost)?;
            let value: Option<i64> = row.get(2).map_err(lost)?;
            let value = value.map(i64::cast_unsigned);
            let number = value.is_none().then_some(self.last.cast_unsigned());
            found.push(Installed { key: key.cast_unsigned(), value, number });
        }
        Ok(())
    }
}

/// Tells the snapshot of a transaction by the numbers of versions. A transaction's own number
/// is that of its last version.
pub(super) struct Places {
    last: String,
    /// The last version that the transaction saw of others.
    pub(super) before: Option<u64>,
}

impl Places {
    pub(super) fn new(registers: &str) -> Places {
        let last = format!("SELECT coalesce(max(place), 0) FROM {registers}_versions");
        Places { last, before: None }
    }

    fn last(&self, connection: &Connection) -> rusqlite::Result<u64> {
        connection.prepare_cached(&self.last)?.query_row([], |row| row.get(0))
    }

    /// Looks before the first request: the snapshot is taken with it.
    pub(super) fn look(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if self.before.is_none() {
            self.before = Some(self.last(connection)?);
        }
        Ok(())
    }

    /// What the open transaction is, and what it saw. Nobody else has written between its
    /// own versions.
    pub(super) fn identity(&self, connection: &Connection) -> rusqlite::Result<Identity> {
        let Some(before) = self.before else { return Ok(Identity::default()) };
        let last = self.last(connection)?;
        Ok(Identity {
            number: (last > before).then_some(last),
            snapshot: Some(Snapshot { below: before + 1, except: Vec::new() }),
        })
    }
}

impl Drop for Numbered {
    fn drop(&mut self) {
        // Triggers first: writers of the registers would miss the table.
        for event in ["INSERT", "UPDATE", "DELETE"] {
            let text = format!("DROP TRIGGER IF EXISTS {}_{event}", self.versions);
            let _ = self.connection.execute_batch(&text);
        }
        let _ = self.connection.execute_batch(&format!("DROP TABLE IF EXISTS {}", self.versions));
    }
}
