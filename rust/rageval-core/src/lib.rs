//! Ranking measures with trec_eval's numbers, exact vector search and resampling statistics.
//!
//! Nothing here knows Python: the crate is usable from Rust alone.
#![forbid(unsafe_code)]

pub mod error;
pub mod evaluation;
pub mod hash;
pub mod judgements;
pub mod measures;
pub mod ranking;
pub mod ranx;
pub mod readers;
pub mod statistics;
pub mod vectors;

mod threads;
