//! What one thread reuses and produces: buffers, and the values of the queries it processed.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Decimals;
use crate::hash::IndexTable;
use crate::judgements::Judgements;
use crate::measures::Hit;
use crate::ranking::{Candidate, Ranker};

/// Buffers that are reused from ranking to ranking.
#[derive(Default)]
pub struct Scratch {
    /// Scores as cast, in the order of the run.
    pub scores: Vec<f64>,
    /// The judged documents among them.
    pub candidates: Vec<Candidate>,
    pub(super) hits: Vec<Hit>,
    pub(super) kept: Vec<Hit>,
    pub(super) measured: Vec<Hit>,
    pub(super) ranker: Ranker,
    pub(super) tied: Vec<u32>,
    pub(super) tied_scores: Vec<f64>,
    pub(super) kept_rows: Vec<usize>,
    pub(super) hashes: Vec<u64>,
    pub(super) seen: IndexTable,
    pub(super) decimals: Decimals,
}

/// Which judged queries have been processed, shared by all threads.
pub(crate) struct Met {
    queries: Vec<AtomicBool>,
    again: AtomicBool,
}

impl Met {
    pub(crate) fn new(judgements: &Judgements) -> Self {
        let queries = judgements.query_ids().iter();
        Self {
            queries: queries.map(|_| AtomicBool::new(false)).collect(),
            again: AtomicBool::new(false),
        }
    }

    pub(crate) fn enter(&self, query: usize) {
        if self.queries[query].swap(true, Ordering::Relaxed) {
            self.again.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a query occurred a second time, which makes the values of its separate parts useless.
    pub(crate) fn again(&self) -> bool {
        self.again.load(Ordering::Relaxed)
    }
}

/// Values of some queries, in the order in which they were processed.
#[derive(Default)]
pub struct Part {
    /// Index of each query in the judgements.
    pub queries: Vec<usize>,
    /// `values[query * measures + measure]`.
    pub(super) values: Vec<f64>,
    pub(super) low: Vec<f64>,
    pub(super) high: Vec<f64>,
    /// Ids of queries without judgements.
    pub unjudged: HashSet<Vec<u8>>,
}

impl Part {
    /// Whether no query was processed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty() && self.unjudged.is_empty()
    }
}
