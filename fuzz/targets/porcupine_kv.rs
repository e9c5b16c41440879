//! Fuzzes the format `porcupine-kv`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::read("porcupine-kv", bytes));
