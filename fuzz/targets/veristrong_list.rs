//! Fuzzes the format `veristrong-list`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::read("veristrong-list", bytes));
