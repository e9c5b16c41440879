//! Versions of a key as a chain, and which of them a snapshot sees.

use super::SlotWrites;
use super::walk::{Test, Walk};
use crate::strong::versions::{INITIAL_SLOT, Slot, Versions};
use hashbrown::HashMap;
use isolde_history::{Datum, KeyId, OpId, TxnId, Value};
use std::rc::Rc;

/// The chains of settled keys, found when they are asked for.
pub(super) struct Chains<'v, 'a> {
    versions: &'v Versions<'a>,
    writes: Rc<SlotWrites>,
    known: HashMap<KeyId, Chain>,
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
    /// By place, the row's value where it exists and is a number.
    rows: Vec<Option<(i128, Value)>>,
}

impl<'v, 'a> Chains<'v, 'a> {
    pub(super) fn new(versions: &'v Versions<'a>, writes: Rc<SlotWrites>) -> Self {
        Chains { versions, writes, known: HashMap::new() }
    }

    fn chain(&mut self, key: KeyId) -> &Chain {
        let versions = self.versions;
        let writes = &self.writes;
        self.known.entry(key).or_insert_with(|| Chain::new(versions, writes, key))
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

    pub(super) fn has_snapshot(&self, reader: TxnId, op: OpId) -> bool {
        self.versions.history.snapshot(reader, op).is_some()
    }

    /// The place of the last version that the database says an operation saw, if it tells.
    pub(super) fn snapshot_place(&mut self, key: KeyId, reader: TxnId, op: OpId) -> Option<u32> {
        let versions = self.versions;
        let snapshot = versions.history.snapshot(reader, op)?;
        let chain = self.chain(key);
        let own = versions.slot(key, reader);
        let least_from = chain.least_from.as_ref()?;
        // Every version after the last one with a number below the bound is beyond it.
        let mut place = least_from.partition_point(|&least| least < snapshot.below);
        while place > 1 {
            let (slot, number) = (chain.slots[place - 1], chain.numbers[place - 1]);
            if Some(slot) != own && snapshot.sees(number) {
                break;
            }
            place -= 1;
        }
        Some(place.saturating_sub(1) as u32)
    }
}

impl Chain {
    fn new(versions: &Versions<'_>, writes: &SlotWrites, key: KeyId) -> Chain {
        let range = versions.slots_of(key);
        let mut chain = Chain { slots: vec![INITIAL_SLOT], ..Chain::default() };
        chain.places = vec![0; range.len()];
        let mut next = range.clone().find(|&slot| !versions.followed[slot as usize]);
        while let Some(slot) = next {
            chain.places[(slot - range.start) as usize] = chain.slots.len() as u32;
            chain.slots.push(slot);
            next = versions.following(slot).next();
        }
        let row = |&slot: &Slot| {
            let value = writes.live_value(versions.history, key, slot)?;
            match versions.history.datum(value) {
                Datum::Int(number) => Some((number, value)),
                _ => None,
            }
        };
        chain.rows = chain.slots.iter().map(row).collect();
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
