//! Versions of a key as a chain, and which of them a snapshot sees.

use super::SlotWrites;
use super::runs::Runs;
use super::walk::{NO_ROW, Test, Walk};
use crate::strong::versions::{INITIAL_SLOT, Slot, Versions};
use isolde_history::{Datum, KeyId, OpId, Snapshot, TxnId, Value};
use std::rc::Rc;

/// The chains of settled keys, found when they are asked for.
pub(super) struct Chains<'v, 'a> {
    versions: &'v Versions<'a>,
    writes: Rc<SlotWrites>,
    /// By key.
    known: Vec<Option<Chain>>,
    /// Whose version set is looked at: the reader, and what the database says it saw.
    looking: Option<(TxnId, Option<&'a Snapshot>)>,
    /// By key, the place that the snapshot gives, if it was asked for in this look.
    seen: Vec<(u32, Option<u32>)>,
    look: u32,
}

/// The versions of a key in their order; place 0 is the initial one.
#[derive(Default)]
struct Chain {
    slots: Vec<Slot>,
    /// By slot, from the first slot of the key on, its place.
    places: Vec<u32>,
    /// By place, the least number of a writer from there on; `None` if a writer has none.
    least_from: Option<Vec<u64>>,
    numbers: Vec<u64>,
    /// Where the last snapshot ended. The next one of the same session ends near it.
    last_end: usize,
    /// By place, the row's value where it exists and is a small number, else [`NO_ROW`].
    rows: Vec<i64>,
}

impl<'v, 'a> Chains<'v, 'a> {
    pub(super) fn new(versions: &'v Versions<'a>, writes: Rc<SlotWrites>) -> Self {
        let keys = versions.history.key_count();
        let known = (0..keys).map(|_| None).collect();
        Chains { versions, writes, known, looking: None, seen: vec![(0, None); keys], look: 0 }
    }

    /// Looks at the version set of an operation from now on. Operations of a transaction often
    /// have the same.
    pub(super) fn look_at(&mut self, reader: TxnId, op: OpId) {
        let snapshot = self.versions.history.snapshot(reader, op);
        let is_same = self.looking.is_some_and(|(txn, known)| {
            txn == reader && known.map(std::ptr::from_ref) == snapshot.map(std::ptr::from_ref)
        });
        if !is_same {
            self.looking = Some((reader, snapshot));
            self.look += 1;
        }
    }

    fn chain(&mut self, key: KeyId) -> &mut Chain {
        let versions = self.versions;
        let writes = &self.writes;
        self.known[key.index()].get_or_insert_with(|| Chain::new(versions, writes, key))
    }

    /// How many versions there are, the initial one included.
    pub(super) fn length(&mut self, key: KeyId) -> u32 {
        self.chain(key).slots.len() as u32
    }

    /// The writer of a version other than the initial one.
    pub(super) fn writer(&mut self, key: KeyId, place: u32) -> TxnId {
        let slot = self.chain(key).slots[place as usize];
        self.versions.writer(slot)
    }

    pub(super) fn place(&mut self, key: KeyId, slot: Slot) -> u32 {
        if slot == INITIAL_SLOT {
            return 0;
        }
        let first = self.versions.slots_of(key).start;
        self.chain(key).places[(slot - first) as usize]
    }

    /// A key under a condition on numbers.
    pub(super) fn walk(&mut self, key: KeyId, test: Test, takes_values: bool) -> Walk<'_> {
        Walk { rows: &self.chain(key).rows, test, takes_values }
    }

    /// Where the versions of a key meet such a condition.
    pub(super) fn runs(&mut self, key: KeyId, test: Test) -> Runs {
        self.walk(key, test, false).runs()
    }

    /// The operation that installed a version, unless it is the initial one.
    pub(super) fn write(&mut self, key: KeyId, place: u32) -> Option<OpId> {
        let slot = self.chain(key).slots[place as usize];
        self.writes.of(slot)
    }

    /// The place of a transaction's own version, from which on it can have seen nothing.
    pub(super) fn own_place(&mut self, key: KeyId, reader: TxnId) -> u32 {
        match self.versions.slot(key, reader) {
            Some(slot) => self.place(key, slot),
            None => u32::MAX,
        }
    }

    /// Versions with this value that another transaction than `reader` left.
    pub(super) fn slots_of_value(&self, key: KeyId, value: Value, reader: TxnId) -> Vec<Slot> {
        let versions = self.versions;
        let initial = (versions.history.initial(key) == value).then_some(INITIAL_SLOT);
        let has_value = |&slot: &Slot| {
            let write = self.writes.of(slot);
            versions.writer(slot) != reader
                && write.is_some_and(|write| versions.history.op(write).value == value)
        };
        initial.into_iter().chain(versions.slots_of(key).filter(has_value)).collect()
    }

    /// The value of a version.
    pub(super) fn value(&mut self, key: KeyId, place: u32) -> Value {
        let write = self.write(key, place);
        let history = self.versions.history;
        write.map_or(history.initial(key), |write| history.op(write).value)
    }

    pub(super) fn has_snapshot(&self) -> bool {
        self.looking.is_some_and(|(_, snapshot)| snapshot.is_some())
    }

    /// The place of the last version that the database says the operation saw, if it tells.
    pub(super) fn snapshot_place(&mut self, key: KeyId) -> Option<u32> {
        let (reader, snapshot) = self.looking?;
        let snapshot = snapshot?;
        if self.seen[key.index()].0 != self.look {
            let place = self.find_snapshot_place(key, reader, snapshot);
            self.seen[key.index()] = (self.look, place);
        }
        self.seen[key.index()].1
    }

    fn find_snapshot_place(
        &mut self,
        key: KeyId,
        reader: TxnId,
        snapshot: &Snapshot,
    ) -> Option<u32> {
        let versions = self.versions;
        let chain = self.chain(key);
        let least_from = chain.least_from.as_ref()?;
        // Every version after the last one with a number below the bound is beyond it.
        let mut place = count_below(least_from, snapshot.below, chain.last_end);
        chain.last_end = place;
        while place > 1 {
            let (slot, number) = (chain.slots[place - 1], chain.numbers[place - 1]);
            if snapshot.sees(number) && versions.writer(slot) != reader {
                break;
            }
            place -= 1;
        }
        Some(place.saturating_sub(1) as u32)
    }
}

/// How many of ascending numbers are below a bound, looked for from a guess outwards.
fn count_below(ascending: &[u64], bound: u64, guess: usize) -> usize {
    let (all, mut step) = (ascending.len(), 1);
    let is_below = |place: usize| ascending[place] < bound;
    // Everything before the first is below the bound, nothing from the second on is.
    let (low, high) = if guess < all && is_below(guess) {
        let mut low = guess + 1;
        while low + step < all && is_below(low + step) {
            low += step + 1;
            step *= 2;
        }
        (low, all.min(low + step))
    } else {
        let mut high = all.min(guess);
        while step <= high && !is_below(high - step) {
            high -= step;
            step *= 2;
        }
        (high.saturating_sub(step), high)
    };
    low + ascending[low..high].partition_point(|&it| it < bound)
}

impl Chain {
    fn new(versions: &Versions<'_>, writes: &SlotWrites, key: KeyId) -> Chain {
        let range = versions.slots_of(key);
        let mut chain = Chain { slots: vec![INITIAL_SLOT], ..Chain::default() };
        chain.places = vec![0; range.len()];
        let mut next = range.clone().find(|&slot| !versions.is_followed(slot));
        while let Some(slot) = next {
            chain.places[(slot - range.start) as usize] = chain.slots.len() as u32;
            chain.slots.push(slot);
            next = versions.following(slot).next();
        }
        let row = |&slot: &Slot| {
            let value = writes.live_value(versions.history, key, slot)?;
            match versions.history.datum(value) {
                Datum::Int(number) => i64::try_from(number).ok(),
                _ => None,
            }
        };
        chain.rows = chain.slots.iter().map(|slot| row(slot).unwrap_or(NO_ROW)).collect();
        let number = |&slot: &Slot| versions.history.number(versions.writer(slot));
        let numbers: Option<Vec<u64>> = chain.slots[1..].iter().map(number).collect();
        if let Some(numbers) = numbers {
            // The initial version is seen by everybody.
            chain.numbers = std::iter::once(0).chain(numbers).collect();
            let mut least_from = chain.numbers.clone();
            for place in (0..least_from.len().saturating_sub(1)).rev() {
                least_from[place] = least_from[place].min(least_from[place + 1]);
            }
            chain.least_from = Some(least_from);
        }
        chain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guess_leads_to_the_same_count() {
        for ascending in [&[][..], &[3], &[1, 2, 2, 5, 5, 5, 8, 9, 9, 12, 40, 41]] {
            for bound in 0..50 {
                let expected = ascending.partition_point(|&it| it < bound);
                for guess in 0..=ascending.len() {
                    let found = count_below(ascending, bound, guess);
                    assert_eq!(found, expected, "{ascending:?} {bound} from {guess}");
                }
            }
        }
    }
}
