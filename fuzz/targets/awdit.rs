//! Fuzzes the format `awdit`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::read("awdit", bytes));
