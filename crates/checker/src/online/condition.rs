//! Reads by condition: what they say about rows that they do not list.
//!
//! **Definition.** A read by condition lists the rows that meet it at its snapshot. So every
//! other row has a version there that does not meet it, or is not there.
//!
//! **Method.** The rows that are listed are cells like others. One more cell, of no item,
//! has the condition: each item that has a version which meets it, and is not listed, is
//! judged as if it were read by itself; `meeting.rs` knows which these are. For the certifier a transaction remembers its
//! conditions: who first made an item meet one after the snapshot replaced what was read.
//!
//! A content that is no integer neither meets a condition nor fails to: nothing is said
//! about it.

use super::finding::DependencyKind;
use super::profile::Certifier;
use super::reads::{Reading, Shared};
use super::tables::{Fate, NONE, Version};
use super::trace::{ALWAYS, Cell, Content, Interval, Time};
use super::verifier::Verifier;
use std::collections::BTreeMap;

/// A condition on contents that are integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// They lie between these, both included.
    Between {
        /// The lowest.
        low: i64,
        /// The highest.
        high: i64,
    },
    /// They leave this remainder.
    Remainder {
        /// The divisor, at least 1.
        modulus: i64,
        /// What is left.
        remainder: i64,
    },
}

impl Condition {
    /// Whether a row of this content meets it; nothing if that cannot be told.
    pub fn holds(self, content: Content) -> Option<bool> {
        if content == Content::ABSENT {
            return Some(false);
        }
        let number = content.as_integer()?;
        Some(match self {
            Condition::Between { low, high } => low <= number && number <= high,
            Condition::Remainder { modulus, remainder } => {
                number.checked_rem_euclid(modulus) == Some(remainder)
            }
        })
    }
}

/// The conditions that transactions have read by, for the certifier.
#[derive(Default)]
pub(super) struct ConditionNotes {
    /// Of transactions that are not judged.
    open: Vec<(u32, Condition)>,
    /// Of committed ones that are, by the beginning of the snapshot and the transaction: a
    /// writer looks at those since the last version before its own, and not at all.
    judged: BTreeMap<(Time, u32), Vec<Condition>>,
}

impl ConditionNotes {
    fn is_empty(&self) -> bool {
        self.open.is_empty() && self.judged.is_empty()
    }

    fn take_open(&mut self, reader: u32) -> Vec<Condition> {
        let taken = self.open.extract_if(.., |note| note.0 == reader);
        taken.map(|note| note.1).collect()
    }

    /// Gives up those of a transaction; when it is judged, its snapshot stays as it is.
    pub(super) fn give_up(&mut self, reader: u32, snapshot: Option<Interval>) {
        self.open.retain(|note| note.0 != reader);
        if let Some(snapshot) = snapshot {
            self.judged.remove(&(snapshot.invoked, reader));
        }
    }
}

/// More items than this are not gone through for one read.
const ITEMS_MAX: usize = 1 << 13;

impl Verifier {
    /// Judges what a read by condition says about the rows that it does not list.
    pub(super) fn judge_unlisted(
        &mut self,
        reading: Reading,
        condition: Condition,
        listed: &[Cell],
        (snapshot, shared): (Interval, Shared),
    ) {
        let Some(items) = self.tables.items_meeting(condition, ITEMS_MAX) else {
            self.counters.unchecked.too_many += 1;
            return;
        };
        let mut listed: Vec<u32> = listed.iter().map(|cell| cell.item).collect();
        listed.sort_unstable();
        for item in items {
            if listed.binary_search(&item).is_ok() {
                continue;
            }
            let row = self.tables.items[item as usize].row;
            let cell = Cell { item, row, content: Content::unlisted(condition) };
            let scan = self.scan(reading, &cell, snapshot, shared);
            if scan.own != NONE {
                if !self.tables.versions[scan.own].explains(cell.content)
                    && !self.may_have_changed_nothing(reading, &cell, (snapshot, shared), scan.own)
                {
                    self.report_own_write_missed(reading, cell, scan.own);
                }
            } else if scan.matches == 0 {
                self.reject(reading, cell, snapshot, &scan);
            }
        }
        if self.profile.certifier != Certifier::None && shared == Shared::Txn {
            self.conditions.open.push((reading.txn, condition));
        }
    }

    /// Adds what follows from the conditions that others have read by, and a committed
    /// transaction's writes meet, and from those that it has read by itself.
    pub(super) fn certify_conditions(&mut self, txn: u32) {
        if self.conditions.is_empty() {
            return;
        }
        let mut own = self.tables.txns[txn].versions;
        while own != NONE {
            if self.tables.versions[own].fate == Fate::Committed {
                self.certify_meeting(txn, own);
            }
            own = self.tables.versions[own].next_of_txn;
        }
        let conditions = self.conditions.take_open(txn);
        let Some(snapshot) = self.tables.txns[txn].snapshot else { return };
        for &condition in &conditions {
            for item in self.tables.items_meeting(condition, ITEMS_MAX).unwrap_or_default() {
                self.certify_condition((txn, snapshot), condition, item);
            }
        }
        if !conditions.is_empty() {
            self.conditions.judged.insert((snapshot.invoked, txn), conditions);
        }
    }

    /// A transaction comes after those for which it first made an item meet a condition that
    /// they have read by: their snapshots lie between the last version before its own, and that.
    fn certify_meeting(&mut self, txn: u32, own: u32) {
        let Version { item, content, commit, .. } = self.tables.versions[own];
        let since = self.latest_beside(own).saturating_add(1);
        if since >= commit.invoked {
            return;
        }
        let noted = self.conditions.judged.range((since, 0)..(commit.invoked, 0));
        let mut looked_at = 0;
        let readers: Vec<u32> = noted
            .inspect(|_| looked_at += 1)
            .filter(|(_, conditions)| {
                conditions.iter().any(|condition| condition.holds(content) == Some(true))
            })
            .map(|(&(_, reader), _)| reader)
            .filter(|&reader| {
                let snapshot = self.tables.txns[reader].snapshot;
                snapshot.is_some_and(|snapshot| snapshot.completed < commit.invoked)
            })
            .collect();
        self.counters.looked_at += looked_at;
        for reader in readers {
            if self.depend(reader, txn, DependencyKind::ReadWrite, item) {
                self.counters.read_write.certain += 1;
            }
        }
    }

    /// The latest commit of other versions of an item that may come before this one.
    fn latest_beside(&mut self, own: u32) -> Time {
        let Version { item, commit, .. } = self.tables.versions[own];
        let mut latest = ALWAYS;
        let mut place = self.tables.items[item as usize].newest;
        while place != NONE && self.tables.versions[place].settled > latest {
            self.counters.looked_at += 1;
            let version = &self.tables.versions[place];
            if place != own && version.may_be_seen() && version.commit.invoked <= commit.completed {
                latest = latest.max(version.commit.completed);
            }
            place = version.older;
        }
        latest
    }

    /// The first transaction after the reader's snapshot that made an item meet the
    /// condition comes after the reader.
    fn certify_condition(
        &mut self,
        (reader, snapshot): (u32, Interval),
        condition: Condition,
        item: u32,
    ) {
        let Some(first) = self.first_after(snapshot, item) else { return };
        let version = &self.tables.versions[first];
        let writer = version.txn;
        if version.fate == Fate::Committed
            && writer != reader
            && version.commit.invoked > snapshot.completed
            && condition.holds(version.content) == Some(true)
            && self.latest_beside(first) < snapshot.invoked
            && self.depend(reader, writer, DependencyKind::ReadWrite, item)
        {
            self.counters.read_write.certain += 1;
        }
    }

    /// The only version of an item that can be the first after a snapshot: of those that may
    /// come after it, the one whose commit ends first. Any other follows that, or may.
    fn first_after(&mut self, snapshot: Interval, item: u32) -> Option<u32> {
        let mut first: Option<(Time, u32)> = None;
        let mut place = self.tables.items[item as usize].newest;
        while place != NONE && self.tables.versions[place].settled >= snapshot.invoked {
            self.counters.looked_at += 1;
            let version = &self.tables.versions[place];
            let completed = version.commit.completed;
            if version.may_be_seen()
                && completed >= snapshot.invoked
                && first.is_none_or(|first| completed < first.0)
            {
                first = Some((completed, place));
            }
            place = version.older;
        }
        first.map(|first| first.1)
    }
}
