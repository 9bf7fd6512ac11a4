//! Run files, plain and compressed, in blocks of a few bytes (the compiler sets `cfg(fuzzing)`, which makes them
//! small).
//!
//! Run it from `rust/rageval-core`; it needs a nightly compiler, a C++ compiler and `cargo install cargo-fuzz`:
//!
//! ```text
//! cargo +nightly fuzz run run fuzz/corpus/run fuzz/seeds/run -- -max_len=4096 -max_total_time=300
//! ```
//!
//! A failing input is left in `fuzz/artifacts/run`. Fix the reader, turn the input into a unit test,
//! and add it to `fuzz/seeds/run`, so that every `cargo test` tries inputs like it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rageval_core_fuzz::run(bytes));
