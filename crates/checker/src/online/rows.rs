//! Mutual exclusion and first updater wins: who used a row before whom.
//!
//! **Definition.** A lock is held from an instant of the request that took it to an
//! instant of its transaction's end; locks on one row that exclude one another are not
//! held at the same time. Where the first updater or committer wins, of two committed
//! transactions that wrote one row one committed before the snapshot of the other.
//!
//! **Method** [Li et al., ICDE 2024, §V-B and §V-C]. When the second of two transactions
//! that used a row ends, both orders are tried. If none is possible, that is a violation.
//! If one is, it is what happened, even if commits overlap: the versions have that order
//! from then on, and the intervals of the commits become narrower.

use super::finding::{Finding, Name, Role, Step};
use super::profile::{Granularity, Locks, Writers};
use super::tables::{Fate, Mode, NONE, RowUse, State};
use super::trace::{Cell, Content, EventKind, Interval, NEVER};
use super::verifier::Verifier;

/// What shows that two commits that overlap have an order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownBy {
    Locks,
    FirstUpdater,
}

/// Which orders of two transactions are possible.
#[derive(Clone, Copy)]
struct Possible {
    by_locks: bool,
    by_writers: bool,
}

impl Possible {
    const fn all(self) -> bool {
        self.by_locks && self.by_writers
    }
}

impl Verifier {
    /// Notes that an operation uses a row, if the profile has a use for that.
    #[inline]
    pub(super) fn use_row(&mut self, txn: u32, cell: &Cell, by: (EventKind, u32, Interval)) {
        let mode = match by.0 {
            EventKind::Write => Mode::Written,
            EventKind::LockingRead => Mode::Exclusive,
            _ => Mode::Shared,
        };
        let needed = match mode {
            Mode::Shared => self.profile.locks == Locks::ReadsAndWrites,
            Mode::Exclusive => self.profile.locks != Locks::None,
            Mode::Written => {
                self.profile.locks != Locks::None || self.profile.writers != Writers::Any
            }
        };
        if needed {
            let row = match self.profile.granularity {
                Granularity::Row => cell.row,
                Granularity::Database => 0,
            };
            self.tables.use_row(txn, row, mode, by);
        }
    }

    /// Compares a transaction that has ended with all that used its rows and have ended
    /// before.
    pub(super) fn judge_rows(&mut self, txn: u32) {
        let mut own = self.tables.txns[txn].uses;
        while own != NONE {
            let mut other = self.tables.rows[self.tables.uses[own].row as usize];
            while other != NONE {
                let (user, older) = (self.tables.uses[other].txn, self.tables.uses[other].older);
                if user != txn && self.tables.txns[user].is_judged() {
                    self.judge_pair(own, other);
                }
                other = older;
            }
            own = self.tables.uses[own].next_of_txn;
        }
    }

    fn judge_pair(&mut self, own: u32, other: u32) {
        let (one, two) = (&self.tables.uses[own], &self.tables.uses[other]);
        if one.mode == Mode::Shared && two.mode == Mode::Shared {
            return;
        }
        let other_first = self.may_precede(two, one);
        // Nearly always the one that ended before came before.
        let own_first = self.may_precede(one, two);
        match (own_first.all(), other_first.all()) {
            (true, true) => {}
            (false, true) => self.learn_order(other, own, own_first),
            (true, false) => self.learn_order(own, other, other_first),
            (false, false) => {
                let by_locks = !own_first.by_locks && !other_first.by_locks;
                let name = if by_locks { Name::LockViolation } else { Name::LostUpdate };
                self.report_pair(own, other, name);
            }
        }
    }

    /// Whether the transaction of `first` can have been done with the row before that of
    /// `second` came to it.
    fn may_precede(&self, first: &RowUse, second: &RowUse) -> Possible {
        let (before, after) = (&self.tables.txns[first.txn], &self.tables.txns[second.txn]);
        let released = match before.state {
            State::Committed => before.commit.invoked,
            // The database may have given it up at any time after its last answer.
            _ => before.answered,
        };
        let taken = if first.mode == Mode::Shared { second.acquired } else { second.first };
        let by_locks = self.profile.locks == Locks::None || released <= taken.completed;
        let both_write = first.mode == Mode::Written && second.mode == Mode::Written;
        let both_committed = before.state == State::Committed && after.state == State::Committed;
        let by_writers = self.profile.writers == Writers::Any
            || self.profile.granularity == Granularity::Database
            || !(both_write && both_committed)
            || before.commit.invoked <= self.snapshot_ends(second);
        Possible { by_locks, by_writers }
    }

    /// Latest instant of the snapshot that a transaction had when it wrote a row.
    fn snapshot_ends(&self, writing: &RowUse) -> super::trace::Time {
        if !self.profile.reads.is_transactional() {
            return writing.acquired.completed;
        }
        self.tables.txns[writing.txn].snapshot.map_or(NEVER, |snapshot| snapshot.completed)
    }

    /// One order is possible: what follows from it.
    fn learn_order(&mut self, first: u32, second: u32, refuted: Possible) {
        let (before, after) = (&self.tables.uses[first], &self.tables.uses[second]);
        let (from, to) = (before.txn, after.txn);
        if self.tables.txns[from].state == State::Aborted {
            return;
        }
        let taken = if before.mode == Mode::Shared { after.acquired } else { after.first };
        let both_write = before.mode == Mode::Written && after.mode == Mode::Written;
        let snapshot_ends = self.snapshot_ends(after);
        let mut latest = NEVER;
        if self.profile.locks != Locks::None {
            latest = taken.completed;
        }
        let has_winner = self.profile.writers != Writers::Any
            && self.profile.granularity == Granularity::Row
            && both_write
            && self.tables.txns[to].state == State::Committed
            && self.tables.txns[from].state == State::Committed;
        if has_winner {
            latest = latest.min(snapshot_ends);
        }
        if both_write && self.tables.txns[to].state == State::Committed {
            let shown = if refuted.by_locks { ShownBy::FirstUpdater } else { ShownBy::Locks };
            self.order_versions(from, to, shown);
        }
        let commit = self.tables.txns[from].commit;
        if latest < commit.completed {
            self.narrow_commit(from, Interval { completed: latest, ..commit });
        }
    }

    /// Versions of two transactions whose commits overlap have an order.
    fn order_versions(&mut self, from: u32, to: u32, shown: ShownBy) {
        let (before, after) = (self.tables.txns[from].commit, self.tables.txns[to].commit);
        if before.completed < after.invoked {
            return;
        }
        let mut place = self.tables.txns[to].versions;
        while place != NONE {
            let version = &self.tables.versions[place];
            let (item, next, fate) = (version.item, version.next_of_txn, version.fate);
            if fate == Fate::Committed {
                self.set_successor(item, from, place, shown);
            }
            place = next;
        }
    }

    fn set_successor(&mut self, item: u32, from: u32, successor: u32, shown: ShownBy) {
        let mut place = self.tables.items[item as usize].newest;
        while place != NONE {
            let version = &mut self.tables.versions[place];
            if version.txn == from && version.may_be_seen() {
                version.successor = successor;
                let count = &mut self.counters.write_write;
                match shown {
                    ShownBy::Locks => count.by_locks += 1,
                    ShownBy::FirstUpdater => count.by_first_updater += 1,
                }
                return;
            }
            place = version.older;
        }
    }

    fn report_pair(&mut self, own: u32, other: u32, name: Name) {
        let (own, other) = (&self.tables.uses[own], &self.tables.uses[other]);
        // The one that came later should have waited, or been refused.
        let by_commit = self.profile.writers == Writers::FirstCommitter && name == Name::LostUpdate;
        let key = |one: &RowUse| {
            let end = self.tables.txns[one.txn].end.invoked;
            if by_commit { (end, one.acquired.invoked) } else { (one.acquired.invoked, end) }
        };
        let (earlier, later) = if key(own) < key(other) { (own, other) } else { (other, own) };
        let role = if name == Name::LockViolation { Role::OtherLock } else { Role::OtherWrite };
        let snapshot = self.tables.txns[later.txn].snapshot;
        let mut others = vec![
            self.use_step(earlier, role),
            self.tables.txns[earlier.txn].end_step(Role::EndOfOther),
        ];
        if snapshot.is_some() && name == Name::LostUpdate {
            let txn = &self.tables.txns[later.txn];
            let (kind, operation, interval) = txn.snapshot_event;
            let (client, number) = (txn.client, txn.number);
            others.push(Step {
                client,
                txn: number,
                operation,
                kind,
                interval,
                cell: None,
                role: Role::Snapshot,
            });
        }
        let finding = Finding {
            name,
            offender: self.use_step(later, Role::Offender),
            others,
            candidates: Vec::new(),
            snapshot,
            dependencies: Vec::new(),
        };
        self.report(finding);
    }

    fn use_step(&self, one: &RowUse, role: Role) -> Step {
        let txn = &self.tables.txns[one.txn];
        let row = one.row;
        let written = self.written_cell(one);
        Step {
            client: txn.client,
            txn: txn.number,
            operation: one.operation,
            kind: one.kind,
            interval: one.acquired,
            cell: Some(written.unwrap_or(Cell { item: NONE, row, content: Content::UNKNOWN })),
            role,
        }
    }

    /// What a transaction wrote of a row.
    fn written_cell(&self, one: &RowUse) -> Option<Cell> {
        let mut place = self.tables.txns[one.txn].versions;
        let mut found = None;
        while place != NONE {
            let version = &self.tables.versions[place];
            let row = self.tables.items[version.item as usize].row;
            if version.operation == one.operation {
                found = Some(Cell { item: version.item, row, content: version.content });
                if row == one.row {
                    break;
                }
            }
            place = version.next_of_txn;
        }
        found
    }
}
