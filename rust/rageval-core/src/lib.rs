//! Ranking measures with trec_eval's numbers, exact vector search and resampling statistics.
//!
//! The crate does not depend on Python and can be used from Rust directly. It forbids unsafe code, and no input makes it panic.
//!
//! ```
//! use std::path::Path;
//!
//! use rageval_core::evaluation::{Evaluator, Options};
//! use rageval_core::measures::{Compiled, Statistic};
//! use rageval_core::readers::{evaluate_run_text, read_judgements_text};
//!
//! let qrels = "q1 0 doc-a 1\nq1 0 doc-b 0\nq2 0 doc-a 1\n";
//! let run = "q1 Q0 doc-b 1 2.5 bm25\nq1 Q0 doc-a 2 1.5 bm25\nq2 Q0 doc-a 1 3.0 bm25\n";
//!
//! let measures = vec![Compiled::parse("rr")?, Compiled::parse("nDCG@10")?];
//! let evaluator = Evaluator::new(measures, Options::default())?;
//! let judgements = read_judgements_text(Path::new("qrels"), qrels.into())?;
//! let evaluation = evaluate_run_text(&evaluator, &judgements, Path::new("run"), run.into())?;
//!
//! assert_eq!(evaluation.queries, [b"q1", b"q2"]);
//! assert_eq!(evaluation.of(0), [0.5, 1.0]);
//! assert_eq!(evaluation.aggregate(0, Statistic::Mean), 0.75);
//! # Ok::<(), rageval_core::error::Error>(())
//! ```
//!
//! To read files, use [`readers::read_judgements`] and [`readers::evaluate_run`]. `examples/score.rs` does trec_eval's
//! job on one page.
//!
//! | module | what it holds |
//! |---|---|
//! | [`readers`] | run and qrels files: TREC, BEIR, plain, gzip, Zstandard |
//! | [`judgements`] | relevance judgements, indexed |
//! | [`measures`] | one file per measure, and the reader of their names |
//! | [`ranking`], [`ranx`] | ranks by counting, and the rules for ties |
//! | [`evaluation`] | measures over all queries of a run, on all cores |
//! | [`fusion`] | one ranking from several, and the order of a ranking |
//! | [`statistics`] | bootstrap, permutation and t-tests, Holm's correction |
//! | [`text`] | sentences, names, and the share of words found in other texts |
//! | [`unigram`] | tokens of models with SentencePiece's unigram vocabularies |
//! | [`vectors`] | cosine and exact nearest neighbours |
//! | [`bm25`] | lexical search over corpora larger than memory |
//! | [`hash`], [`error`] | hash tables of identifiers, and the error type |
#![forbid(unsafe_code)]
#![deny(rustdoc::broken_intra_doc_links)]

pub mod bm25;
pub mod error;
pub mod evaluation;
pub mod fusion;
pub mod hash;
pub mod judgements;
pub mod measures;
pub mod ranking;
pub mod ranx;
pub mod readers;
pub mod statistics;
pub mod text;
pub mod unigram;
pub mod vectors;

mod threads;
