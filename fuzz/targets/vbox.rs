//! Fuzzes the format `vbox`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::read("vbox", bytes));
