//! Transactions of Redis with `WATCH`, `MULTI` and `EXEC`.
//!
//! What a transaction reads is watched before it is read, absent keys included, and its
//! own writes wait here until the end. So `EXEC` succeeds only if all reads still hold,
//! and everything happens at that moment. A transaction that only reads does the same
//! with nothing between `MULTI` and `EXEC`.

use super::driver::{list, range, register, value};
use super::errors::{lost, replied, unexpected, unknown};
use super::protocol::Connection;
use isolde_harness::{Access, Answer, Failure, Request, Session};
use redis::Value;
use std::collections::HashMap;

pub(super) struct WatchSession {
    connection: Connection,
    prefix: String,
    /// Commands for the end of the transaction.
    commands: Vec<Vec<String>>,
    /// What the transaction wrote so far.
    registers: HashMap<u64, Option<u64>>,
    appended: HashMap<u64, Vec<u64>>,
    /// Whether the server watches anything for us.
    is_watching: bool,
}

impl WatchSession {
    pub(super) fn new(connection: Connection, prefix: &str) -> WatchSession {
        WatchSession {
            connection,
            prefix: prefix.to_owned(),
            commands: Vec::new(),
            registers: HashMap::new(),
            appended: HashMap::new(),
            is_watching: false,
        }
    }

    fn clear(&mut self) {
        self.commands.clear();
        self.registers.clear();
        self.appended.clear();
        self.is_watching = false;
    }

    /// Watches names and executes a command that reads them.
    fn watched(&mut self, names: &[String], command: &[&str]) -> Result<Value, Failure> {
        self.is_watching = true;
        let mut watch = vec!["WATCH"];
        watch.extend(names.iter().map(String::as_str));
        self.connection.add(&watch);
        let mut read = command.to_vec();
        read.extend(names.iter().map(String::as_str));
        if command == ["LRANGE"] {
            read.extend(["0", "-1"]);
        }
        self.connection.add(&read);
        self.connection.flush().map_err(|error| lost(&error))?;
        let watching = self.connection.reply().map_err(|error| lost(&error))?;
        let reply = self.connection.reply().map_err(|error| lost(&error))?;
        match (watching, reply) {
            (Value::ServerError(message), _) | (_, Value::ServerError(message)) => {
                Err(replied(&message))
            }
            (_, reply) => Ok(reply),
        }
    }

    /// What the server has of these registers, if the transaction has not written them.
    fn read(&mut self, keys: &[u64]) -> Result<Vec<Option<u64>>, Failure> {
        let others: Vec<u64> =
            keys.iter().copied().filter(|key| !self.registers.contains_key(key)).collect();
        let mut stored = HashMap::new();
        if !others.is_empty() {
            let names: Vec<String> =
                others.iter().map(|&key| register(&self.prefix, key)).collect();
            let reply = self.watched(&names, &["MGET"])?;
            let Value::Array(texts) = &reply else { return Err(unexpected(&reply)) };
            for (key, text) in others.into_iter().zip(texts) {
                stored.insert(key, value(text)?);
            }
        }
        let found = |key: &u64| {
            self.registers.get(key).or_else(|| stored.get(key)).copied().unwrap_or_default()
        };
        Ok(keys.iter().map(found).collect())
    }

    fn write(&mut self, key: u64, value: Option<u64>) {
        let name = register(&self.prefix, key);
        self.commands.push(match value {
            Some(value) => vec!["SET".to_owned(), name, value.to_string()],
            None => vec!["DEL".to_owned(), name],
        });
        self.registers.insert(key, value);
    }

    fn replace(
        &mut self,
        key: u64,
        expected: Option<u64>,
        value: Option<u64>,
    ) -> Result<Answer, Failure> {
        let found = self.read(&[key])?[0];
        if found != expected {
            return Ok(Answer::Found(found));
        }
        self.write(key, value);
        Ok(Answer::Applied(true))
    }

    fn rows(&mut self, low: u64, high: u64) -> Result<Vec<(u64, u64)>, Failure> {
        let keys: Vec<u64> = range(low, high)?.collect();
        let values = self.read(&keys)?;
        let rows = keys.into_iter().zip(values);
        Ok(rows.filter_map(|(key, value)| value.map(|value| (key, value))).collect())
    }

    fn answer(&mut self, request: &Request) -> Result<Answer, Failure> {
        Ok(match *request {
            Request::Read { key } => Answer::Value(self.read(&[key])?[0]),
            Request::Write { key, value } => {
                self.write(key, Some(value));
                Answer::Done
            }
            Request::ReadList { key } => {
                let names = [list(&self.prefix, key)];
                let reply = self.watched(&names, &["LRANGE"])?;
                let Value::Array(texts) = &reply else { return Err(unexpected(&reply)) };
                let mut elements = elements(texts)?;
                elements.extend(self.appended.get(&key).into_iter().flatten());
                Answer::List(elements)
            }
            Request::Append { key, value } => {
                let name = list(&self.prefix, key);
                self.commands.push(vec!["RPUSH".to_owned(), name, value.to_string()]);
                self.appended.entry(key).or_default().push(value);
                Answer::Done
            }
            Request::Insert { key, value } => self.replace(key, None, Some(value))?,
            Request::CompareAndSet { key, expected, value } => {
                self.replace(key, expected, Some(value))?
            }
            Request::Delete { key } => {
                let is_there = self.read(&[key])?[0].is_some();
                if is_there {
                    self.write(key, None);
                }
                Answer::Applied(is_there)
            }
            Request::Range { low, high } => Answer::Rows(self.rows(low, high)?),
            Request::UpdateRange { low, high, first } => {
                let mut rows = self.rows(low, high)?;
                for (key, value) in &mut rows {
                    *value = first + (*key - low);
                    self.write(*key, Some(*value));
                }
                Answer::Rows(rows)
            }
            ref other => return Err(Failure::unsupported(other)),
        })
    }

    /// `MULTI`, the writes, `EXEC`.
    fn finish(&mut self) -> Result<(), Failure> {
        self.connection.add(&["MULTI"]);
        for command in &self.commands {
            self.connection.add(command);
        }
        self.connection.add(&["EXEC"]);
        self.connection.flush().map_err(|error| unknown(&error))?;
        // Replies to `MULTI` and to the commands, which are only queued.
        let mut refusal = None;
        for _ in 0..=self.commands.len() {
            if let Value::ServerError(message) =
                self.connection.reply().map_err(|error| unknown(&error))?
            {
                refusal.get_or_insert(message);
            }
        }
        match (self.connection.reply().map_err(|error| unknown(&error))?, refusal) {
            // A transaction with a command that was not queued is discarded.
            (Value::ServerError(_), Some(message)) | (Value::ServerError(message), None) => {
                Err(replied(&message))
            }
            (Value::Nil, _) => Err(Failure::Aborted("EXEC nil".to_owned())),
            (Value::Array(replies), None) => {
                let failed = replies.iter().find(|reply| matches!(reply, Value::ServerError(_)));
                // The others have happened: no transaction of ours lets one fail.
                failed.map_or(Ok(()), |reply| {
                    Err(Failure::Refused(format!("a part of a transaction failed: {reply:?}")))
                })
            }
            (other, _) => Err(unexpected(&other)),
        }
    }
}

/// The elements of a list.
pub(super) fn elements(texts: &[Value]) -> Result<Vec<u64>, Failure> {
    let element = |text: &Value| value(text)?.ok_or_else(|| unexpected(text));
    texts.iter().map(element).collect()
}

impl Session for WatchSession {
    fn begin(&mut self, _access: Access) -> Result<(), Failure> {
        self.clear();
        Ok(())
    }

    fn execute(&mut self, request: &Request) -> Result<Answer, Failure> {
        let answer = self.answer(request);
        if let Err(Failure::Aborted(_)) = answer {
            self.rollback()?;
        }
        answer
    }

    fn commit(&mut self) -> Result<(), Failure> {
        let finished =
            if self.is_watching || !self.commands.is_empty() { self.finish() } else { Ok(()) };
        self.clear();
        finished
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        let was_watching = self.is_watching;
        self.clear();
        if was_watching {
            match self.connection.call(&["UNWATCH"]).map_err(|error| lost(&error))? {
                Value::ServerError(message) => return Err(replied(&message)),
                _ => return Ok(()),
            }
        }
        Ok(())
    }
}
