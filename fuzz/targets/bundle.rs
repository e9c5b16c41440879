//! Bundles: any bytes as an archive, and as changes of one.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::opened(bytes));
