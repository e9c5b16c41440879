//! What a session asks PostgreSQL, prepared when it begins.
//!
//! If the snapshots of single requests are to be told, reads by condition return theirs
//! beside the rows: the function that tells it uses the snapshot of its own statement, so
//! another statement would tell another one.

use crate::sql::{Tables, place_of};
use isolde_harness::{Answer, BLOCK, Function, Request};
use postgres::types::ToSql;
use postgres::{Client, Error, Row, Statement};

/// What a session tells about snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Snapshots {
    /// Nothing.
    Untold,
    /// The one of each read by condition.
    OfReads,
    /// One for all requests of a transaction.
    OfTransactions,
}

/// What a session can ask for.
pub(super) struct Statements {
    registers: Option<RegisterStatements>,
    lists: Option<ListStatements>,
    /// Those by condition, for each kind of filter.
    by_condition: Vec<ConditionStatements>,
    /// Asks for the number and the snapshot of the transaction.
    identity: Option<Statement>,
    /// The snapshot of the last read by condition.
    pub(super) last_seen: Option<String>,
}

struct RegisterStatements {
    read: Statement,
    write: Statement,
    insert: Statement,
    delete: Statement,
    range: Statement,
    swap: Statement,
    update_range: Statement,
}

struct ListStatements {
    read: Statement,
    append: Statement,
}

struct ConditionStatements {
    select: Statement,
    /// By the number of the function.
    aggregates: Vec<Statement>,
    update: Statement,
    delete: Statement,
}

/// Conditions of the first two parameters, one for each kind of filter.
const CONDITIONS: [&str; 3] =
    ["key BETWEEN $1 AND $2", "value BETWEEN $1 AND $2", "value % $1 = $2"];

/// What aggregates select, by the number of the function.
const AGGREGATES: [&str; 4] = ["count(*)", "min(value)", "max(value)", "sum(value)::bigint"];

type Prepare<'a> = dyn FnMut(String) -> Result<Statement, Error> + 'a;

impl Statements {
    pub(super) fn new(
        client: &mut Client,
        tables: &Tables,
        snapshots: Snapshots,
    ) -> Result<Statements, Error> {
        let prepare: &mut Prepare<'_> = &mut |text| client.prepare(&text);
        let Tables { registers, lists, by_condition } = tables;
        let mut statements = Statements {
            registers: None,
            lists: None,
            by_condition: Vec::new(),
            identity: None,
            last_seen: None,
        };
        if !registers.is_empty() {
            statements.registers = Some(RegisterStatements::new(prepare, registers, snapshots)?);
        }
        if !lists.is_empty() {
            statements.lists = Some(ListStatements::new(prepare, lists)?);
        }
        if *by_condition {
            for condition in CONDITIONS {
                let more = ConditionStatements::new(prepare, registers, condition, snapshots)?;
                statements.by_condition.push(more);
            }
        }
        if snapshots != Snapshots::Untold {
            let seen = match snapshots {
                Snapshots::OfTransactions => "pg_current_snapshot()",
                _ => "NULL",
            };
            statements.identity = Some(prepare(format!(
                "SELECT pg_current_xact_id_if_assigned()::text, {seen}::text"
            ))?);
        }
        Ok(statements)
    }

    /// The number of the open transaction, if it has written, and its snapshot, if it has
    /// one.
    pub(super) fn identity(
        &self,
        client: &mut Client,
    ) -> Result<(Option<String>, Option<String>), Error> {
        let Some(statement) = &self.identity else { return Ok((None, None)) };
        let row = client.query_one(statement, &[])?;
        Ok((row.try_get(0)?, row.try_get(1)?))
    }

    pub(super) fn answer(
        &mut self,
        client: &mut Client,
        request: &Request,
    ) -> Result<Answer, Error> {
        self.last_seen = None;
        if request.kind().is_list() {
            let lists = self.lists.as_ref().expect("lists were asked for");
            return lists.answer(client, request);
        }
        let registers = self.registers.as_ref().expect("registers were asked for");
        Ok(match *request {
            Request::Range { low, high } => {
                let found = client.query(&registers.range, &[&stored(low), &stored(high)])?;
                self.seen_rows(&found)?
            }
            Request::Select { filter } => {
                let [first, second] = filter.numbers().map(stored);
                let statement = &self.by_condition[place_of(filter)].select;
                let found = client.query(statement, &[&first, &second])?;
                self.seen_rows(&found)?
            }
            Request::Aggregate { function, filter } => {
                let [first, second] = filter.numbers().map(stored);
                let statements = &self.by_condition[place_of(filter)].aggregates;
                let row = client.query_one(&statements[function as usize], &[&first, &second])?;
                self.last_seen = row.try_get(1)?;
                Answer::Value(row.try_get::<_, Option<i64>>(0)?.map(seen))
            }
            Request::UpdateWhere { filter, first } => {
                let [low, high] = filter.numbers().map(stored);
                let statement = &self.by_condition[place_of(filter)].update;
                rows(&client.query(statement, &[&low, &high, &stored(first)])?)?
            }
            Request::DeleteWhere { filter } => {
                let [first, second] = filter.numbers().map(stored);
                let statement = &self.by_condition[place_of(filter)].delete;
                rows(&client.query(statement, &[&first, &second])?)?
            }
            ref item => registers.answer(client, item)?,
        })
    }

    /// Rows of a read by condition, and its snapshot if that is beside them.
    fn seen_rows(&mut self, found: &[Row]) -> Result<Answer, Error> {
        if let Some(row) = found.first().filter(|row| row.len() > 2) {
            self.last_seen = row.try_get(2)?;
            // A snapshot without a row.
            if row.try_get::<_, Option<i64>>(0)?.is_none() {
                return Ok(Answer::Rows(Vec::new()));
            }
        }
        rows(found)
    }
}

/// A read by condition, with its snapshot if that is to be told.
fn select(registers: &str, condition: &str, snapshots: Snapshots) -> String {
    if snapshots == Snapshots::OfReads {
        format!(
            "SELECT key, value, seen FROM (SELECT pg_current_snapshot()::text AS seen) AS looked \
             LEFT JOIN {registers} ON {condition}"
        )
    } else {
        format!("SELECT key, value FROM {registers} WHERE {condition}")
    }
}

impl RegisterStatements {
    fn new(
        prepare: &mut Prepare<'_>,
        registers: &str,
        snapshots: Snapshots,
    ) -> Result<RegisterStatements, Error> {
        Ok(RegisterStatements {
            read: prepare(format!("SELECT value FROM {registers} WHERE key = $1"))?,
            write: prepare(format!(
                "INSERT INTO {registers} (key, value) VALUES ($1, $2) \
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value"
            ))?,
            insert: prepare(format!(
                "INSERT INTO {registers} (key, value) VALUES ($1, $2) \
                 ON CONFLICT (key) DO NOTHING"
            ))?,
            delete: prepare(format!("DELETE FROM {registers} WHERE key = $1"))?,
            range: prepare(select(registers, CONDITIONS[0], snapshots))?,
            swap: prepare(format!(
                "UPDATE {registers} SET value = $3 WHERE key = $1 AND value = $2"
            ))?,
            update_range: prepare(format!(
                "UPDATE {registers} SET value = $3::bigint + (key - $1) \
                 WHERE key BETWEEN $1 AND $2 RETURNING key, value"
            ))?,
        })
    }

    fn answer(&self, client: &mut Client, request: &Request) -> Result<Answer, Error> {
        Ok(match *request {
            Request::Read { key } => {
                let found = client.query(&self.read, &[&stored(key)])?;
                let values: Result<Vec<i64>, Error> =
                    found.iter().map(|row| row.try_get(0)).collect();
                match values?[..] {
                    [] => Answer::Value(None),
                    [value] => Answer::Value(Some(seen(value))),
                    // The caller knows what to do with them.
                    ref values => {
                        Answer::Rows(values.iter().map(|&value| (key, seen(value))).collect())
                    }
                }
            }
            Request::Write { key, value } => {
                client.execute(&self.write, &[&stored(key), &stored(value)])?;
                Answer::Done
            }
            Request::Insert { key, value }
            | Request::CompareAndSet { key, expected: None, value } => {
                let count = client.execute(&self.insert, &[&stored(key), &stored(value)])?;
                Answer::Applied(count > 0)
            }
            Request::Delete { key } => {
                Answer::Applied(client.execute(&self.delete, &[&stored(key)])? > 0)
            }
            Request::CompareAndSet { key, expected: Some(expected), value } => {
                let values = [key, expected, value].map(stored);
                Answer::Applied(client.execute(&self.swap, &parameters(&values))? > 0)
            }
            Request::UpdateRange { low, high, first } => {
                let values = [low, high, first].map(stored);
                rows(&client.query(&self.update_range, &parameters(&values))?)?
            }
            ref other => unreachable!("{other:?} is refused before"),
        })
    }
}

impl ListStatements {
    fn new(prepare: &mut Prepare<'_>, lists: &str) -> Result<ListStatements, Error> {
        Ok(ListStatements {
            read: prepare(format!("SELECT elements FROM {lists} WHERE key = $1"))?,
            append: prepare(format!(
                "INSERT INTO {lists} AS stored (key, elements) \
                 VALUES ($1, ARRAY[$2::bigint]) ON CONFLICT (key) \
                 DO UPDATE SET elements = stored.elements || excluded.elements"
            ))?,
        })
    }

    fn answer(&self, client: &mut Client, request: &Request) -> Result<Answer, Error> {
        match *request {
            Request::Append { key, value } => {
                client.execute(&self.append, &[&stored(key), &stored(value)])?;
                Ok(Answer::Done)
            }
            Request::ReadList { key } => {
                let row = client.query_opt(&self.read, &[&stored(key)])?;
                let elements: Option<Vec<i64>> = row.map(|row| row.try_get(0)).transpose()?;
                Ok(Answer::List(elements.unwrap_or_default().into_iter().map(seen).collect()))
            }
            ref other => unreachable!("{other:?} is about no list"),
        }
    }
}

impl ConditionStatements {
    fn new(
        prepare: &mut Prepare<'_>,
        registers: &str,
        condition: &str,
        snapshots: Snapshots,
    ) -> Result<ConditionStatements, Error> {
        let seen = match snapshots {
            Snapshots::OfReads => "pg_current_snapshot()::text",
            _ => "NULL::text",
        };
        let mut aggregates = Vec::new();
        for function in Function::ALL {
            let result = AGGREGATES[function as usize];
            aggregates.push(prepare(format!(
                "SELECT {result}, {seen} FROM {registers} WHERE {condition}"
            ))?);
        }
        Ok(ConditionStatements {
            select: prepare(select(registers, condition, snapshots))?,
            aggregates,
            update: prepare(format!(
                "UPDATE {registers} SET value = $3::bigint + key % {BLOCK} WHERE {condition} \
                 RETURNING key, value"
            ))?,
            delete: prepare(format!(
                "DELETE FROM {registers} WHERE {condition} RETURNING key, value"
            ))?,
        })
    }
}

fn parameters(values: &[i64; 3]) -> [&(dyn ToSql + Sync); 3] {
    [&values[0], &values[1], &values[2]]
}

fn rows(rows: &[Row]) -> Result<Answer, Error> {
    let pair = |row: &Row| Ok((seen(row.try_get(0)?), seen(row.try_get(1)?)));
    Ok(Answer::Rows(rows.iter().map(pair).collect::<Result<_, Error>>()?))
}

/// Numbers are below 2^63, so both directions keep them.
fn stored(number: u64) -> i64 {
    number.cast_signed()
}

fn seen(number: i64) -> u64 {
    number.cast_unsigned()
}
