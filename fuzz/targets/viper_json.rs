//! Fuzzes the format `viper-json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::read("viper-json", bytes));
