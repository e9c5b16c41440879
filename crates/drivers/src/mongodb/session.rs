//! A session of `MongoDB`: transactions, and requests as commands.
//!
//! A transaction begins with its first command, which carries `startTransaction`. One
//! without commands is never heard of by the server.

use super::bson::{Document, Value};
use super::errors::accepted;
use super::protocol::Connection;
use crate::sql::{Stage, Tables};
use isolde_harness::{Access, Answer, Failure, Request, Session};
use std::hash::{BuildHasher, RandomState};

/// What transactions read, and where they are written before their commit returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// What this server has; the commit is on this server.
    Local,
    /// A snapshot of what a majority has; the commit is on a majority.
    Snapshot,
}

/// Where a session's transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was sent since its begin, or there is none.
    Unsent,
    /// The server knows it.
    Open,
}

/// Rows of one reply, at most.
const BATCH_MAX: i32 = 1 << 16;

pub(super) struct MongoSession {
    connection: Connection,
    setting: Setting,
    database: String,
    tables: Tables,
    /// The session's identifier.
    id: Vec<u8>,
    transaction: i64,
    state: State,
}

impl MongoSession {
    pub(super) fn new(
        connection: Connection,
        setting: Setting,
        database: &str,
        tables: &Tables,
    ) -> MongoSession {
        // Two keys of the standard library are as random as an identifier has to be.
        let half = || RandomState::new().hash_one(std::process::id()).to_le_bytes();
        let mut id = [half(), half()].concat();
        // Version and variant of a random identifier.
        id[6] = id[6] & 0x0f | 0x40;
        id[8] = id[8] & 0x3f | 0x80;
        MongoSession {
            connection,
            setting,
            database: database.to_owned(),
            tables: tables.clone(),
            id,
            transaction: 0,
            state: State::Unsent,
        }
    }

    /// The command as a part of the transaction.
    fn transactional(&self, command: Document, database: &str) -> Document {
        let id = Document::of("id", Value::Binary(4, self.id.clone()));
        command
            .with("$db", Value::Text(database.to_owned()))
            .with("lsid", Value::Document(id))
            .with("txnNumber", Value::Long(self.transaction))
            .with("autocommit", Value::Bool(false))
    }

    /// The reply to a command of the transaction, which begins it if it is the first.
    fn call(&mut self, command: Document) -> Result<Document, Failure> {
        let mut command = self.transactional(command, &self.database);
        if self.state == State::Unsent {
            let concern = match self.setting {
                Setting::Local => "local",
                Setting::Snapshot => "snapshot",
            };
            let concern = Document::of("level", Value::Text(concern.to_owned()));
            command = command
                .with("startTransaction", Value::Bool(true))
                .with("readConcern", Value::Document(concern));
        }
        self.state = State::Open;
        let reply =
            self.connection.call(&command).map_err(|error| Failure::Lost(error.to_string()))?;
        accepted(reply, Stage::Statement)
    }

    /// Ends the transaction by this command of the administration.
    fn end(&mut self, name: &str, stage: Stage) -> Result<(), Failure> {
        if self.state == State::Unsent {
            return Ok(());
        }
        self.state = State::Unsent;
        let concern = match self.setting {
            Setting::Local => Value::Int(1),
            Setting::Snapshot => Value::Text("majority".to_owned()),
        };
        let command = self
            .transactional(Document::of(name, Value::Int(1)), "admin")
            .with("writeConcern", Value::Document(Document::of("w", concern)));
        let reply = self
            .connection
            .call(&command)
            .map_err(|error| stage.disconnected(error.to_string()))?;
        accepted(reply, stage).map(|_| ())
    }

    fn find(&mut self, collection: String, filter: Document) -> Result<Vec<Document>, Failure> {
        let find = Document::of("find", Value::Text(collection))
            .with("filter", Value::Document(filter))
            .with("batchSize", Value::Int(BATCH_MAX));
        let reply = self.call(find)?;
        let cursor = reply.document("cursor").ok_or_else(|| unexpected(&reply))?;
        if cursor.number("id") != Some(0) {
            return Err(Failure::Refused(format!("expected at most {BATCH_MAX} rows, found more")));
        }
        let rows = cursor.array("firstBatch").iter().map(|row| match row {
            Value::Document(row) => Ok(row.clone()),
            _ => Err(unexpected(&reply)),
        });
        rows.collect()
    }

    /// Updates one register or list.
    fn update(
        &mut self,
        collection: String,
        filter: Document,
        change: Document,
        creation: Creation,
    ) -> Result<Document, Failure> {
        let update = Document::of("q", Value::Document(filter))
            .with("u", Value::Document(change))
            .with("upsert", Value::Bool(creation == Creation::IfAbsent));
        let command = Document::of("update", Value::Text(collection))
            .with("updates", Value::Array(vec![Value::Document(update)]));
        self.call(command)
    }

    fn answer(&mut self, request: &Request) -> Result<Answer, Failure> {
        let registers = self.tables.registers.clone();
        let lists = self.tables.lists.clone();
        Ok(match *request {
            Request::Read { key } => {
                let rows = self.find(registers, of_key(key))?;
                Answer::Value(rows.first().map(|row| value(row.value("value"))))
            }
            Request::Write { key, value } => {
                let change = change("$set", "value", value);
                self.update(registers, of_key(key), change, Creation::IfAbsent)?;
                Answer::Done
            }
            Request::ReadList { key } => {
                let rows = self.find(lists, of_key(key))?;
                let elements = rows.first().map_or(&[][..], |row| row.array("elements"));
                Answer::List(elements.iter().map(|element| value(Some(element))).collect())
            }
            Request::Append { key, value } => {
                let change = change("$push", "elements", value);
                self.update(lists, of_key(key), change, Creation::IfAbsent)?;
                Answer::Done
            }
            Request::Insert { key, value }
            | Request::CompareAndSet { key, expected: None, value } => {
                let change = change("$setOnInsert", "value", value);
                let reply = self.update(registers, of_key(key), change, Creation::IfAbsent)?;
                Answer::Applied(!reply.array("upserted").is_empty())
            }
            Request::Delete { key } => {
                let delete =
                    Document::of("q", Value::Document(of_key(key))).with("limit", Value::Int(1));
                let command = Document::of("delete", Value::Text(registers))
                    .with("deletes", Value::Array(vec![Value::Document(delete)]));
                let reply = self.call(command)?;
                Answer::Applied(reply.number("n") == Some(1))
            }
            Request::CompareAndSet { key, expected: Some(expected), value } => {
                let filter = of_key(key).with("value", Value::number(expected));
                let change = change("$set", "value", value);
                let reply = self.update(registers, filter, change, Creation::Never)?;
                Answer::Applied(reply.number("n") == Some(1))
            }
            Request::Range { low, high } => {
                let bounds =
                    Document::of("$gte", Value::number(low)).with("$lte", Value::number(high));
                let rows = self.find(registers, Document::of("_id", Value::Document(bounds)))?;
                let row = |row: &Document| (value(row.value("_id")), value(row.value("value")));
                Answer::Rows(rows.iter().map(row).collect())
            }
            ref other => return Err(Failure::unsupported(other)),
        })
    }
}

/// Whether an update creates what it does not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Creation {
    IfAbsent,
    Never,
}

fn of_key(key: u64) -> Document {
    Document::of("_id", Value::number(key))
}

fn change(operator: &str, field: &str, value: u64) -> Document {
    Document::of(operator, Value::Document(Document::of(field, Value::number(value))))
}

/// The number that a field is. What is none shows as one that nobody wrote.
fn value(field: Option<&Value>) -> u64 {
    let number = field.and_then(Value::as_number).and_then(|number| u64::try_from(number).ok());
    number.unwrap_or(u64::MAX >> 1)
}

fn unexpected(reply: &Document) -> Failure {
    Failure::Refused(format!("expected another reply of MongoDB, found {reply:?}"))
}

impl Session for MongoSession {
    fn begin(&mut self, _access: Access) -> Result<(), Failure> {
        self.transaction += 1;
        self.state = State::Unsent;
        Ok(())
    }

    fn execute(&mut self, request: &Request) -> Result<Answer, Failure> {
        let result = self.answer(request);
        match &result {
            // The connection is of no use any more.
            Err(Failure::Lost(_)) => self.state = State::Unsent,
            // The server has aborted it already, as a rule, and then refuses this.
            Err(_) => {
                let _ = self.end("abortTransaction", Stage::Statement);
            }
            Ok(_) => {}
        }
        result
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.end("commitTransaction", Stage::Commit)
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.end("abortTransaction", Stage::Statement)
    }
}

impl Drop for MongoSession {
    /// A server keeps what a transaction has locked for a minute after its connection.
    fn drop(&mut self) {
        let _ = self.end("abortTransaction", Stage::Statement);
    }
}
