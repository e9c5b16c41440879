//! Fuzzes the format `jepsen-txt`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::read("jepsen-txt", bytes));
