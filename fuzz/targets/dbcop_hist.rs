//! Fuzzes the format `dbcop-hist`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::read("dbcop-hist", bytes));
