//! A session of `MongoDB`: transactions, and requests as commands.
//!
//! A transaction begins with its first command, which carries `startTransaction`. One
//! without commands is never heard of by the server.

use super::document::{array, as_number, number, stored};
use super::errors::accepted;
use super::protocol::Connection;
use crate::sql::{Stage, Tables};
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, doc};
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
    fn transactional(&self, mut command: Document, database: &str) -> Document {
        let id = Binary { subtype: BinarySubtype::Uuid, bytes: self.id.clone() };
        command.extend(doc! {
            "$db": database,
            "lsid": { "id": id },
            "txnNumber": self.transaction,
            "autocommit": false,
        });
        command
    }

    /// The reply to a command of the transaction, which begins it if it is the first.
    fn call(&mut self, command: Document) -> Result<Document, Failure> {
        let mut command = self.transactional(command, &self.database);
        if self.state == State::Unsent {
            let concern = match self.setting {
                Setting::Local => "local",
                Setting::Snapshot => "snapshot",
            };
            command.extend(doc! { "startTransaction": true, "readConcern": { "level": concern } });
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
            Setting::Local => Bson::Int32(1),
            Setting::Snapshot => Bson::from("majority"),
        };
        let command = doc! { name: 1, "writeConcern": { "w": concern } };
        let command = self.transactional(command, "admin");
        let reply = self
            .connection
            .call(&command)
            .map_err(|error| stage.disconnected(error.to_string()))?;
        accepted(reply, stage).map(|_| ())
    }

    fn find(&mut self, collection: String, filter: Document) -> Result<Vec<Document>, Failure> {
        let reply =
            self.call(doc! { "find": collection, "filter": filter, "batchSize": BATCH_MAX })?;
        let cursor = reply.get_document("cursor").map_err(|_| unexpected(&reply))?;
        if number(cursor, "id") != Some(0) {
            return Err(Failure::Refused(format!("expected at most {BATCH_MAX} rows, found more")));
        }
        let row = |row: &Bson| row.as_document().cloned().ok_or_else(|| unexpected(&reply));
        array(cursor, "firstBatch").iter().map(row).collect()
    }

    /// Updates one register or list.
    fn update(
        &mut self,
        collection: String,
        filter: Document,
        change: Document,
        creation: Creation,
    ) -> Result<Document, Failure> {
        let is_upsert = creation == Creation::IfAbsent;
        let update = doc! { "q": filter, "u": change, "upsert": is_upsert };
        self.call(doc! { "update": collection, "updates": [update] })
    }

    fn answer(&mut self, request: &Request) -> Result<Answer, Failure> {
        let registers = self.tables.registers.clone();
        let lists = self.tables.lists.clone();
        Ok(match *request {
            Request::Read { key } => {
                let rows = self.find(registers, of_key(key))?;
                Answer::Value(rows.first().map(|row| value(row.get("value"))))
            }
            Request::Write { key, value } => {
                let change = change("$set", "value", value);
                self.update(registers, of_key(key), change, Creation::IfAbsent)?;
                Answer::Done
            }
            Request::ReadList { key } => {
                let rows = self.find(lists, of_key(key))?;
                let elements = rows.first().map_or(&[][..], |row| array(row, "elements"));
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
                Answer::Applied(!array(&reply, "upserted").is_empty())
            }
            Request::Delete { key } => {
                let delete = doc! { "q": of_key(key), "limit": 1 };
                let reply = self.call(doc! { "delete": registers, "deletes": [delete] })?;
                Answer::Applied(number(&reply, "n") == Some(1))
            }
            Request::CompareAndSet { key, expected: Some(expected), value } => {
                let filter = doc! { "_id": stored(key), "value": stored(expected) };
                let change = change("$set", "value", value);
                let reply = self.update(registers, filter, change, Creation::Never)?;
                Answer::Applied(number(&reply, "n") == Some(1))
            }
            Request::Range { low, high } => {
                let bounds = doc! { "$gte": stored(low), "$lte": stored(high) };
                let rows = self.find(registers, doc! { "_id": bounds })?;
                let row = |row: &Document| (value(row.get("_id")), value(row.get("value")));
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
    doc! { "_id": stored(key) }
}

fn change(operator: &str, field: &str, value: u64) -> Document {
    doc! { operator: { field: stored(value) } }
}

/// The number that a field is. What is none shows as one that nobody wrote.
fn value(field: Option<&Bson>) -> u64 {
    let number = field.and_then(as_number).and_then(|number| u64::try_from(number).ok());
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
