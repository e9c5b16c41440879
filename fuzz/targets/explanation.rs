//! Explanations: any bytes as choices of a small history, held against the definitions.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::explained(bytes));
