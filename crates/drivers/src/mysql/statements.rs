//! What a session asks MariaDB or MySQL, prepared when it begins.

use crate::sql::{Tables, elements, place_of};
use isolde_harness::{Answer, BLOCK, Filter, Function, Request};
use mysql::prelude::{FromRow, Queryable};
use mysql::{Conn, Error, Params, Statement};

/// What a session can ask for.
pub(super) struct Statements {
    registers: Option<RegisterStatements>,
    lists: Option<ListStatements>,
    /// Those by condition, for each kind of filter.
    by_condition: Vec<ConditionStatements>,
}

struct RegisterStatements {
    read: Statement,
    write: Statement,
    insert: Statement,
    delete: Statement,
    range: Statement,
    swap: Statement,
    update_range: Statement,
    written: Statement,
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
    lock: Statement,
}

/// Conditions of two parameters, one for each kind of filter.
const CONDITIONS: [&str; 3] = ["`key` BETWEEN ? AND ?", "value BETWEEN ? AND ?", "value % ? = ?"];

/// What aggregates select, by the number of the function.
const AGGREGATES: [&str; 4] =
    ["count(*)", "min(value)", "max(value)", "CAST(sum(value) AS SIGNED)"];

/// How the rows of an update are read again, since there is no UPDATE that returns rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reread {
    /// As any read.
    Plain,
    /// With the locks that the update took. Where the first plain read of a transaction takes
    /// its snapshot, such a read would take it for the update, which takes none.
    Locking,
}

type Prepare<'a> = dyn FnMut(String) -> Result<Statement, Error> + 'a;

impl Statements {
    pub(super) fn new(
        conn: &mut Conn,
        tables: &Tables,
        reread: Reread,
    ) -> Result<Statements, Error> {
        let prepare: &mut Prepare<'_> = &mut |text| conn.prep(text);
        let Tables { registers, lists, by_condition } = tables;
        let mut statements = Statements { registers: None, lists: None, by_condition: Vec::new() };
        if !registers.is_empty() {
            statements.registers = Some(RegisterStatements::new(prepare, registers, reread)?);
        }
        if !lists.is_empty() {
            statements.lists = Some(ListStatements::new(prepare, lists)?);
        }
        if *by_condition {
            for condition in CONDITIONS {
                let more = ConditionStatements::new(prepare, registers, condition)?;
                statements.by_condition.push(more);
            }
        }
        Ok(statements)
    }

    pub(super) fn answer(&self, conn: &mut Conn, request: &Request) -> Result<Answer, Error> {
        if request.kind().is_list() {
            let lists = self.lists.as_ref().expect("lists were asked for");
            return lists.answer(conn, request);
        }
        let registers = self.registers.as_ref().expect("registers were asked for");
        let of = |filter: Filter| &self.by_condition[place_of(filter)];
        let numbers = |filter: Filter| <(u64, u64)>::from(filter.numbers());
        Ok(match *request {
            Request::Select { filter } => {
                Answer::Rows(conn.exec(&of(filter).select, numbers(filter))?)
            }
            Request::Aggregate { function, filter } => {
                let statement = &of(filter).aggregates[function as usize];
                let found: Option<Option<u64>> = only(conn, statement, numbers(filter))?;
                Answer::Value(found.flatten())
            }
            Request::UpdateWhere { filter, first } => {
                let [low, high] = filter.numbers();
                conn.exec_drop(&of(filter).update, (first, low, high))?;
                // No further than the update has looked: it has locked no more.
                let (low, high) = match filter {
                    Filter::Keys { low, high } => (low, high),
                    Filter::Values { .. } | Filter::Remainder { .. } => (0, i64::MAX as u64),
                };
                registers.written(conn, (low, high), (first, first + BLOCK - 1))?
            }
            // There is no DELETE that returns rows, but in MariaDB. So those that meet the
            // condition are locked as a DELETE would, and removed one by one.
            Request::DeleteWhere { filter } => {
                let found: Vec<(u64, u64)> = conn.exec(&of(filter).lock, numbers(filter))?;
                for (key, _) in &found {
                    conn.exec_drop(&registers.delete, (key,))?;
                }
                Answer::Rows(found)
            }
            ref item => registers.answer(conn, item)?,
        })
    }
}

impl RegisterStatements {
    fn new(
        prepare: &mut Prepare<'_>,
        registers: &str,
        reread: Reread,
    ) -> Result<RegisterStatements, Error> {
        let lock = match reread {
            Reread::Plain => "",
            Reread::Locking => " FOR UPDATE",
        };
        Ok(RegisterStatements {
            read: prepare(format!("SELECT value FROM {registers} WHERE `key` = ?"))?,
            write: prepare(format!(
                "INSERT INTO {registers} (`key`, value) VALUES (?, ?) \
                 ON DUPLICATE KEY UPDATE value = VALUES(value)"
            ))?,
            insert: prepare(format!(
                "INSERT IGNORE INTO {registers} (`key`, value) VALUES (?, ?)"
            ))?,
            delete: prepare(format!("DELETE FROM {registers} WHERE `key` = ?"))?,
            range: prepare(format!(
                "SELECT `key`, value FROM {registers} WHERE `key` BETWEEN ? AND ?"
            ))?,
            swap: prepare(format!(
                "UPDATE {registers} SET value = ? WHERE `key` = ? AND value = ?"
            ))?,
            update_range: prepare(format!(
                "UPDATE {registers} SET value = ? + (`key` - ?) WHERE `key` BETWEEN ? AND ?"
            ))?,
            written: prepare(format!(
                "SELECT `key`, value FROM {registers} \
                 WHERE `key` BETWEEN ? AND ? AND value BETWEEN ? AND ?{lock}"
            ))?,
        })
    }

    fn answer(&self, conn: &mut Conn, request: &Request) -> Result<Answer, Error> {
        Ok(match *request {
            Request::Read { key } => Answer::Value(only(conn, &self.read, (key,))?),
            Request::Write { key, value } => {
                conn.exec_drop(&self.write, (key, value))?;
                Answer::Done
            }
            Request::Insert { key, value }
            | Request::CompareAndSet { key, expected: None, value } => {
                conn.exec_drop(&self.insert, (key, value))?;
                Answer::Applied(conn.affected_rows() > 0)
            }
            Request::Delete { key } => {
                conn.exec_drop(&self.delete, (key,))?;
                Answer::Applied(conn.affected_rows() > 0)
            }
            Request::CompareAndSet { key, expected: Some(expected), value } => {
                conn.exec_drop(&self.swap, (value, key, expected))?;
                Answer::Applied(conn.affected_rows() > 0)
            }
            Request::Range { low, high } => Answer::Rows(conn.exec(&self.range, (low, high))?),
            Request::UpdateRange { low, high, first } => {
                conn.exec_drop(&self.update_range, (first, low, low, high))?;
                self.written(conn, (low, high), (first, first + (high - low)))?
            }
            ref other => unreachable!("{other:?} is refused before"),
        })
    }

    /// The rows that an update has left, among these keys. Values are written once, so those
    /// that are there now were written by it.
    fn written(
        &self,
        conn: &mut Conn,
        keys: (u64, u64),
        values: (u64, u64),
    ) -> Result<Answer, Error> {
        Ok(Answer::Rows(conn.exec(&self.written, (keys.0, keys.1, values.0, values.1))?))
    }
}

impl ListStatements {
    fn new(prepare: &mut Prepare<'_>, lists: &str) -> Result<ListStatements, Error> {
        Ok(ListStatements {
            read: prepare(format!("SELECT elements FROM {lists} WHERE `key` = ?"))?,
            append: prepare(format!(
                "INSERT INTO {lists} (`key`, elements) VALUES (?, ?) ON DUPLICATE KEY \
                 UPDATE elements = CONCAT(elements, ',', VALUES(elements))"
            ))?,
        })
    }

    fn answer(&self, conn: &mut Conn, request: &Request) -> Result<Answer, Error> {
        match *request {
            Request::Append { key, value } => {
                conn.exec_drop(&self.append, (key, value.to_string()))?;
                Ok(Answer::Done)
            }
            Request::ReadList { key } => {
                let text: Option<String> = only(conn, &self.read, (key,))?;
                Ok(Answer::List(elements(text.as_deref().unwrap_or(""))))
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
    ) -> Result<ConditionStatements, Error> {
        let mut aggregates = Vec::new();
        for function in Function::ALL {
            let result = AGGREGATES[function as usize];
            aggregates
                .push(prepare(format!("SELECT {result} FROM {registers} WHERE {condition}"))?);
        }
        Ok(ConditionStatements {
            select: prepare(format!("SELECT `key`, value FROM {registers} WHERE {condition}"))?,
            aggregates,
            update: prepare(format!(
                "UPDATE {registers} SET value = ? + `key` % {BLOCK} WHERE {condition}"
            ))?,
            lock: prepare(format!(
                "SELECT `key`, value FROM {registers} WHERE {condition} FOR UPDATE"
            ))?,
        })
    }
}

/// The row that a statement gives, if it gives one.
///
/// What follows the row is read too: Galera may answer with the row and then, instead of the
/// end, with the error that another node's write has ended the transaction. Asked for its
/// first row alone, the client's library drops that, and what comes next is committed by
/// itself.
fn only<T: FromRow>(
    conn: &mut Conn,
    statement: &Statement,
    parameters: impl Into<Params>,
) -> Result<Option<T>, Error> {
    let rows: Vec<T> = conn.exec(statement, parameters)?;
    Ok(rows.into_iter().next())
}
