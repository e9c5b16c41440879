//! Which items have a version that meets a condition, without looking at all of them.
//!
//! Items are noted by the numbers that their versions hold, from the first condition on: who
//! never reads by condition pays nothing. A range of numbers is a range of the notes; for a
//! remainder the items are noted once more, by what the divisor leaves. However many versions
//! of an item leave it, that is one note.

use super::condition::Condition;
use super::tables::{NONE, Tables};
use super::trace::Content;
use std::collections::BTreeMap;

/// Divisors by whose remainders items are noted; for others all numbers are gone through.
const DIVISORS_MAX: usize = 4;

/// Numbers and the items that hold them, with how many of their versions do.
type Notes = BTreeMap<(i64, u32), u32>;

/// See the file's first line.
#[derive(Default)]
pub(super) struct Meeting {
    is_used: bool,
    by_number: Notes,
    by_remainder: BTreeMap<i64, Notes>,
}

impl Meeting {
    /// A version of this item holds this from now on.
    pub(super) fn note(&mut self, content: Content, item: u32) {
        let Some(number) = self.number(content) else { return };
        *self.by_number.entry((number, item)).or_default() += 1;
        for (&divisor, notes) in &mut self.by_remainder {
            *notes.entry((number.rem_euclid(divisor), item)).or_default() += 1;
        }
    }

    /// It no longer does.
    pub(super) fn forget(&mut self, content: Content, item: u32) {
        let Some(number) = self.number(content) else { return };
        take_back(&mut self.by_number, (number, item));
        for (&divisor, notes) in &mut self.by_remainder {
            take_back(notes, (number.rem_euclid(divisor), item));
        }
    }

    /// Contents that are no numbers meet no condition, nor does a row that is not there.
    fn number(&self, content: Content) -> Option<i64> {
        if self.is_used { content.as_integer() } else { None }
    }

    /// Items that meet a condition, up to so many notes.
    fn items(&mut self, condition: Condition, count_max: usize) -> Vec<u32> {
        match condition {
            Condition::Between { low, high } if low > high => Vec::new(),
            Condition::Between { low, high } => {
                let meeting = self.by_number.range((low, 0)..=(high, u32::MAX));
                meeting.map(|noted| noted.0.1).take(count_max).collect()
            }
            Condition::Remainder { modulus, .. } if modulus < 1 => Vec::new(),
            Condition::Remainder { modulus, remainder } => {
                self.leaving(modulus, remainder, count_max)
            }
        }
    }

    fn leaving(&mut self, divisor: i64, remainder: i64, count_max: usize) -> Vec<u32> {
        if !self.by_remainder.contains_key(&divisor) && self.by_remainder.len() < DIVISORS_MAX {
            let mut notes = Notes::new();
            for (&(number, item), count) in &self.by_number {
                *notes.entry((number.rem_euclid(divisor), item)).or_default() += count;
            }
            self.by_remainder.insert(divisor, notes);
        }
        if let Some(notes) = self.by_remainder.get(&divisor) {
            let meeting = notes.range((remainder, 0)..=(remainder, u32::MAX));
            return meeting.map(|noted| noted.0.1).take(count_max).collect();
        }
        let meeting = self.by_number.keys().filter(|key| key.0.rem_euclid(divisor) == remainder);
        meeting.map(|key| key.1).take(count_max).collect()
    }
}

fn take_back(notes: &mut Notes, key: (i64, u32)) {
    if let Some(count) = notes.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            notes.remove(&key);
        }
    }
}

impl Tables {
    /// Items with a version that meets a condition, in their order; nothing if there are more
    /// than so many.
    pub(super) fn items_meeting(
        &mut self,
        condition: Condition,
        count_max: usize,
    ) -> Option<Vec<u32>> {
        if !self.meeting.is_used {
            self.meeting.is_used = true;
            for (item, known) in (0..).zip(&self.items) {
                let mut place = known.newest;
                while place != NONE {
                    self.meeting.note(self.versions[place].content, item);
                    place = self.versions[place].older;
                }
            }
        }
        let mut items = self.meeting.items(condition, count_max + 1);
        if items.len() > count_max {
            return None;
        }
        items.sort_unstable();
        items.dedup();
        Some(items)
    }
}
