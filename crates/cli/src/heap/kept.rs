//! Large arrays that were freed and wait to be used again.
//!
//! The system clears every page that it gives out. A check of all levels takes and frees arrays
//! of the same size again and again, and a fifth of its time went into that.
//!
//! What waits is no part of what is in use, and never makes a program larger than it has been:
//! [`keep_within`] gives back what would.

use super::LARGE;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Arrays that may wait at a time.
const PLACES: usize = 64;
/// The system aligns all arrays at least like this.
const ALIGN_MAX: usize = 16;

static IS_ASKED: AtomicBool = AtomicBool::new(false);
/// What waits.
static WAITING: Mutex<Waiting> = Mutex::new(Waiting { arrays: [None; PLACES] });
/// Its bytes.
static BYTES: AtomicIsize = AtomicIsize::new(0);
/// The most bytes that were in use, or in use and waiting.
static MOST: AtomicIsize = AtomicIsize::new(0);

/// Arrays are kept from now on: for a program that ends when its work is done.
pub(crate) fn keep() {
    IS_ASKED.store(true, Relaxed);
}

/// An array of this size that waited, with what it held.
pub(super) fn take(layout: Layout) -> Option<NonNull<u8>> {
    if BYTES.load(Relaxed) == 0 || !is_for(layout) {
        return None;
    }
    let array = waiting().take(layout.size())?;
    BYTES.fetch_sub(array.size.cast_signed(), Relaxed);
    array.cut(layout.size())
}

/// Whether an array waits from now on; its owner must not free it then.
pub(super) fn put(place: *mut u8, layout: Layout) -> bool {
    let Some(place) = NonNull::new(place).filter(|_| IS_ASKED.load(Relaxed) && is_for(layout))
    else {
        return false;
    };
    let is_put = waiting().put(Array { place, size: layout.size() });
    if is_put {
        BYTES.fetch_add(layout.size().cast_signed(), Relaxed);
    }
    is_put
}

/// Gives back what does not fit beside so many bytes in use into as many as there were.
pub(super) fn keep_within(live: isize) {
    let most = MOST.fetch_max(live, Relaxed).max(live);
    while BYTES.load(Relaxed) > most - live {
        let Some(array) = waiting().largest() else { return };
        BYTES.fetch_sub(array.size.cast_signed(), Relaxed);
        array.free();
    }
}

fn is_for(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= ALIGN_MAX
}

/// Nothing that is done with it can fail half-way.
fn waiting() -> MutexGuard<'static, Waiting> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An array of the system's that nobody uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Array {
    place: NonNull<u8>,
    size: usize,
}

// SAFETY: nobody has it but whoever has this value, and the system's arrays belong to no thread.
unsafe impl Send for Array {}

impl Array {
    fn layout(self) -> Layout {
        Layout::from_size_align(self.size, ALIGN_MAX).expect("the size of an array that there was")
    }

    /// The beginning of it; nothing if the system refuses, and then it is free.
    fn cut(self, size: usize) -> Option<NonNull<u8>> {
        if size == self.size {
            return Some(self.place);
        }
        // SAFETY: it is an array of the system's with this layout, and nobody uses it.
        let place =
            NonNull::new(unsafe { System.realloc(self.place.as_ptr(), self.layout(), size) });
        if place.is_none() {
            self.free();
        }
        place
    }

    fn free(self) {
        // SAFETY: as for `cut`.
        unsafe { System.dealloc(self.place.as_ptr(), self.layout()) };
    }
}

/// Arrays in no order.
struct Waiting {
    arrays: [Option<Array>; PLACES],
}

impl Waiting {
    /// The smallest array that has this size, unless it is more than twice as large.
    fn take(&mut self, size: usize) -> Option<Array> {
        let fits = |array: &Option<Array>| {
            let found = array.map(|array| array.size)?;
            (size..=size.saturating_mul(2)).contains(&found).then_some(found)
        };
        let place = (0..PLACES).filter_map(|place| Some((fits(&self.arrays[place])?, place))).min();
        self.arrays[place?.1].take()
    }

    /// The one that gives back most.
    fn largest(&mut self) -> Option<Array> {
        self.arrays.iter_mut().max_by_key(|array| array.map(|array| array.size))?.take()
    }

    fn put(&mut self, array: Array) -> bool {
        let free = self.arrays.iter_mut().find(|place| place.is_none());
        free.map(|place| *place = Some(array)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody looks at what these hold.
    fn array(size: usize) -> Array {
        Array { place: NonNull::dangling(), size }
    }

    fn with(sizes: &[usize]) -> Waiting {
        let mut waiting = Waiting { arrays: [None; PLACES] };
        for &size in sizes {
            assert!(waiting.put(array(size)));
        }
        waiting
    }

    #[test]
    fn the_smallest_array_that_is_large_enough_is_used_again() {
        let mut waiting = with(&[900, 300, 500, 1_000]);
        assert_eq!(waiting.take(400), Some(array(500)));
        assert_eq!(waiting.take(400), None);
        assert_eq!(waiting.take(1_000), Some(array(1_000)));
        assert_eq!(waiting.largest(), Some(array(900)));
        assert_eq!(waiting.largest(), Some(array(300)));
        assert_eq!(waiting.largest(), None);
    }

    #[test]
    fn no_more_arrays_wait_than_there_are_places() {
        let mut waiting = with(&[7; PLACES]);
        assert!(!waiting.put(array(7)));
    }

    #[test]
    fn an_array_that_is_cut_keeps_its_beginning() {
        let layout = Layout::from_size_align(4 * LARGE, ALIGN_MAX).expect("a layout");
        // SAFETY: the array is written where it is, freed once, and not used after that.
        unsafe {
            let place = NonNull::new(System.alloc(layout)).expect("memory");
            place.write(42);
            let cut = Array { place, size: layout.size() }.cut(3 * LARGE).expect("memory");
            assert_eq!(cut.read(), 42);
            Array { place: cut, size: 3 * LARGE }.free();
        }
    }
}
