//! Keeping the heap small: large arrays go back to the system when they are freed.
//!
//! glibc raises the size from which it maps an array by itself with every array that
//! is freed, up to 32 MiB. What a reader frees then stays in the heap under arrays that
//! live on: 45 MiB of a million transactions in the binary format.

/// From this size on, an array has pages of its own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: i32 = 1 << 20;

/// Has effect on arrays that are made later.
pub(crate) fn return_large_arrays() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: no thread was started yet, and the call changes nothing but a setting of
    // the allocator. If it is refused, the allocator works as before.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}
