//! Fuzzes the format `viper-edn`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::read("viper-edn", bytes));
