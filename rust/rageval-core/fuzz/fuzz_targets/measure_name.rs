//! Names of measures, in all spellings.
//!
//! Run it from `rust/rageval-core`; it needs a nightly compiler, a C++ compiler and `cargo install cargo-fuzz`:
//!
//! ```text
//! cargo +nightly fuzz run measure_name fuzz/corpus/measure_name fuzz/seeds/measure_name -- -max_len=4096 -max_total_time=300
//! ```
//!
//! A failing input is left in `fuzz/artifacts/measure_name`. Fix the reader, turn the input into a unit test,
//! and add it to `fuzz/seeds/measure_name`, so that every `cargo test` tries inputs like it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rageval_core_fuzz::measure_name(bytes));
