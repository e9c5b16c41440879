//! Fuzzes the format `porcupine-etcd`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::read("porcupine-etcd", bytes));
