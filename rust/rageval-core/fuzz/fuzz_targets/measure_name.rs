//! Names of measures, in all spellings.
//!
//! Run it from `rust/rageval-core`; it needs a nightly compiler, a C++ compiler and `cargo install cargo-fuzz`:
//!
//! ```text
//! cargo +nightly fuzz run measure_name fuzz/corpus/measure_name fuzz/seeds/measure_name -- -max_len=4096 -max_total_time=300
//! ```
//!
//! Where it finds something, it leaves the input in `fuzz/artifacts/measure_name`. Mend the reader, make a unit test of the input,
//! and add it to `fuzz/seeds/measure_name`, so that every `cargo test` tries its neighbours from then on.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rageval_core_fuzz::measure_name(bytes));
