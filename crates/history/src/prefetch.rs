//! A hint to the processor that a place of an array is needed soon.
//!
//! Histories of millions of transactions do not fit in the caches. Where it is known early
//! which places are looked at next, memory can answer while other work is done.

/// Asks for the place `index` of a column; does nothing if there is none.
#[inline]
pub fn prefetch<T>(column: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(place) = column.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the hint has no effect on what the program sees, and the place exists.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (column, index);
}

#[cfg(test)]
mod tests {
    use super::prefetch;

    #[test]
    fn places_that_do_not_exist_may_be_asked_for() {
        prefetch(&[1, 2, 3], 1);
        prefetch(&[1, 2, 3], usize::MAX);
        prefetch::<u32>(&[], 0);
    }
}
