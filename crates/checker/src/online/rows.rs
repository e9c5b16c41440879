//! Mutual exclusion and first updater wins: who used a row before whom.
//!
//! **Definition.** A lock is held from an instant of the request that took it to an
//! instant of its transaction's end; locks on one row that exclude one another are not
//! held at the same time. Where the first updater or committer wins, of two committed
//! transactions that wrote one row one committed before the snapshot of the other.
//!
//! **Choice.** First *updater* wins is a rule about rows as tables store them: a row that
//! is inserted where another was deleted is a new row, and nobody has updated it. So
//! `A: delete x, commit` and `B: (snapshot before A's commit) insert x, commit` is
//! allowed where versions of rows are kept, and no lost update. First *committer* wins is
//! decided by keys, and there the two are in conflict.
//!
//! **Method** [Li et al., ICDE 2024, §V-B and §V-C]. When the second of two transactions
//! that used a row ends, both orders are tried. If none is possible, that is a violation.
//! If one is, it is what happened, even if commits overlap: the versions have that order
//! from then on, and the intervals of the commits become narrower.

use super::finding::{Finding, Name, Role, Step};
use super::profile::{Granularity, Locks, Writers};
use super::tables::{Fate, Mode, NONE, RowUse, State, Version};
use super::trace::{Cell, Content, EventKind, Interval, NEVER, Time};
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
                self.profile.locks != Locks::None || self.profile.writers.are_compared()
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

    /// Compares a transaction that has ended with all that used its rows, have ended
    /// before, and were not over when it came.
    ///
    /// One that was over by then came first, and nothing follows from that: its commit lies
    /// before the lock and the snapshot of this one, and with that before its commit.
    pub(super) fn judge_rows(&mut self, txn: u32) {
        let came = self.came_to_rows(txn);
        let mut own = self.tables.txns[txn].uses;
        while own != NONE {
            let one = &self.tables.uses[own];
            let (next, came) = (one.next_of_txn, came.min(one.first.invoked));
            let mut other = self.tables.rows[one.row as usize].past;
            while other != NONE && self.tables.uses[other].over >= came {
                let older = self.tables.uses[other].older;
                self.judge_pair(own, other);
                other = older;
            }
            own = next;
        }
        let over = self.expires(txn);
        own = self.tables.txns[txn].uses;
        while own != NONE {
            let next = self.tables.uses[own].next_of_txn;
            self.tables.end_use(own, over);
            own = next;
        }
    }

    /// The earliest instant at which it matters to a transaction who has written its rows,
    /// whatever it locks.
    fn came_to_rows(&self, txn: u32) -> Time {
        let txn = &self.tables.txns[txn];
        let has_winner = self.profile.writers.are_compared()
            && self.profile.granularity == Granularity::Row
            && self.profile.reads.is_transactional();
        if !has_winner {
            return NEVER;
        }
        txn.snapshot.map_or(NEVER, |snapshot| snapshot.invoked)
    }

    fn judge_pair(&mut self, own: u32, other: u32) {
        let (one, two) = (&self.tables.uses[own], &self.tables.uses[other]);
        if one.mode == Mode::Shared && two.mode == Mode::Shared {
            return;
        }
        let mut other_first = self.may_precede(two, one);
        // Nearly always the one that ended before came before.
        let mut own_first = self.may_precede(one, two);
        if self.profile.writers == Writers::Reported {
            let has_order = own_first.by_locks || other_first.by_locks;
            if has_order && !own_first.all() && !other_first.all() {
                self.report_pair(own, other, Name::LostUpdate);
            }
            (own_first.by_writers, other_first.by_writers) = (true, true);
        }
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
            // The database may have given it up at any time after its last answer; a request
            // that was not answered before its end was sent had none.
            _ => before.answered.min(before.end.invoked),
        };
        let taken = if first.mode == Mode::Shared { second.acquired } else { second.first };
        let by_locks = self.profile.locks == Locks::None || released <= taken.completed;
        let both_write = first.mode == Mode::Written && second.mode == Mode::Written;
        let both_committed = before.state == State::Committed && after.state == State::Committed;
        let by_writers = !self.profile.writers.are_compared()
            || self.profile.granularity == Granularity::Database
            || !(both_write && both_committed)
            || before.commit.invoked <= self.snapshot_ends(second)
            || self.may_be_new_row(first, second);
        Possible { by_locks, by_writers }
    }

    /// Whether the second of two writers may have inserted the row after it was deleted,
    /// by the first or by somebody after it.
    fn may_be_new_row(&self, first: &RowUse, second: &RowUse) -> bool {
        if self.profile.writers == Writers::FirstCommitter {
            return false;
        }
        let since = self.tables.txns[first.txn].commit.invoked;
        let mut place = self.tables.txns[second.txn].versions;
        while place != NONE {
            let Version { item, next_of_txn, written, .. } = self.tables.versions[place];
            if self.tables.items[item as usize].row == second.row
                && self.may_be_deleted(item, second.txn, since, written.completed)
            {
                return true;
            }
            place = next_of_txn;
        }
        false
    }

    /// Whether an item may have been deleted between two instants, by another transaction.
    pub(super) fn may_be_deleted(
        &self,
        item: u32,
        by_others_than: u32,
        since: Time,
        until: Time,
    ) -> bool {
        let mut place = self.tables.items[item as usize].newest;
        while place != NONE {
            let version = &self.tables.versions[place];
            let is_deletion = version.content == Content::ABSENT
                && version.may_be_seen()
                && !version.is_initial()
                && version.txn != by_others_than;
            if is_deletion && version.commit.completed >= since && version.commit.invoked <= until {
                return true;
            }
            place = version.older;
        }
        false
    }

    /// Latest instant of the snapshot that a transaction had when it wrote a row.
    fn snapshot_ends(&self, writing: &RowUse) -> Time {
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
        let has_winner = self.profile.writers.are_refused()
            && self.profile.granularity == Granularity::Row
            && both_write
            && self.tables.txns[to].state == State::Committed
            && self.tables.txns[from].state == State::Committed;
        if has_winner && !self.may_be_new_row(before, after) {
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
