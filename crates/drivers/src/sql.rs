//! What the drivers of SQL servers have in common: tables, requests, stages of a transaction.

use isolde_harness::{Failure, Filter, Needs, RequestKind};

/// What can be asked for. Kinds that are added later are no part of it until a driver
/// has a statement for them.
pub(crate) const SUPPORTED: &[RequestKind] = &[
    RequestKind::Read,
    RequestKind::Write,
    RequestKind::ReadList,
    RequestKind::Append,
    RequestKind::Insert,
    RequestKind::Delete,
    RequestKind::Range,
    RequestKind::CompareAndSet,
    RequestKind::UpdateRange,
    RequestKind::Select,
    RequestKind::Aggregate,
    RequestKind::UpdateWhere,
    RequestKind::DeleteWhere,
];

/// Which of the statements for conditions is that of a filter.
pub(crate) const fn place_of(filter: Filter) -> usize {
    match filter {
        Filter::Keys { .. } => 0,
        Filter::Values { .. } => 1,
        Filter::Remainder { .. } => 2,
    }
}

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Anything before the commit.
    Statement,
    /// The commit.
    Commit,
}

impl Stage {
    /// What a connection that broke at this stage means for the transaction.
    pub(crate) fn disconnected(self, text: String) -> Failure {
        match self {
            Stage::Statement => Failure::Lost(text),
            Stage::Commit => Failure::Unknown(text),
        }
    }
}

/// Names of the tables; empty if there are none.
#[derive(Clone, Default)]
pub(crate) struct Tables {
    pub(crate) registers: String,
    pub(crate) lists: String,
    /// Whether conditions on values are asked for.
    pub(crate) by_condition: bool,
}

impl Tables {
    /// Takes note of what is needed beside tables.
    pub(crate) fn note(&mut self, needs: &Needs) {
        self.by_condition = needs.requests.iter().any(|kind| kind.is_by_condition());
    }

    /// Makes the tables that are needed, of these columns, with what executes a statement.
    #[cfg(any(feature = "sqlite", feature = "duckdb"))]
    pub(crate) fn create<E: std::fmt::Display>(
        &mut self,
        needs: &Needs,
        (registers, lists): (&str, &str),
        execute: impl Fn(&str) -> Result<(), E>,
    ) -> Result<(), Failure> {
        let create = |name: &str, columns: &str| {
            execute(&format!("CREATE TABLE {name} ({columns})"))
                .map_err(|error| Failure::Refused(format!("cannot create a table: {error}")))
        };
        if needs.registers() {
            let name = format!("{}registers", needs.prefix);
            create(&name, registers)?;
            self.registers = name;
        }
        if needs.lists() {
            let name = format!("{}lists", needs.prefix);
            create(&name, lists)?;
            self.lists = name;
        }
        Ok(())
    }

    /// The statement that removes them.
    pub(crate) fn removal(&self) -> Option<String> {
        let names: Vec<&str> = self.names().map(String::as_str).collect();
        (!names.is_empty()).then(|| format!("DROP TABLE IF EXISTS {}", names.join(", ")))
    }

    /// Removes them, one by one, with what executes a statement. Those that cannot be removed
    /// are still there.
    pub(crate) fn remove(
        &mut self,
        mut execute: impl FnMut(&str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for table in [&mut self.registers, &mut self.lists] {
            if table.is_empty() {
                continue;
            }
            execute(&format!("DROP TABLE IF EXISTS {table}")).map_err(|failure| match failure {
                Failure::Refused(text) => Failure::Refused(format!("cannot drop {table}: {text}")),
                transient => transient,
            })?;
            table.clear();
        }
        Ok(())
    }

    /// Those that there are.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        [&self.registers, &self.lists].into_iter().filter(|name| !name.is_empty())
    }
}

/// The elements of a list that is stored as text. Only an append writes there, so what is no
/// number shows as a value that nobody appended.
#[cfg(any(feature = "sqlite", feature = "duckdb", feature = "mysql"))]
pub(crate) fn elements(text: &str) -> Vec<u64> {
    text.split(',')
        .filter(|element| !element.is_empty())
        .map(|element| element.parse().unwrap_or(u64::MAX >> 1))
        .collect()
}

/// What sessions of embedded databases ask, as text: the names of the tables are part of it.
#[cfg(any(feature = "sqlite", feature = "duckdb"))]
pub(crate) struct Texts {
    pub(crate) registers: String,
    pub(crate) read: String,
    pub(crate) write: String,
    pub(crate) insert: String,
    pub(crate) delete: String,
    pub(crate) range: String,
    /// Of the new value, the key and the old value.
    pub(crate) swap: String,
    /// Of the first value, and the lowest key twice, and the highest.
    pub(crate) update_range: String,
    pub(crate) read_list: String,
    pub(crate) append: String,
}

#[cfg(any(feature = "sqlite", feature = "duckdb"))]
impl Texts {
    pub(crate) fn new(tables: &Tables) -> Texts {
        let Tables { registers, lists, .. } = tables;
        Texts {
            registers: registers.clone(),
            read: format!("SELECT value FROM {registers} WHERE key = ?"),
            write: format!(
                "INSERT INTO {registers} (key, value) VALUES (?, ?) \
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value"
            ),
            insert: format!(
                "INSERT INTO {registers} (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING"
            ),
            delete: format!("DELETE FROM {registers} WHERE key = ?"),
            range: format!("SELECT key, value FROM {registers} WHERE key BETWEEN ? AND ?"),
            swap: format!("UPDATE {registers} SET value = ? WHERE key = ? AND value = ?"),
            update_range: format!(
                "UPDATE {registers} SET value = ? + (key - ?) WHERE key BETWEEN ? AND ? \
                 RETURNING key, value"
            ),
            read_list: format!("SELECT elements FROM {lists} WHERE key = ?"),
            append: format!(
                "INSERT INTO {lists} (key, elements) VALUES (?, ?) \
                 ON CONFLICT (key) DO UPDATE SET elements = elements || ',' || excluded.elements"
            ),
        }
    }

    /// What a filter means, of its two numbers.
    pub(crate) fn condition(filter: Filter) -> &'static str {
        match filter {
            Filter::Keys { .. } => "key BETWEEN ? AND ?",
            Filter::Values { .. } => "value BETWEEN ? AND ?",
            Filter::Remainder { .. } => "value % ? = ?",
        }
    }
}
