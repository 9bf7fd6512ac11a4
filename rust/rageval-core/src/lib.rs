//! Ranking measures with trec_eval's numbers, exact vector search and resampling statistics.
//!
//! Nothing here knows Python: the crate is usable from Rust alone.
#![forbid(unsafe_code)]

pub mod statistics;
pub mod vectors;
