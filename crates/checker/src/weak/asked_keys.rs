//! The keys that will be asked for, and which of them a transaction writes.
//!
//! A session that saw a transaction of many writes needs to remember those of keys that
//! somebody asks for: the shorter one of both sets is walked.

use super::Facts;
use isolde_history::{KeyId, TxnId};

pub(super) struct AskedKeys {
    /// Ascending, each once.
    keys: Vec<KeyId>,
}

impl AskedKeys {
    pub(super) fn new(keys: impl Iterator<Item = KeyId>) -> AskedKeys {
        let mut keys: Vec<KeyId> = keys.collect();
        keys.sort_unstable();
        keys.dedup();
        AskedKeys { keys }
    }

    /// Calls `visit` with all asked keys that a transaction writes, and perhaps with
    /// others that it writes.
    pub(super) fn written_by(&self, facts: &Facts<'_>, txn: TxnId, mut visit: impl FnMut(KeyId)) {
        let written = facts.index.written_by(txn);
        if written.len() <= self.keys.len() {
            for &key in written {
                visit(key);
            }
        } else {
            for &key in self.keys.iter().filter(|&&key| facts.index.writes(txn, key)) {
                visit(key);
            }
        }
    }
}
