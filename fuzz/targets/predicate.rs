//! SQL predicates: any bytes as a condition, and as choices of one.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::evaluated(bytes));
