//! The heap: what is in use is counted, a limit is kept, and large arrays go back to the
//! system when they are freed, or are [`kept`].
//!
//! Checks ask [`is_full`] whenever they look at the clock and end by themselves. An array
//! that would go far beyond the limit at once never comes to be: its thread waits for ever,
//! and whoever waits for the thread gives the answer that there is ([`is_exceeded`]).
//!
//! glibc raises the size from which it maps an array by itself with every array that
//! is freed, up to 32 MiB. What a reader frees then stays in the heap under arrays that
//! live on: 45 MiB of a million transactions in the binary format.
//!
//! Checks go through arrays at random places, and of an array of many small pages most are
//! looked up anew each time. Large arrays are therefore asked to have huge pages.

pub(crate) mod kept;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};
use std::time::Duration;

/// From this size on, an array has pages of its own.
const LARGE: usize = 1 << 20;
/// From this size on, an array has huge pages, if the system gives them.
#[cfg(target_os = "linux")]
const HUGE: usize = 4 << 20;
/// The size of a huge page, where there are any.
#[cfg(target_os = "linux")]
const HUGE_PAGE: usize = 2 << 20;
/// What a thread takes and frees is added up by itself as far as this.
const BATCH: usize = 64 << 10;
/// What the program itself needs, whatever it does, with the buffers of readers.
const PROGRAM: isize = 2 << 20;

/// Bytes in use, but for what threads did not report yet.
static LIVE: AtomicIsize = AtomicIsize::new(0);
/// Bytes that may be in use.
static LIMIT: AtomicIsize = AtomicIsize::new(isize::MAX);
/// Bytes that no thread goes beyond, but the one that waits for the others.
static CEILING: AtomicIsize = AtomicIsize::new(isize::MAX);
/// Whether a thread wanted to.
static IS_EXCEEDED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static PENDING: Cell<isize> = const { Cell::new(0) };
    /// Whether this is the thread that gives the answer.
    static ANSWERS: Cell<bool> = const { Cell::new(false) };
}

#[global_allocator]
static HEAP: Counted = Counted;

/// The heap of the system, with everything in it counted.
struct Counted;

// SAFETY: all is done by the allocator of the system, which is asked for what was asked for.
// Counting takes no memory: the counters are atomics, and cells that need no destructor. An array
// that is kept has nobody else, and is used again by one.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let kept = kept::take(layout);
        count(taken_by(layout.size()));
        match kept {
            Some(place) => place.as_ptr(),
            // SAFETY: the caller keeps to the same contract.
            None => with_huge_pages(unsafe { System.alloc(layout) }, layout.size()),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let kept = kept::take(layout);
        count(taken_by(layout.size()));
        match kept {
            Some(place) => {
                // SAFETY: the array has this size, and nobody else uses it.
                unsafe { place.write_bytes(0, layout.size()) };
                place.as_ptr()
            }
            // SAFETY: the caller keeps to the same contract.
            None => with_huge_pages(unsafe { System.alloc_zeroed(layout) }, layout.size()),
        }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-taken_by(layout.size()));
        if !kept::put(place, layout) {
            // SAFETY: the caller keeps to the same contract.
            unsafe { System.dealloc(place, layout) };
        }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(taken_by(size) - taken_by(layout.size()));
        // SAFETY: the caller keeps to the same contract.
        with_huge_pages(unsafe { System.realloc(place, layout, size) }, size)
    }
}

/// The same array. Only pages that lie in it as a whole become huge, so it takes no more memory
/// than was asked for.
#[inline]
fn with_huge_pages(place: *mut u8, size: usize) -> *mut u8 {
    #[cfg(target_os = "linux")]
    if size >= HUGE && !place.is_null() {
        let before = place.align_offset(HUGE_PAGE);
        let inside = size.saturating_sub(before) & !(HUGE_PAGE - 1);
        // SAFETY: all of this lies in the array, and what it holds stays as it is. If it is
        // refused, pages are small.
        unsafe {
            libc::madvise(place.add(before).cast(), inside, libc::MADV_HUGEPAGE);
        }
    }
    place
}

/// Has effect on arrays that are made later.
pub(crate) fn return_large_arrays() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: no thread was started yet, and the call changes nothing but a setting of
    // the allocator. If it is refused, the allocator works as before.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE.try_into().unwrap_or(i32::MAX));
    }
}

/// Sets the limit.
pub(crate) fn limit(bytes: usize) {
    LIMIT.store(isize::try_from(bytes).unwrap_or(isize::MAX), Relaxed);
}

/// Bytes in use.
pub(crate) fn in_use() -> usize {
    LIVE.load(Relaxed).max(0).unsigned_abs()
}

/// Whether as much is in use as may be.
pub(crate) fn is_full() -> bool {
    LIVE.load(Relaxed) > LIMIT.load(Relaxed)
}

/// From now on, threads other than this one are held before they go beyond the limit by
/// more than a thirty-second: the rest of ten per cent is for what the heap cannot use.
pub(crate) fn hold_others() {
    ANSWERS.set(true);
    IS_EXCEEDED.store(false, Relaxed);
    let limit = LIMIT.load(Relaxed);
    CEILING.store(limit.saturating_add(limit / 32).saturating_add(PROGRAM), Relaxed);
}

/// Threads are no longer held.
pub(crate) fn hold_nobody() {
    CEILING.store(isize::MAX, Relaxed);
}

/// Whether a thread is held. What it holds in turn is lost.
pub(crate) fn is_exceeded() -> bool {
    IS_EXCEEDED.load(Relaxed)
}

/// The bytes that so many take in the heap: with what stands before them, in steps of 16.
const fn taken_by(size: usize) -> isize {
    (size.saturating_add(23) & !15).cast_signed()
}

#[inline]
fn count(change: isize) {
    let pending = PENDING.get() + change;
    if pending.unsigned_abs() < BATCH {
        PENDING.set(pending);
    } else {
        report(pending);
    }
}

#[cold]
fn report(pending: isize) {
    PENDING.set(0);
    let live = LIVE.fetch_add(pending, Relaxed) + pending;
    if pending > 0 {
        kept::keep_within(live);
    }
    if pending > 0 && live > CEILING.load(Relaxed) && !ANSWERS.get() {
        IS_EXCEEDED.store(true, Relaxed);
        // An allocator must not unwind, and without the array there is no going on.
        loop {
            std::thread::sleep(Duration::from_hours(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_counts_until_it_is_freed() {
        // Far more than other tests have at the same time; pages that nobody touches cost nothing.
        const MUCH: usize = 1 << 30;
        let before = LIVE.load(Relaxed);
        let array = vec![0u8; MUCH];
        let with_it = LIVE.load(Relaxed);
        assert!(with_it - before > (MUCH / 2).cast_signed(), "{before} and {with_it}");
        drop(array);
        assert!(LIVE.load(Relaxed) < with_it - (MUCH / 2).cast_signed());
    }
}
