//! How rankings are read.

use std::num::NonZeroUsize;

use crate::ranking::Ties;

/// How rankings are read. The default is trec_eval's.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Order of documents with equal scores.
    pub ties: Ties,
    /// Look at the first so many documents only (`-M`), after ordering.
    pub depth: usize,
    /// Remove unjudged documents (`-J`), after `depth`.
    pub judged_only: bool,
    /// Remove a document whose id is the query's, as BEIR does.
    pub drop_self: bool,
    /// From which relevance on a document is relevant (`-l`); at least 1.
    pub level: i32,
    /// Score queries that are in the judgements and not in the run as an empty ranking (`-c`).
    pub missing_as_empty: bool,
    /// Keep the first of a document's several rows instead of refusing the run.
    pub keep_first: bool,
    /// Compute the lowest and highest value over all orders of tied documents.
    pub tie_range: bool,
    /// At most so many threads; one per core where None. The values do not depend on it.
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
