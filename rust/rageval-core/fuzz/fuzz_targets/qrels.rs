//! Qrels files: TREC's and BEIR's, plain and compressed.
//!
//! Run it from `rust/rageval-core`; it needs a nightly compiler, a C++ compiler and `cargo install cargo-fuzz`:
//!
//! ```text
//! cargo +nightly fuzz run qrels fuzz/corpus/qrels fuzz/seeds/qrels -- -max_len=4096 -max_total_time=300
//! ```
//!
//! A failing input is left in `fuzz/artifacts/qrels`. Fix the reader, turn the input into a unit test,
//! and add it to `fuzz/seeds/qrels`, so that every `cargo test` tries inputs like it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rageval_core_fuzz::qrels(bytes));
