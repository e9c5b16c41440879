//! What the database says of the tables and functions that statements name.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// A table whose rows are recorded.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of the catalog")]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// What the recording calls it: with its schema, unless that is `public`.
    pub(crate) name: String,
    /// The columns of its primary key, quoted where that is needed; empty if it has none.
    pub(crate) keys: Vec<String>,
    /// Its rows are in partitions: what a write leaves has no system columns.
    pub(crate) is_partitioned: bool,
    /// Writes may do more than they say.
    pub(crate) has_triggers: bool,
    /// Removing a row changes rows that refer to it.
    pub(crate) has_dependents: bool,
    /// So many rows that all of them in one answer are too much.
    pub(crate) is_large: bool,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Table(Arc<Table>),
    /// Something with rows that are not followed.
    Unseen(&'static str),
    /// Nothing that others share: tables of the system or of the session.
    Nothing,
    /// No table.
    Missing,
}

/// What a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Aggregate,
    /// One that somebody wrote: it may do anything.
    Foreign,
    /// One of the system, or no function at all.
    System,
}

/// What one session has learned.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) tables: HashMap<String, Known>,
    pub(crate) functions: HashMap<String, Function>,
    /// The level that transactions have if they ask for none.
    pub(crate) isolation: Option<String>,
    /// The lowest number of a transaction that was not over.
    pub(crate) running: Option<u64>,
}

/// More rows than this are not told one by one behind an aggregate.
const LARGE_ROWS: u32 = 100_000;
/// Between the parts of a list.
const SEPARATOR: char = '\u{1}';

impl Catalog {
    /// What has to be asked before these names are known.
    pub(crate) fn unknown(&self, tables: &[&str], functions: &[&str]) -> Option<String> {
        let is_unknown_table = |name: &&&str| !self.tables.contains_key(**name);
        let tables: Vec<&&str> = tables.iter().filter(is_unknown_table).collect();
        let is_unknown_function = |name: &&&str| !self.functions.contains_key(**name);
        let functions: Vec<&&str> = functions.iter().filter(is_unknown_function).collect();
        let is_known = tables.is_empty() && functions.is_empty();
        (!is_known).then(|| question(&tables, &functions))
    }

    /// Takes an answer to a question.
    pub(crate) fn learn(&mut self, row: &[Option<String>]) {
        let text = |place: usize| row.get(place).and_then(|it| it.as_deref()).unwrap_or_default();
        match text(0) {
            "table" => {
                self.tables.insert(text(1).to_owned(), table(&text));
            }
            "function" => {
                let found = match text(2) {
                    "a" => Function::Aggregate,
                    "f" => Function::Foreign,
                    _ => Function::System,
                };
                self.functions.insert(text(1).to_owned(), found);
            }
            "isolation" => {
                self.isolation = Some(text(1).to_owned());
                self.running = text(2).parse().ok();
            }
            _ => {}
        }
    }

    /// Takes note that a question about these names had no answer.
    pub(crate) fn give_up(&mut self, tables: &[String], functions: &[String]) {
        for name in tables {
            let unknown = Known::Unseen("a table of which the catalog tells nothing");
            self.tables.entry(name.clone()).or_insert(unknown);
        }
        for name in functions {
            self.functions.entry(name.clone()).or_insert(Function::System);
        }
    }

    /// Forgets everything: names may mean something else now.
    pub(crate) fn forget(&mut self) {
        self.tables.clear();
        self.functions.clear();
    }
}

fn table<'a>(text: &impl Fn(usize) -> &'a str) -> Known {
    let flags = text(5);
    let has = |flag: char| flags.contains(flag);
    if has('s') {
        return Known::Nothing;
    }
    match text(2) {
        "r" | "p" if has('x') => Known::Unseen("a table with rules"),
        "r" if has('i') => Known::Unseen("a table with children"),
        "r" | "p" if !has('g') => Known::Unseen("a table that must not be read"),
        kind @ ("r" | "p") => Known::Table(Arc::new(Table {
            name: match text(3) {
                "public" => text(4).to_owned(),
                schema => format!("{schema}.{}", text(4)),
            },
            keys: text(6).split(SEPARATOR).filter(|it| !it.is_empty()).map(str::to_owned).collect(),
            is_partitioned: kind == "p",
            has_triggers: has('t'),
            has_dependents: has('d'),
            is_large: has('l'),
        })),
        "v" => Known::Unseen("a view"),
        "m" => Known::Unseen("a materialized view"),
        "f" => Known::Unseen("a foreign table"),
        "" => Known::Missing,
        _ => Known::Nothing,
    }
}

fn literals(names: &[&&str]) -> String {
    let quoted: Vec<String> =
        names.iter().map(|name| format!("'{}'", name.replace('\'', "''"))).collect();
    format!("ARRAY[{}]::pg_catalog.text[]", quoted.join(","))
}

/// A question about tables and functions. Nothing in it can fail, and it reads only catalogs, of
/// which no isolation level keeps track.
fn question(tables: &[&&str], functions: &[&&str]) -> String {
    let mut sql = String::new();
    write!(
        sql,
        "SELECT 'isolation', pg_catalog.current_setting('default_transaction_isolation'), \
         pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::pg_catalog.text, NULL, NULL, NULL, NULL UNION ALL SELECT 'table', n.name, c.relkind::pg_catalog.text, s.nspname::pg_catalog.text, \
         c.relname::pg_catalog.text, \
         pg_catalog.concat(CASE WHEN s.nspname IN ('pg_catalog', 'information_schema') \
         OR s.nspname LIKE 'pg\\_toast%' OR c.relpersistence = 't' THEN 's' END, \
         CASE WHEN c.relhasrules THEN 'x' END, CASE WHEN c.relhassubclass THEN 'i' END, \
         CASE WHEN pg_catalog.has_table_privilege(c.oid, 'SELECT') THEN 'g' END, \
         CASE WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid \
         AND NOT t.tgisinternal) THEN 't' END, \
         CASE WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_constraint k WHERE k.confrelid = c.oid \
         AND k.confdeltype IN ('c', 'n', 'd')) THEN 'd' END, \
         CASE WHEN c.reltuples > {LARGE_ROWS} THEN 'l' END), \
         (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(a.attname), pg_catalog.chr(1) \
         ORDER BY pg_catalog.array_position(i.indkey::pg_catalog.int2[], a.attnum)) \
         FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid \
         AND a.attnum = ANY (i.indkey) WHERE i.indrelid = c.oid AND i.indisprimary) \
         FROM pg_catalog.unnest({}) AS n(name) \
         LEFT JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass(n.name) \
         LEFT JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace \
         UNION ALL SELECT 'function', n.name, pg_catalog.max(CASE WHEN p.prokind = 'a' THEN 'a' \
         WHEN p.prokind IN ('f', 'p') AND s.nspname <> 'pg_catalog' THEN 'f' END), NULL, NULL, \
         NULL, NULL FROM pg_catalog.unnest({}) AS n(name) \
         LEFT JOIN pg_catalog.pg_proc p ON p.proname = n.name \
         LEFT JOIN pg_catalog.pg_namespace s ON s.oid = p.pronamespace GROUP BY n.name",
        literals(tables),
        literals(functions),
    )
    .expect("a string grows");
    sql
}
