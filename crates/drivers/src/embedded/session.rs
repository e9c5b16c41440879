//! Requests, in terms of what every ordered store can do.
//!
//! A register is eight bytes under `r` and its key, a list the bytes of its elements under
//! `l` and its key; the order of keys is that of numbers.

use super::{Store, Transaction};
use isolde_harness::{Access, Answer, Failure, Request, Session};
use std::sync::Arc;

pub(super) struct EmbeddedSession {
    store: Arc<dyn Store>,
    transaction: Option<Box<dyn Transaction>>,
}

impl EmbeddedSession {
    pub(super) fn new(store: Arc<dyn Store>) -> EmbeddedSession {
        EmbeddedSession { store, transaction: None }
    }
}

fn name(kind: u8, key: u64) -> [u8; 9] {
    let mut name = [kind; 9];
    name[1..].copy_from_slice(&key.to_be_bytes());
    name
}

/// The numbers of a value; what is left over is no number of ours.
fn numbers(value: &[u8]) -> Vec<u64> {
    let (groups, _) = value.as_chunks::<8>();
    groups.iter().map(|group| u64::from_be_bytes(*group)).collect()
}

fn read(transaction: &dyn Transaction, key: u64) -> Result<Option<u64>, Failure> {
    let value = transaction.get(&name(b'r', key))?;
    Ok(value.and_then(|value| numbers(&value).first().copied()))
}

fn write(transaction: &mut dyn Transaction, key: u64, value: u64) -> Result<(), Failure> {
    transaction.put(&name(b'r', key), &value.to_be_bytes())
}

fn replace(
    transaction: &mut dyn Transaction,
    key: u64,
    expected: Option<u64>,
    value: u64,
) -> Result<Answer, Failure> {
    let found = read(transaction, key)?;
    if found != expected {
        return Ok(Answer::Found(found));
    }
    write(transaction, key, value)?;
    Ok(Answer::Applied(true))
}

fn rows(transaction: &dyn Transaction, low: u64, high: u64) -> Result<Vec<(u64, u64)>, Failure> {
    let found = transaction.range(&name(b'r', low), &name(b'r', high))?;
    let row = |(key, value): &(Vec<u8>, Vec<u8>)| {
        let key = numbers(key.get(1..)?).first().copied()?;
        Some((key, numbers(value).first().copied()?))
    };
    Ok(found.iter().filter_map(row).collect())
}

fn answer(transaction: &mut dyn Transaction, request: &Request) -> Result<Answer, Failure> {
    Ok(match *request {
        Request::Read { key } => Answer::Value(read(transaction, key)?),
        Request::Write { key, value } => {
            write(transaction, key, value)?;
            Answer::Done
        }
        Request::ReadList { key } => {
            let value = transaction.get(&name(b'l', key))?;
            Answer::List(numbers(&value.unwrap_or_default()))
        }
        Request::Append { key, value } => {
            let name = name(b'l', key);
            let mut list = transaction.get(&name)?.unwrap_or_default();
            list.extend_from_slice(&value.to_be_bytes());
            transaction.put(&name, &list)?;
            Answer::Done
        }
        Request::Insert { key, value } => replace(transaction, key, None, value)?,
        Request::CompareAndSet { key, expected, value } => {
            replace(transaction, key, expected, value)?
        }
        Request::Delete { key } => {
            let is_there = read(transaction, key)?.is_some();
            if is_there {
                transaction.remove(&name(b'r', key))?;
            }
            Answer::Applied(is_there)
        }
        Request::Range { low, high } => Answer::Rows(rows(transaction, low, high)?),
        Request::UpdateRange { low, high, first } => {
            let mut rows = rows(transaction, low, high)?;
            for (key, value) in &mut rows {
                *value = first + (*key - low);
                write(transaction, *key, *value)?;
            }
            Answer::Rows(rows)
        }
        ref other => return Err(Failure::unsupported(other)),
    })
}

fn no_transaction() -> Failure {
    Failure::Refused("expected a transaction that has begun".to_owned())
}

impl Session for EmbeddedSession {
    fn begin(&mut self, access: Access) -> Result<(), Failure> {
        self.transaction = Some(self.store.begin(access)?);
        Ok(())
    }

    fn execute(&mut self, request: &Request) -> Result<Answer, Failure> {
        let transaction = self.transaction.as_mut().ok_or_else(no_transaction)?;
        answer(&mut **transaction, request)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.transaction.take().ok_or_else(no_transaction)?.commit()
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.transaction = None;
        Ok(())
    }
}
