//! The verifier: any bytes as a certificate of small histories.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::verify(bytes));
