//! Texts in any script, and bytes that are not text.
//!
//! Run it from `rust/rageval-core`; it needs a nightly compiler, a C++ compiler and `cargo install cargo-fuzz`:
//!
//! ```text
//! cargo +nightly fuzz run text fuzz/corpus/text fuzz/seeds/text -- -max_len=4096 -max_total_time=300
//! ```
//!
//! A failing input is left in `fuzz/artifacts/text`. Fix the kernel, turn the input into a unit test,
//! and add it to `fuzz/seeds/text`, so that every `cargo test` tries inputs like it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rageval_core_fuzz::text(bytes));
