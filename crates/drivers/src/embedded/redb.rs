//! redb: one writer at a time, readers beside it on snapshots.
//!
//! A transaction that may write waits at its begin until no other can, so nothing is ever
//! refused.

use super::database::Embedded;
use super::{Pairs, Store, Transaction, unusable};
use crate::{Stop, Target};
use isolde_harness::{Access, Address, Claim, Database, Failure, SnapshotPoint};
use redb::{
    Durability, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction,
};
use std::path::Path;
use std::sync::Arc;

/// How redb is reached.
pub(crate) const TARGET: Target = Target {
    schemes: &["redb"],
    title: "redb, compiled in; a temporary file unless a new one is named",
    example: "redb:/path/to/new/file",
    open,
};

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("isolde");

fn open(address: &Address, stop: &Stop) -> Result<Box<dyn Database>, Failure> {
    let claim = Claim::new("serializable", &["strict-serializable"], SnapshotPoint::Begin);
    Embedded::open((address, stop), ("redb", "4.4"), claim, store)
}

fn store(path: &Path) -> Result<Arc<dyn Store>, Failure> {
    let database = redb::Database::create(path).map_err(|error| unusable(&error))?;
    // A table exists once somebody who writes has opened it.
    let transaction = database.begin_write().map_err(|error| unusable(&error))?;
    transaction.open_table(TABLE).map_err(|error| unusable(&error))?;
    transaction.commit().map_err(|error| unusable(&error))?;
    Ok(Arc::new(Redb(database)))
}

struct Redb(redb::Database);

impl Store for Redb {
    fn begin(&self, access: Access) -> Result<Box<dyn Transaction>, Failure> {
        if access == Access::ReadOnly {
            let transaction = self.0.begin_read().map_err(|error| unusable(&error))?;
            return Ok(Box::new(Reading(transaction)));
        }
        let mut transaction = self.0.begin_write().map_err(|error| unusable(&error))?;
        // What survives a crash is not what is tested.
        transaction.set_durability(Durability::None).map_err(|error| unusable(&error))?;
        Ok(Box::new(Writing(transaction)))
    }
}

struct Reading(ReadTransaction);

struct Writing(WriteTransaction);

fn get(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    key: &[u8],
) -> Result<Option<Vec<u8>>, Failure> {
    let value = table.get(key).map_err(|error| unusable(&error))?;
    Ok(value.map(|value| value.value().to_vec()))
}

fn range(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    low: &[u8],
    high: &[u8],
) -> Result<Pairs, Failure> {
    let mut pairs = Vec::new();
    for pair in table.range(low..=high).map_err(|error| unusable(&error))? {
        let (key, value) = pair.map_err(|error| unusable(&error))?;
        pairs.push((key.value().to_vec(), value.value().to_vec()));
    }
    Ok(pairs)
}

impl Transaction for Reading {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        get(&self.0.open_table(TABLE).map_err(|error| unusable(&error))?, key)
    }

    fn put(&mut self, _key: &[u8], _value: &[u8]) -> Result<(), Failure> {
        Err(Failure::Refused("expected a transaction that only reads".to_owned()))
    }

    fn remove(&mut self, _key: &[u8]) -> Result<(), Failure> {
        Err(Failure::Refused("expected a transaction that only reads".to_owned()))
    }

    fn range(&self, low: &[u8], high: &[u8]) -> Result<Pairs, Failure> {
        range(&self.0.open_table(TABLE).map_err(|error| unusable(&error))?, low, high)
    }

    fn commit(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Transaction for Writing {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        get(&self.0.open_table(TABLE).map_err(|error| unusable(&error))?, key)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let mut table = self.0.open_table(TABLE).map_err(|error| unusable(&error))?;
        table.insert(key, value).map_err(|error| unusable(&error))?;
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<(), Failure> {
        let mut table = self.0.open_table(TABLE).map_err(|error| unusable(&error))?;
        table.remove(key).map_err(|error| unusable(&error))?;
        Ok(())
    }

    fn range(&self, low: &[u8], high: &[u8]) -> Result<Pairs, Failure> {
        range(&self.0.open_table(TABLE).map_err(|error| unusable(&error))?, low, high)
    }

    fn commit(self: Box<Self>) -> Result<(), Failure> {
        self.0.commit().map_err(|error| unusable(&error))
    }
}
