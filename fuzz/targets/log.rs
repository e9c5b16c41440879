//! Fuzzes the format `log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::read("log", bytes));
