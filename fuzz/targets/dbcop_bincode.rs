//! Fuzzes the format `dbcop-bincode`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::read("dbcop-bincode", bytes));
