//! Traces: any bytes as what clients send to a watch, and as a history.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    isolde_fuzz::watch(bytes);
    isolde_fuzz::read("trace", bytes);
});
