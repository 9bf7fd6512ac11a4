//! Texts in any script, and what is no text.
//!
//! Run it from `rust/rageval-core`; it needs a nightly compiler, a C++ compiler and `cargo install cargo-fuzz`:
//!
//! ```text
//! cargo +nightly fuzz run text fuzz/corpus/text fuzz/seeds/text -- -max_len=4096 -max_total_time=300
//! ```
//!
//! Where it finds something, it leaves the input in `fuzz/artifacts/text`. Mend the kernel, make a unit test of the input,
//! and add it to `fuzz/seeds/text`, so that every `cargo test` tries its neighbours from then on.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rageval_core_fuzz::text(bytes));
