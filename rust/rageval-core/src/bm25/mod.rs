//! BM25 over a corpus of any size: an index that is built in bounded memory, read in place, and searched exactly.
//!
//! A score is the sum, in float32 and in the order of the query's words, of what each word contributes; a contribution
//! is computed in float64 and rounded once. These are the steps of the Python library bm25s, so the scores are the same
//! bits. Documents are skipped only if a bound proves that they cannot be among the best.
//!
//! [`Builder`] numbers words and documents in the order in which they come. Its memory holds the words, the ids and the
//! lengths of documents, and the postings of the last documents; it spills earlier ones to files. [`Index`] reads the
//! finished file, or the same bytes in memory. Every page has a checksum that is compared before the page is first
//! used. What a file holds does not depend on the number of threads.

mod blocks;
mod builder;
mod cursor;
mod file;
mod index;
mod interner;
mod runs;
mod scoring;
mod search;
mod splitting;
#[cfg(test)]
mod tests;

pub use builder::{Builder, Expand, Output};
pub use index::{Ids, Index, View};
pub use scoring::{Method, Settings};
pub use search::{Hit, Searcher};
pub use splitting::{Alphabet, Splitter};
