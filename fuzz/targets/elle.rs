//! `isolde elle`: any bytes as a history, of which everything is asked.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::asked(bytes));
