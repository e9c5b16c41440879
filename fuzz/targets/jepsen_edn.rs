//! Fuzzes the format `jepsen-edn`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::read("jepsen-edn", bytes));
