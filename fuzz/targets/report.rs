//! Reports: any bytes as choices of a history, and as changes of its report.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolde_fuzz::reported(bytes));
