//! How rankings are read.

use std::num::NonZeroUsize;

use crate::ranking::Ties;

/// How rankings are read. The default is the same as trec_eval's.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Order of documents with equal scores.
    pub ties: Ties,
    /// Use only the first so many documents (`-M`), after ordering.
    pub depth: usize,
    /// Remove unjudged documents (`-J`), after `depth`.
    pub judged_only: bool,
    /// Remove a document whose id equals the query's, as BEIR does.
    pub drop_self: bool,
    /// The lowest relevance that counts as relevant (`-l`); at least 1.
    pub level: i32,
    /// Score queries that are judged but missing from the run as an empty ranking (`-c`).
    pub missing_as_empty: bool,
    /// If a document occurs several times, keep its first row instead of refusing the run.
    pub keep_first: bool,
    /// Compute the lowest and highest value over all orders of tied documents.
    pub tie_range: bool,
    /// The most threads to use; `None` means one per core. The values do not depend on it.
    pub threads: Option<NonZeroUsize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ties: Ties::TrecEval,
            depth: usize::MAX,
            judged_only: false,
            drop_self: false,
            level: 1,
            missing_as_empty: false,
            keep_first: false,
            tie_range: false,
            threads: None,
        }
    }
}
