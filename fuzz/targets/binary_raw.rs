//! Fuzzes the format `binary-raw`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::read("binary-raw", bytes));
