//! Fuzzes the format `jepsen-json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::read("jepsen-json", bytes));
