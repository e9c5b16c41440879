//! The database whose clients are traced: snapshot isolation, or what a bug leaves of it.
//!
//! A transaction reads what had committed when its first request took effect. Who writes a row
//! that another has locked, or has written since then, is refused.

use super::chance::Chance;
use isolde::online::Time;
use std::collections::BTreeMap;

/// What a seed may have wrong with the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// Reads now and then see the version before the one that they should.
    Stale,
    /// Who writes what another has written since its snapshot is not refused.
    LostUpdate,
}

/// Rows, numbered.
pub(super) const ROWS: usize = 3;

/// See the file's first line.
pub(super) struct Database {
    bug: Option<Bug>,
    /// Of each row, when they were committed.
    versions: [Vec<(Time, i64)>; ROWS],
    /// Who has locked a row.
    locks: [Option<usize>; ROWS],
    values: i64,
}

/// What a transaction has there.
#[derive(Clone, Default)]
pub(super) struct Session {
    snapshot: Option<Time>,
    written: BTreeMap<usize, i64>,
}

impl Database {
    pub(super) fn new(bug: Option<Bug>) -> Database {
        Database { bug, versions: Default::default(), locks: [None; ROWS], values: 0 }
    }

    /// What a row holds for a transaction; nothing if nobody has written it.
    pub(super) fn read(
        &self,
        session: &mut Session,
        row: usize,
        now: Time,
        chance: &mut Chance,
    ) -> Option<i64> {
        let snapshot = *session.snapshot.get_or_insert(now);
        if let Some(own) = session.written.get(&row) {
            return Some(*own);
        }
        let versions = &self.versions[row];
        let seen = versions.iter().filter(|(since, _)| *since <= snapshot).count();
        let is_stale = self.bug == Some(Bug::Stale) && chance.one_in(4);
        let seen = if is_stale { seen.saturating_sub(1) } else { seen };
        seen.checked_sub(1).map(|place| versions[place].1)
    }

    /// A new value for a row, unless it is refused.
    pub(super) fn write(
        &mut self,
        session: &mut Session,
        owner: usize,
        row: usize,
        now: Time,
    ) -> Option<i64> {
        let snapshot = *session.snapshot.get_or_insert(now);
        if self.locks[row].is_some_and(|holder| holder != owner) {
            return None;
        }
        let is_newer = self.versions[row].last().is_some_and(|(since, _)| *since > snapshot);
        if is_newer && self.bug != Some(Bug::LostUpdate) {
            return None;
        }
        self.locks[row] = Some(owner);
        self.values += 1;
        session.written.insert(row, self.values);
        Some(self.values)
    }

    pub(super) fn commit(&mut self, session: &mut Session, owner: usize, now: Time) {
        for (row, value) in std::mem::take(&mut session.written) {
            self.versions[row].push((now, value));
        }
        self.abort(session, owner);
    }

    pub(super) fn abort(&mut self, session: &mut Session, owner: usize) {
        *session = Session::default();
        for lock in &mut self.locks {
            *lock = lock.filter(|holder| *holder != owner);
        }
    }
}
