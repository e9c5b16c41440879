//! fjall with optimistic transactions: snapshots, and at the commit a look at what was
//! read.

use super::database::Embedded;
use super::{Pairs, Store, Transaction, unusable};
use crate::{Stop, Target};
use fjall::{
    KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, OptimisticWriteTx, Readable,
    Snapshot,
};
use isolde_harness::{Access, Address, Claim, Database, Failure, SnapshotPoint};
use std::path::Path;
use std::sync::Arc;

/// How fjall is reached.
pub(crate) const TARGET: Target = Target {
    schemes: &["fjall"],
    title: "fjall, compiled in; a temporary folder unless a new one is named",
    example: "fjall:/path/to/new/folder",
    open,
};

fn open(address: &Address, stop: &Stop) -> Result<Box<dyn Database>, Failure> {
    let claim = Claim::new("serializable", &["serializable"], SnapshotPoint::Begin);
    Embedded::open((address, stop), ("fjall", "3.1"), claim, store)
}

fn store(path: &Path) -> Result<Arc<dyn Store>, Failure> {
    let database = OptimisticTxDatabase::builder(path).open().map_err(|error| unusable(&error))?;
    let keyspace = database
        .keyspace("isolde", KeyspaceCreateOptions::default)
        .map_err(|error| unusable(&error))?;
    Ok(Arc::new(Fjall { database, keyspace }))
}

struct Fjall {
    database: OptimisticTxDatabase,
    keyspace: OptimisticTxKeyspace,
}

impl Store for Fjall {
    fn begin(&self, access: Access) -> Result<Box<dyn Transaction>, Failure> {
        let keyspace = self.keyspace.clone();
        if access == Access::ReadOnly {
            return Ok(Box::new(Reading { snapshot: self.database.read_tx(), keyspace }));
        }
        let transaction = self.database.write_tx().map_err(|error| unusable(&error))?;
        Ok(Box::new(Writing { transaction, keyspace }))
    }
}

struct Reading {
    snapshot: Snapshot,
    keyspace: OptimisticTxKeyspace,
}

struct Writing {
    transaction: OptimisticWriteTx,
    keyspace: OptimisticTxKeyspace,
}

fn get(
    from: &impl Readable,
    keyspace: &OptimisticTxKeyspace,
    key: &[u8],
) -> Result<Option<Vec<u8>>, Failure> {
    let value = from.get(keyspace, key).map_err(|error| unusable(&error))?;
    Ok(value.map(|value| value.to_vec()))
}

fn range(
    from: &impl Readable,
    keyspace: &OptimisticTxKeyspace,
    low: &[u8],
    high: &[u8],
) -> Result<Pairs, Failure> {
    let mut pairs = Vec::new();
    for guard in from.range(keyspace, low..=high) {
        let (key, value) = guard.into_inner().map_err(|error| unusable(&error))?;
        pairs.push((key.to_vec(), value.to_vec()));
    }
    Ok(pairs)
}

impl Transaction for Reading {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        get(&self.snapshot, &self.keyspace, key)
    }

    fn put(&mut self, _key: &[u8], _value: &[u8]) -> Result<(), Failure> {
        Err(Failure::Refused("expected a transaction that only reads".to_owned()))
    }

    fn remove(&mut self, _key: &[u8]) -> Result<(), Failure> {
        Err(Failure::Refused("expected a transaction that only reads".to_owned()))
    }

    fn range(&self, low: &[u8], high: &[u8]) -> Result<Pairs, Failure> {
        range(&self.snapshot, &self.keyspace, low, high)
    }

    fn commit(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Transaction for Writing {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        get(&self.transaction, &self.keyspace, key)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.transaction.insert(&self.keyspace, key, value);
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<(), Failure> {
        self.transaction.remove(&self.keyspace, key);
        Ok(())
    }

    fn range(&self, low: &[u8], high: &[u8]) -> Result<Pairs, Failure> {
        range(&self.transaction, &self.keyspace, low, high)
    }

    fn commit(self: Box<Self>) -> Result<(), Failure> {
        match self.transaction.commit().map_err(|error| unusable(&error))? {
            Ok(()) => Ok(()),
            Err(_) => Err(Failure::Aborted("conflict".to_owned())),
        }
    }
}
