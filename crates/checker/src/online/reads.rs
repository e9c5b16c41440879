//! Consistent read: what a read saw must have been there at its snapshot.
//!
//! **Definition.** A version is visible from the instant of its commit until that of the
//! next version of its item. A transaction sees its own writes first; of the rest, a read
//! sees what is visible at one instant, which lies where the profile says.
//!
//! **Method** [Li et al., ICDE 2024, §V-A]. The snapshot lies in an interval, and so do
//! the commits. A version is a *candidate* if it may have been committed before the
//! snapshot, and no version that was certainly committed before the snapshot certainly
//! follows it. The *pivot* decides the latter: the latest beginning of a commit among
//! those that ended before the snapshot. If no candidate has the content that was read,
//! no placement of the instants explains the read. If exactly one has it, the read tells
//! something about the instants, and intervals become narrower: the writer committed
//! before the snapshot, and the snapshot was taken before the next version's commit.
//!
//! **Soundness.** Every step keeps all placements that explain what was read so far.

use super::profile::{Dml, Reads, Writers};
use super::relations::Side;
use super::tables::{Fate, Mode, NONE, Version};
use super::trace::{Cell, Content, EventKind, Interval, NEVER, Time};
use super::verifier::Verifier;

/// A read that waits to be judged.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) txn: u32,
    pub(super) operation: u32,
    pub(super) kind: EventKind,
    pub(super) interval: Interval,
}

/// For which reads an instant is the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shared {
    Nothing,
    Statement,
    Txn,
}

/// What the versions of an item have to say about a read.
pub(super) struct Scan {
    /// The reader's own last write before the read.
    pub(super) own: u32,
    /// What certainly ended before this beginning is replaced.
    pub(super) pivot: Time,
    pub(super) candidates: u32,
    /// Candidates with the content that was read.
    pub(super) matches: u32,
    /// One of these.
    pub(super) matching: u32,
    /// Earliest commit of these.
    earliest: Time,
}

impl Verifier {
    /// Judges a read whose time is complete.
    pub(super) fn judge_read(&mut self, reading: Reading, cells: &[Cell]) {
        let Some((mut snapshot, shared)) = self.snapshot_of(reading) else {
            self.counters.unpromised += cells.len() as u64;
            return;
        };
        if shared == Shared::Statement {
            self.drop_relations(reading.txn);
        }
        for cell in cells {
            if cell.content == Content::UNKNOWN {
                match reading.kind {
                    EventKind::LockingRead => self.counters.unchecked.changed += 1,
                    _ => self.counters.unchecked.untold += 1,
                }
                continue;
            }
            self.counters.cells_read += 1;
            if let Some(condition) = cell.content.condition() {
                self.judge_unlisted(reading, condition, cells, (snapshot, shared));
                continue;
            }
            let narrowed = self.judge_cell(reading, *cell, snapshot, shared);
            if shared != Shared::Nothing {
                snapshot = narrowed;
            }
        }
        if shared == Shared::Txn {
            self.tables.txns[reading.txn].snapshot = Some(snapshot);
        }
    }

    /// Where the snapshot of a read lies, and for which other reads it is the same;
    /// nothing if nothing is promised.
    fn snapshot_of(&self, reading: Reading) -> Option<(Interval, Shared)> {
        let txn = &self.tables.txns[reading.txn];
        let own = reading.interval;
        if reading.kind == EventKind::LockingRead && self.profile.dml == Dml::Current {
            // Each row is read when it is locked.
            return (self.profile.reads != Reads::Unchecked).then_some((own, Shared::Nothing));
        }
        let (mut snapshot, shared) = match self.profile.reads {
            Reads::Unchecked => return None,
            Reads::Item => (own, Shared::Nothing),
            Reads::Window => (Interval { invoked: txn.start, ..own }, Shared::Nothing),
            Reads::Statement => (own, Shared::Statement),
            Reads::Begin | Reads::FirstRequest | Reads::FirstRead => (txn.snapshot?, Shared::Txn),
        };
        if shared != Shared::Txn {
            snapshot.invoked = snapshot.invoked.saturating_sub(self.profile.staleness);
        }
        Some((snapshot, shared))
    }

    /// Judges one cell and returns the snapshot as far as it is narrowed down by it.
    fn judge_cell(
        &mut self,
        reading: Reading,
        cell: Cell,
        snapshot: Interval,
        shared: Shared,
    ) -> Interval {
        let scan = self.scan(reading, &cell, snapshot, shared);
        if scan.own != NONE {
            if !self.tables.versions[scan.own].explains(cell.content)
                && !self.is_beside_own(reading, &cell, snapshot, scan.own)
                && !self.may_have_changed_nothing(reading, &cell, (snapshot, shared), scan.own)
            {
                self.report_own_write_missed(reading, cell, scan.own);
            }
            return snapshot;
        }
        let as_of_write = self.is_read_as_of_write(reading, &cell);
        if scan.matches == 0 {
            let explained = as_of_write.is_some_and(|written| {
                self.scan(reading, &cell, written, Shared::Nothing).matches > 0
            });
            if !explained {
                self.reject(reading, cell, snapshot, &scan);
            }
            return snapshot;
        }
        if self.is_blind(&cell) {
            self.counters.unchecked.events_missing += 1;
            return snapshot;
        }
        if as_of_write.is_some() {
            return snapshot;
        }
        self.count_write_read(&scan);
        if scan.matches > 1 {
            let invoked = snapshot.invoked.max(scan.earliest);
            return Interval { invoked, ..snapshot };
        }
        self.learn(reading, cell, snapshot, shared, &scan)
    }

    /// Looks at all versions of an item.
    pub(super) fn scan(
        &mut self,
        reading: Reading,
        cell: &Cell,
        snapshot: Interval,
        shared: Shared,
    ) -> Scan {
        let newest = self.tables.newest(cell);
        let versions = &self.tables.versions;
        let has_relations =
            shared != Shared::Nothing && self.tables.txns[reading.txn].relations != NONE;
        let side = |version: &Version| {
            if !has_relations || version.txn == NONE {
                return None;
            }
            self.relation(reading.txn, version.txn)
        };
        // Whether a commit certainly came before the snapshot.
        let precedes = |version: &Version| {
            version.fate == Fate::Committed
                && (version.commit.completed < snapshot.invoked
                    || side(version) == Some(Side::Seen))
        };
        let mut scan = Scan {
            own: NONE,
            pivot: super::trace::ALWAYS,
            candidates: 0,
            matches: 0,
            matching: NONE,
            earliest: NEVER,
        };
        let mut looked_at = 0;
        let mut place = newest;
        // What is settled before the pivot is replaced, and is none of the reader's own.
        while place != NONE && versions[place].settled >= scan.pivot {
            let version = &versions[place];
            looked_at += 1;
            if version.txn == reading.txn {
                if version.operation < reading.operation {
                    scan.own = place;
                    break;
                }
            } else if precedes(version) {
                scan.pivot = scan.pivot.max(version.commit.invoked);
            }
            place = version.older;
        }
        place = if scan.own == NONE { newest } else { NONE };
        while place != NONE && versions[place].settled >= scan.pivot {
            let version = &versions[place];
            looked_at += 1;
            let is_candidate = version.may_be_seen()
                && version.txn != reading.txn
                && version.commit.invoked <= snapshot.completed
                && version.commit.completed >= scan.pivot
                && (version.successor == NONE || !precedes(&versions[version.successor]))
                && side(version) != Some(Side::Missed);
            if is_candidate {
                scan.candidates += 1;
                if version.explains(cell.content) {
                    scan.matches += 1;
                    scan.matching = place;
                    scan.earliest = scan.earliest.min(version.commit.invoked);
                }
            }
            place = version.older;
        }
        self.counters.looked_at += looked_at;
        scan
    }

    /// Where an insert is of a new row, the snapshot may still show the old row of that
    /// key, which somebody has deleted since: then both are there.
    fn is_beside_own(
        &mut self,
        reading: Reading,
        cell: &Cell,
        snapshot: Interval,
        own: u32,
    ) -> bool {
        if self.profile.writers != Writers::FirstUpdater || !self.profile.reads.is_transactional() {
            return false;
        }
        let written = self.tables.versions[own].written.completed;
        if !self.may_be_deleted(cell.item, reading.txn, snapshot.invoked, written) {
            return false;
        }
        let before_own = Reading { operation: 0, ..reading };
        self.scan(before_own, cell, snapshot, Shared::Txn).matches > 0
    }

    /// Where rows are written as they are, and not as they were at the snapshot, a write of
    /// what is there already makes no version, and the snapshot is still seen behind it.
    ///
    /// **Choice.** `A: r(x,1)`, then `B: w(x,2), commit`, then `A: w(x,2) r(x,1)` is allowed:
    /// InnoDB compares the row, finds nothing to change and leaves it to B. With `A: w(x,3)`
    /// the row is A's, and A has to see 3.
    pub(super) fn may_have_changed_nothing(
        &mut self,
        reading: Reading,
        cell: &Cell,
        (snapshot, shared): (Interval, Shared),
        own: u32,
    ) -> bool {
        if self.profile.dml != Dml::Current || shared != Shared::Txn {
            return false;
        }
        let Version { content, mut written, .. } = self.tables.versions[own];
        let mut place = own;
        while place != NONE {
            let version = &self.tables.versions[place];
            if version.txn == reading.txn {
                if version.content != content {
                    return false;
                }
                written = version.written;
            }
            place = version.older;
        }
        let before_own = Reading { operation: 0, ..reading };
        let held = Cell { content, ..*cell };
        self.scan(before_own, &held, written, Shared::Nothing).matches > 0
            && self.scan(before_own, cell, snapshot, shared).matches > 0
    }

    /// Where rows are written as they are, and not as they were at the snapshot, a row
    /// that the transaction has written is read as of that write.
    fn is_read_as_of_write(&self, reading: Reading, cell: &Cell) -> Option<Interval> {
        let txn = &self.tables.txns[reading.txn];
        if self.profile.dml != Dml::Current
            || !self.profile.reads.is_transactional()
            || !txn.has_written
        {
            return None;
        }
        let found = self.tables.use_of(reading.txn, cell.row)?;
        (found.mode == Mode::Written && found.operation < reading.operation)
            .then_some(found.acquired)
    }

    /// A read that one version alone explains tells where commits and snapshot lie.
    fn learn(
        &mut self,
        reading: Reading,
        cell: Cell,
        snapshot: Interval,
        shared: Shared,
        scan: &Scan,
    ) -> Interval {
        let seen = scan.matching;
        let version = &mut self.tables.versions[seen];
        if version.content == Content::UNKNOWN {
            version.content = cell.content;
            self.tables.meeting.note(cell.content, cell.item);
            if version.is_initial() {
                self.counters.unchecked.first += 1;
            }
        }
        let mut narrowed = snapshot;
        narrowed.invoked = narrowed.invoked.max(version.commit.invoked);
        let (writer, commit, fate) = (version.txn, version.commit, version.fate);
        // With one candidate, no other commit reaches into the snapshot.
        if scan.candidates > 1 {
            let reader = if shared == Shared::Nothing { NONE } else { reading.txn };
            narrowed = self.before_successors(reader, seen, commit, narrowed);
            if reader != NONE {
                self.relate(reader, writer, Side::Seen);
            }
        }
        if writer != NONE {
            if fate == Fate::Lost {
                self.show_committed(writer);
            }
            if commit.completed > narrowed.completed {
                let to = Interval { completed: narrowed.completed, ..commit };
                self.narrow_commit(writer, to);
            }
        }
        self.note_read(reading.txn, seen, scan.candidates == 1);
        narrowed
    }

    /// The snapshot lies before the commits of all that certainly follows what was seen.
    fn before_successors(
        &mut self,
        reader: u32,
        seen: u32,
        commit: Interval,
        snapshot: Interval,
    ) -> Interval {
        let item = self.tables.versions[seen].item;
        let successor = self.tables.versions[seen].successor;
        let mut narrowed = snapshot;
        let mut place = self.tables.items[item as usize].newest;
        while place != NONE {
            let version = &self.tables.versions[place];
            let (txn, own, older) = (version.txn, version.commit, version.older);
            let follows = version.fate == Fate::Committed
                && (own.invoked > commit.completed || place == successor);
            if follows {
                narrowed.completed = narrowed.completed.min(own.completed);
                if txn != NONE && own.invoked < narrowed.invoked {
                    let to = Interval { invoked: narrowed.invoked, ..own };
                    self.narrow_commit(txn, to);
                }
                if reader != NONE {
                    self.relate(reader, txn, Side::Missed);
                }
            }
            place = older;
        }
        narrowed
    }

    fn count_write_read(&mut self, scan: &Scan) {
        let count = &mut self.counters.write_read;
        match (scan.candidates, scan.matches) {
            (1, _) => count.certain += 1,
            (_, 1) => count.by_content += 1,
            _ => count.uncertain += 1,
        }
    }
}
