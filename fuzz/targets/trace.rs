//! Traces: any bytes as what clients send to a watch.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::watch(bytes));
