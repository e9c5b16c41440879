//! Transactions of etcd that read first and compare at the end.
//!
//! Everything that was read is compared by the revision it was last changed at, absent
//! keys by having none, ranges by having nothing newer as well. Own writes wait here until
//! the end. With linearizable reads a transaction that only read compares too; with
//! serializable ones it reads everything at the revision of its first read and is done,
//! which is what clients do who want their reads to be cheap.

use super::driver::asked;
use super::errors::{Asked, broken, succeeded};
use super::message::{
    Found, change, found, list, read, read_range, register, revision, unchanged, unchanged_range,
    value,
};
use crate::http::Connection;
use isolde_harness::{Access, Answer, Failure, Request, Session};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) struct InteractiveSession {
    connection: Connection,
    prefix: String,
    /// Whether reads ask this server alone.
    is_local: bool,
    /// The revision that local reads are made at, after the first one.
    pinned: Option<u64>,
    compares: Vec<Value>,
    /// What the transaction wrote so far; `None` if it removed it.
    writes: BTreeMap<String, Option<String>>,
}

impl InteractiveSession {
    pub(super) fn new(connection: Connection, prefix: &str, is_local: bool) -> Self {
        InteractiveSession {
            connection,
            prefix: prefix.to_owned(),
            is_local,
            pinned: None,
            compares: Vec::new(),
            writes: BTreeMap::new(),
        }
    }

    fn clear(&mut self) {
        self.pinned = None;
        self.compares.clear();
        self.writes.clear();
    }

    /// Reads, and says at which revision.
    fn look(&mut self, mut message: Value) -> Result<(Vec<Found>, u64), Failure> {
        if self.is_local {
            message["serializable"] = Value::Bool(true);
            if let Some(pinned) = self.pinned {
                message["revision"] = pinned.to_string().into();
            }
        }
        let answer = asked(&mut self.connection, "/v3/kv/range", &message)?;
        // An answer at an earlier revision still tells the newest.
        let revision = self.pinned.map_or_else(|| revision(&answer), Ok)?;
        if self.is_local {
            self.pinned = Some(revision);
        }
        Ok((found(&answer)?, revision))
    }

    /// What a key holds for this transaction.
    fn read(&mut self, name: &str) -> Result<Option<String>, Failure> {
        if let Some(own) = self.writes.get(name) {
            return Ok(own.clone());
        }
        let (rows, _) = self.look(read(name))?;
        let row = rows.into_iter().next();
        self.compares.push(unchanged(name, row.as_ref().map_or(0, |row| row.revision)));
        Ok(row.map(|row| row.value))
    }

    fn rows(&mut self, low: u64, high: u64) -> Result<Vec<(u64, u64)>, Failure> {
        let (first, mut end) = (register(&self.prefix, low), register(&self.prefix, high));
        // The first key behind the last one of the range.
        end.push('0');
        let (found, revision) = self.look(read_range(&first, &end))?;
        self.compares.push(unchanged_range(&first, &end, revision));
        let mut rows: BTreeMap<String, Option<String>> = BTreeMap::new();
        for row in found {
            // A key that was removed is not newer than anything.
            self.compares.push(unchanged(&row.name, row.revision));
            rows.insert(row.name, Some(row.value));
        }
        let own = self.writes.range(first.clone()..end);
        rows.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        let key = |name: &str| value(name.get(self.prefix.len() + 1..).unwrap_or_default());
        let rows = rows.iter().filter_map(|(name, text)| Some((key(name), value(text.as_ref()?))));
        Ok(rows.collect())
    }

    fn replace(
        &mut self,
        key: u64,
        expected: Option<u64>,
        new: Option<u64>,
    ) -> Result<Answer, Failure> {
        let name = register(&self.prefix, key);
        let found = self.read(&name)?.as_deref().map(value);
        if found != expected {
            return Ok(Answer::Found(found));
        }
        self.writes.insert(name, new.map(|new| new.to_string()));
        Ok(Answer::Applied(true))
    }

    fn answer(&mut self, request: &Request) -> Result<Answer, Failure> {
        Ok(match *request {
            Request::Read { key } => {
                let text = self.read(&register(&self.prefix, key))?;
                Answer::Value(text.as_deref().map(value))
            }
            Request::Write { key, value } => {
                self.writes.insert(register(&self.prefix, key), Some(value.to_string()));
                Answer::Done
            }
            Request::ReadList { key } => {
                let text = self.read(&list(&self.prefix, key))?.unwrap_or_default();
                Answer::List(text.split(',').filter(|it| !it.is_empty()).map(value).collect())
            }
            Request::Append { key, value } => {
                let name = list(&self.prefix, key);
                let longer = match self.read(&name)? {
                    Some(text) if !text.is_empty() => format!("{text},{value}"),
                    _ => value.to_string(),
                };
                self.writes.insert(name, Some(longer));
                Answer::Done
            }
            Request::Insert { key, value } => self.replace(key, None, Some(value))?,
            Request::CompareAndSet { key, expected, value } => {
                self.replace(key, expected, Some(value))?
            }
            Request::Delete { key } => {
                let name = register(&self.prefix, key);
                let is_there = self.read(&name)?.is_some();
                if is_there {
                    self.writes.insert(name, None);
                }
                Answer::Applied(is_there)
            }
            Request::Range { low, high } => Answer::Rows(self.rows(low, high)?),
            Request::UpdateRange { low, high, first } => {
                let mut rows = self.rows(low, high)?;
                for (key, value) in &mut rows {
                    *value = first + (*key - low);
                    let name = register(&self.prefix, *key);
                    self.writes.insert(name, Some(value.to_string()));
                }
                Answer::Rows(rows)
            }
            ref other => return Err(Failure::unsupported(other)),
        })
    }

    fn finish(&mut self) -> Result<(), Failure> {
        let is_reading = self.writes.is_empty();
        if is_reading && (self.is_local || self.compares.is_empty()) {
            return Ok(());
        }
        let changes: Vec<Value> =
            self.writes.iter().map(|(name, value)| change(name, value.as_deref())).collect();
        let message = json!({ "compare": self.compares, "success": changes });
        let asked = if is_reading { Asked::ToRead } else { Asked::ToChange };
        let answered =
            self.connection.post("/v3/kv/txn", &message).map_err(|error| broken(&error, asked))?;
        let answer = succeeded(answered, asked)?;
        // What is false is left out.
        if answer.get("succeeded").and_then(Value::as_bool) == Some(true) {
            Ok(())
        } else {
            Err(Failure::Aborted("compare failed".to_owned()))
        }
    }
}

impl Session for InteractiveSession {
    fn begin(&mut self, _access: Access) -> Result<(), Failure> {
        self.clear();
        Ok(())
    }

    fn execute(&mut self, request: &Request) -> Result<Answer, Failure> {
        self.answer(request)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        let finished = self.finish();
        self.clear();
        finished
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.clear();
        Ok(())
    }
}
