//! A table whose slots are used again, so that memory follows what is kept.

/// A table whose slots are used again.
pub(super) struct Slab<T> {
    slots: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Slab<T> {
        Slab { slots: Vec::new(), free: Vec::new() }
    }

    #[inline]
    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = value;
            return slot;
        }
        self.slots.push(value);
        self.slots.len() as u32 - 1
    }

    #[inline]
    pub(super) fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Slots in use.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.slots[slot as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.slots[slot as usize]
    }
}
