//! Reads by condition: what they say about rows that they do not list.
//!
//! **Definition.** A read by condition lists the rows that meet it at its snapshot. So every
//! other row has a version there that does not meet it, or is not there.
//!
//! **Method.** The rows that are listed are cells like others. One more cell, of no item,
//! has the condition: each item that has a version which meets it, and is not listed, is
//! judged as if it were read by itself. For the certifier a transaction remembers its
//! conditions: who first made an item meet one after the snapshot replaced what was read.
//!
//! A content that is no integer neither meets a condition nor fails to: nothing is said
//! about it.

use super::certifier::ConditionNote;
use super::finding::DependencyKind;
use super::profile::Certifier;
use super::reads::{Reading, Shared};
use super::tables::{Fate, NONE, State};
use super::trace::{Cell, Content, Interval};
use super::verifier::Verifier;

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
        if self.tables.items.len() > ITEMS_MAX {
            self.counters.unchecked += 1;
            return;
        }
        for item in 0..self.tables.items.len() as u32 {
            if !self.may_meet(item, condition) || listed.iter().any(|cell| cell.item == item) {
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
            self.conditions.push(ConditionNote { reader: reading.txn, condition });
        }
    }

    /// Whether any version of an item meets a condition.
    fn may_meet(&self, item: u32, condition: Condition) -> bool {
        let mut place = self.tables.items[item as usize].newest;
        while place != NONE {
            let version = &self.tables.versions[place];
            if condition.holds(version.content) == Some(true) {
                return true;
            }
            place = version.older;
        }
        false
    }

    /// Adds what follows from the conditions that a committed transaction has read by, and
    /// from those that others have, and its own writes meet.
    pub(super) fn certify_conditions(&mut self, txn: u32) {
        for place in 0..self.conditions.len() {
            let ConditionNote { reader, condition } = self.conditions[place];
            if reader == txn {
                if self.tables.items.len() <= ITEMS_MAX {
                    for item in 0..self.tables.items.len() as u32 {
                        self.certify_condition(reader, condition, item, None);
                    }
                }
            } else if self.tables.txns[reader].state == State::Committed
                && self.tables.txns[reader].is_judged()
            {
                let mut own = self.tables.txns[txn].versions;
                while own != NONE {
                    let (item, next) =
                        (self.tables.versions[own].item, self.tables.versions[own].next_of_txn);
                    self.certify_condition(reader, condition, item, Some(txn));
                    own = next;
                }
            }
        }
    }

    /// The first transaction after the reader's snapshot that made an item meet the
    /// condition comes after the reader.
    fn certify_condition(&mut self, reader: u32, condition: Condition, item: u32, by: Option<u32>) {
        let Some(snapshot) = self.tables.txns[reader].snapshot else { return };
        let mut place = self.tables.items[item as usize].newest;
        while place != NONE {
            let version = &self.tables.versions[place];
            let (writer, older) = (version.txn, version.older);
            if version.fate == Fate::Committed
                && writer != reader
                && by.is_none_or(|by| by == writer)
                && version.commit.invoked > snapshot.completed
                && condition.holds(version.content) == Some(true)
                && self.is_first_after(snapshot, place)
                && self.depend(reader, writer, DependencyKind::ReadWrite, item)
            {
                self.counters.read_write.certain += 1;
            }
            place = older;
        }
    }

    /// Whether certainly no other version lies between a snapshot and this one.
    fn is_first_after(&self, snapshot: Interval, first: u32) -> bool {
        let commit = self.tables.versions[first].commit;
        let mut place = self.tables.versions[first].item;
        place = self.tables.items[place as usize].newest;
        while place != NONE {
            let version = &self.tables.versions[place];
            let is_elsewhere = !version.may_be_seen()
                || version.commit.completed < snapshot.invoked
                || version.commit.invoked > commit.completed;
            if place != first && !is_elsewhere {
                return false;
            }
            place = version.older;
        }
        true
    }
}
