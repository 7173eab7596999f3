//! Looks for bytes that a reader of the proxy gets wrong.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| caliban_egress::fuzzed::read(input));
