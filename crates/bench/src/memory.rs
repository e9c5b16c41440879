//! Memory that the machine has ready.
//!
//! A virtual machine gives memory that nobody uses back to its host, and gets it again several
//! times slower than a program takes memory that is there. What that costs depends on what ran
//! before, and falls on the largest runs. Runs that are compared therefore begin with as much
//! memory ready as they need: another process takes it and gives it back just before. It is
//! another one since a process passes its peak on to those it starts.

use crate::measure::Program;
use std::alloc::{Layout, alloc, dealloc};

/// Huge pages, so that memory does not come back in small pieces.
const PAGE: usize = 2 << 20;
/// More than a run has at a time: it takes other places than the process before it.
const SPARE: f64 = 1.25;

/// Has as much memory ready as a run with this peak, in MiB, needs.
pub(crate) fn ready(peak: f64) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mebibytes = (peak * SPARE).ceil().to_string();
    Program::new(program, ["ready", &mebibytes]).run().map(|_| ())
}

/// Takes memory, writes to all of it and gives it back.
pub(crate) fn take(mebibytes: usize) -> Result<(), String> {
    let bytes = mebibytes.saturating_mul(1 << 20).max(PAGE);
    let layout = Layout::from_size_align(bytes, PAGE).map_err(|error| error.to_string())?;
    // SAFETY: the layout is not empty; the block is advised, written to and freed as a whole.
    unsafe {
        let start = alloc(layout);
        if start.is_null() {
            return Err(format!("expected {mebibytes} MiB of memory, found less"));
        }
        libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE);
        start.write_bytes(1, bytes);
        std::hint::black_box(start);
        dealloc(start, layout);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_taken_and_too_much_is_refused() {
        assert_eq!(take(3), Ok(()));
        assert!(take(usize::MAX >> 20).is_err());
    }
}
