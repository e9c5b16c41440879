//! Fuzzes the format `dbcop-json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::read("dbcop-json", bytes));
