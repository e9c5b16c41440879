//! The reads of every version, grouped.

use super::versions::{INITIAL_SLOT, Slot};
use isolde_history::ReadId;

/// The reads of every slot, in the order of their ids.
pub(super) struct ReadsBySlot {
    /// Per slot, where its reads start, and one more.
    starts: Vec<u32>,
    reads: Vec<ReadId>,
}

impl ReadsBySlot {
    /// Groups reads, given what each saw: a slot, or none.
    pub(super) fn new(seen: &[Slot], slots: usize) -> ReadsBySlot {
        let (starts, reads) = grouped(seen, slots);
        ReadsBySlot { starts, reads }
    }

    /// Those of one slot after the other.
    pub(super) fn of_slots(slots: impl Iterator<Item = impl Iterator<Item = ReadId>>) -> Self {
        let (mut starts, mut reads) = (vec![0], Vec::new());
        for slot in slots {
            reads.extend(slot);
            starts.push(reads.len() as u32);
        }
        ReadsBySlot { starts, reads }
    }

    /// Those of a slot.
    #[inline]
    pub(super) fn of(&self, slot: Slot) -> &[ReadId] {
        let place = |slot: usize| self.starts[slot] as usize;
        &self.reads[place(slot as usize)..place(slot as usize + 1)]
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        4 * (self.starts.len() + self.reads.len())
    }
}

/// The reads of a few slots, in the order of their ids.
pub(super) struct SomeReads {
    /// By slot.
    reads: Vec<(Slot, ReadId)>,
}

impl SomeReads {
    /// Finds them, given what each read saw.
    pub(super) fn new(seen: &[Slot], slots: impl Iterator<Item = Slot>) -> SomeReads {
        const BITS: u32 = u64::BITS;
        let mut asked: Vec<u64> = Vec::new();
        for slot in slots {
            let word = (slot / BITS) as usize;
            asked.resize(asked.len().max(word + 1), 0);
            asked[word] |= 1 << (slot % BITS);
        }
        if asked.is_empty() {
            return SomeReads { reads: Vec::new() };
        }
        let is_asked = |slot: Slot| {
            asked.get((slot / BITS) as usize).is_some_and(|word| word >> (slot % BITS) & 1 == 1)
        };
        let reads = seen.iter().zip(0..).filter(|(slot, _)| is_asked(**slot));
        let mut reads: Vec<_> = reads.map(|(&slot, read)| (slot, ReadId(read))).collect();
        reads.sort_unstable();
        SomeReads { reads }
    }

    /// Those of a slot that was asked for.
    pub(super) fn of(&self, slot: Slot) -> impl Iterator<Item = ReadId> {
        let start = self.reads.partition_point(|it| it.0 < slot);
        self.reads[start..].iter().take_while(move |it| it.0 == slot).map(|it| it.1)
    }
}

/// So many slots have their counters in a cache.
const SLOTS_PER_BLOCK: usize = 1 << 16;

/// Per slot where its reads start, and one more, and the reads in the order of their slots
/// and ids: `seen` is what each read saw.
///
/// Many slots are taken block by block, so that neither counters nor places are far apart.
fn grouped(seen: &[Slot], slots: usize) -> (Vec<u32>, Vec<ReadId>) {
    let of_slots = || seen.iter().zip(0..).filter(|(slot, _)| **slot < INITIAL_SLOT);
    let block_of = |slot: Slot| slot as usize / SLOTS_PER_BLOCK;
    let mut ends = vec![0usize; slots.div_ceil(SLOTS_PER_BLOCK)];
    of_slots().for_each(|(&slot, _)| ends[block_of(slot)] += 1);
    let mut total = 0;
    for end in &mut ends {
        total += std::mem::replace(end, total);
    }
    let mut pairs = vec![(0, ReadId(0)); total];
    of_slots().for_each(|(&slot, read)| {
        let place = &mut ends[block_of(slot)];
        pairs[*place] = (slot, ReadId(read));
        *place += 1;
    });
    let mut starts = Vec::with_capacity(slots + 1);
    let mut reads = vec![ReadId(0); total];
    let mut at = vec![0u32; SLOTS_PER_BLOCK.min(slots)];
    let mut begin = 0;
    for (block, &end) in ends.iter().enumerate() {
        let first = block * SLOTS_PER_BLOCK;
        let at = &mut at[..SLOTS_PER_BLOCK.min(slots - first)];
        at.fill(0);
        pairs[begin..end].iter().for_each(|&(slot, _)| at[slot as usize - first] += 1);
        let mut start = begin as u32;
        for count in &mut *at {
            starts.push(start);
            start += std::mem::replace(count, start);
        }
        for &(slot, read) in &pairs[begin..end] {
            let place = &mut at[slot as usize - first];
            reads[*place as usize] = read;
            *place += 1;
        }
        begin = end;
    }
    starts.push(total as u32);
    (starts, reads)
}

#[cfg(test)]
mod tests {
    use super::super::versions::NO_SLOT;
    use super::*;

    #[test]
    fn reads_are_grouped_by_slot_in_their_order_over_many_blocks() {
        let slots = 2 * SLOTS_PER_BLOCK + 3;
        let seen: Vec<Slot> = (0..4 * slots as u32)
            .map(|read| match read % 5 {
                3 => NO_SLOT,
                4 => INITIAL_SLOT,
                _ => read.wrapping_mul(2_654_435_761) % (slots as u32 - 1),
            })
            .collect();
        let (starts, reads) = grouped(&seen, slots);
        let mut expected: Vec<(Slot, ReadId)> =
            (0..).map(ReadId).zip(&seen).map(|(read, &slot)| (slot, read)).collect();
        expected.retain(|(slot, _)| *slot < INITIAL_SLOT);
        expected.sort_unstable();
        let found = (0..slots).flat_map(|slot| {
            let range = starts[slot] as usize..starts[slot + 1] as usize;
            reads[range].iter().map(move |&read| (slot as Slot, read))
        });
        assert!(found.eq(expected), "reads of other slots or in another order");
        assert_eq!((starts.len(), starts[slots] as usize), (slots + 1, reads.len()));
    }

    #[test]
    fn reads_of_some_slots_are_those_among_all() {
        let seen: Vec<Slot> = (0..1000).map(|read| read * 7 % 191).chain([NO_SLOT, 5]).collect();
        let all = ReadsBySlot::new(&seen, 191);
        let some = SomeReads::new(&seen, [5, 190, 64, 5].into_iter());
        for slot in [5, 64, 190] {
            assert!(some.of(slot).eq(all.of(slot).iter().copied()), "slot {slot}");
        }
        assert_eq!(some.of(6).count(), 0);
    }

    #[test]
    fn nothing_read_is_no_group() {
        assert_eq!(grouped(&[], 0), (vec![0], vec![]));
        assert_eq!(grouped(&[NO_SLOT, INITIAL_SLOT], 2), (vec![0, 0, 0], vec![]));
    }
}
