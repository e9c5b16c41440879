//! Transactions of etcd as one `txn` each.
//!
//! Reads come first in it, then the last write of each key: a `txn` may write a key only
//! once. What a transaction reads of its own is answered here. A compare-and-set is a
//! `txn` of its own and so must be alone.

use super::errors::{Asked, broken, lacks, succeeded};
use super::message::{change, found, has_value, read, read_range, register, unchanged, value};
use crate::http::Connection;
use isolde_harness::{Access, Answer, Failure, Request, Session};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) struct WholeSession {
    connection: Connection,
    prefix: String,
    is_local: bool,
}

impl WholeSession {
    pub(super) fn new(connection: Connection, prefix: &str, is_local: bool) -> Self {
        WholeSession { connection, prefix: prefix.to_owned(), is_local }
    }

    fn send(&mut self, message: &Value, asked: Asked) -> Result<Value, Failure> {
        let answered =
            self.connection.post("/v3/kv/txn", message).map_err(|error| broken(&error, asked))?;
        succeeded(answered, asked)
    }

    fn compare_and_set(
        &mut self,
        key: u64,
        expected: Option<u64>,
        new: u64,
    ) -> Result<Vec<Answer>, Failure> {
        let name = register(&self.prefix, key);
        let compare = match expected {
            Some(expected) => has_value(&name, &expected.to_string()),
            None => unchanged(&name, 0),
        };
        let message = json!({
            "compare": [compare],
            "success": [change(&name, Some(&new.to_string()))],
            "failure": [{ "request_range": read(&name) }],
        });
        let answer = self.send(&message, Asked::ToChange)?;
        if answer.get("succeeded").and_then(Value::as_bool) == Some(true) {
            return Ok(vec![Answer::Applied(true)]);
        }
        let response = answer.get("responses").and_then(|all| all.get(0)?.get("response_range"));
        let rows = found(response.ok_or_else(|| lacks("what a refused change found"))?)?;
        Ok(vec![Answer::Found(rows.first().map(|row| value(&row.value)))])
    }
}

impl Session for WholeSession {
    fn begin(&mut self, _access: Access) -> Result<(), Failure> {
        Err(Failure::Refused("transactions are sent as a whole".to_owned()))
    }

    fn execute(&mut self, _request: &Request) -> Result<Answer, Failure> {
        Err(Failure::Refused("transactions are sent as a whole".to_owned()))
    }

    fn commit(&mut self) -> Result<(), Failure> {
        Err(Failure::Refused("transactions are sent as a whole".to_owned()))
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn whole(&mut self, requests: &[Request]) -> Result<Vec<Answer>, Failure> {
        if let [Request::CompareAndSet { key, expected, value }] = *requests {
            return self.compare_and_set(key, expected, value);
        }
        let mut reads = Vec::new();
        let mut writes: BTreeMap<u64, u64> = BTreeMap::new();
        // For each request, what is known already: its answer, or own writes to rows.
        let mut known = Vec::new();
        for request in requests {
            known.push(match *request {
                Request::Write { key, value } => {
                    writes.insert(key, value);
                    Known::Answer(Answer::Done)
                }
                Request::Read { key } => {
                    if let Some(&own) = writes.get(&key) {
                        Known::Answer(Answer::Value(Some(own)))
                    } else {
                        reads.push(read(&register(&self.prefix, key)));
                        Known::Nothing
                    }
                }
                Request::Range { low, high } => {
                    let mut end = register(&self.prefix, high);
                    end.push('0');
                    reads.push(read_range(&register(&self.prefix, low), &end));
                    Known::Rows(
                        writes.range(low..=high).map(|(&key, &value)| (key, value)).collect(),
                    )
                }
                ref other => return Err(Failure::unsupported(other)),
            });
        }
        let range = |mut read: Value| {
            if self.is_local {
                read["serializable"] = Value::Bool(true);
            }
            json!({ "request_range": read })
        };
        let mut steps: Vec<Value> = reads.into_iter().map(range).collect();
        for (&key, value) in &writes {
            steps.push(change(&register(&self.prefix, key), Some(&value.to_string())));
        }
        let asked = if writes.is_empty() { Asked::ToRead } else { Asked::ToChange };
        let answer = self.send(&json!({ "success": steps }), asked)?;
        let mut responses = answer.get("responses").and_then(Value::as_array).into_iter().flatten();
        let mut answers = Vec::new();
        for (request, known) in requests.iter().zip(known) {
            if let Known::Answer(answer) = known {
                answers.push(answer);
                continue;
            }
            let response = responses.next().and_then(|it| it.get("response_range"));
            let rows = found(response.ok_or_else(|| lacks("an answer to each read"))?)?;
            let start = self.prefix.len() + 1;
            let key = |name: &str| value(name.get(start..).unwrap_or_default());
            let mut pairs: BTreeMap<u64, u64> =
                rows.iter().map(|row| (key(&row.name), value(&row.value))).collect();
            answers.push(match (request, known) {
                (Request::Range { .. }, Known::Rows(own)) => {
                    pairs.extend(own);
                    Answer::Rows(pairs.into_iter().collect())
                }
                _ => Answer::Value(pairs.into_values().next()),
            });
        }
        Ok(answers)
    }
}

enum Known {
    Nothing,
    Answer(Answer),
    Rows(Vec<(u64, u64)>),
}
