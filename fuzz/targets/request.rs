//! Requests of HTTP: any bytes as one, and as a name in a path.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::requested(bytes));
