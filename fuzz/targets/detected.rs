//! Fuzzes the choice of a format by content, and the reader it leads to.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::detect(bytes));
