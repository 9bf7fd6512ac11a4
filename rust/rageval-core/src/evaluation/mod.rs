//! Measures over rankings: one pass computes all of them.
//!
//! An [`Evaluator`] holds measures and [`Options`]. The code that reads a run fills a [`Scratch`] with one query at a
//! time; the evaluator computes the query's values into a [`Part`], and parts become an [`Evaluation`]. A run can be
//! [`Rows`] in memory, a file (`readers`), or anything that another crate iterates over.

mod decimals;
mod evaluator;
mod options;
mod part;
mod rows;
#[cfg(test)]
mod tests;

pub use decimals::{Decimals, Whole};
pub use evaluator::Evaluator;
pub use options::Options;
pub(crate) use part::Met;
pub use part::{Part, Scratch};
pub use rows::Rows;
pub(crate) use rows::not_grouped;

use crate::error::quote;
use crate::measures::Statistic;

/// Values of all queries, by ascending query id (bytewise).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Query ids.
    pub queries: Vec<Vec<u8>>,
    /// `values[measure * queries + query]`.
    pub values: Vec<f64>,
    /// Lowest values over all orders of ties, if requested. For a measure that is a rank: the best rank.
    pub low: Option<Vec<f64>>,
    /// Highest values over all orders of ties, if requested. For a measure that is a rank: the worst rank, or 0 for
    /// none.
    pub high: Option<Vec<f64>>,
    /// Whether the query is missing from the run.
    pub missing: Vec<bool>,
    /// Whether the query has no relevant document.
    pub no_relevant: Vec<bool>,
    /// How many queries have judgements, whether or not they are evaluated.
    pub judged_queries: usize,
    /// How many queries of the run have no judgements; they are not evaluated.
    pub unjudged_queries: usize,
}

impl Evaluation {
    /// One measure's values.
    #[must_use]
    pub fn of(&self, measure: usize) -> &[f64] {
        &self.values[measure * self.queries.len()..][..self.queries.len()]
    }

    /// One measure's aggregate, in trec_eval's order of arithmetic: missing queries come last.
    #[must_use]
    pub fn aggregate(&self, measure: usize, statistic: Statistic) -> f64 {
        let values = self.of(measure);
        let missing = self.missing.iter().filter(|missing| **missing).count();
        if missing == 0 || statistic != Statistic::GeometricMean {
            return statistic.aggregate(values.iter().copied());
        }
        let present = values
            .iter()
            .zip(&self.missing)
            .filter(|(_, missing)| !**missing);
        let sum = present.fold(0.0, |sum, (value, _)| sum + value);
        let floor = values
            .iter()
            .zip(&self.missing)
            .find(|(_, missing)| **missing)
            .map_or(0.0, |(value, _)| *value);
        ((sum + missing as f64 * floor) / values.len() as f64).exp()
    }
}

/// The message for a NaN score.
#[must_use]
pub fn nan_message(query: &[u8], doc: &[u8]) -> String {
    format!(
        "the score of document {} for query {} is NaN, which cannot be ranked",
        quote(doc),
        quote(query)
    )
}

/// The message for a document that occurs twice in a query.
#[must_use]
pub fn duplicate_message(query: &[u8], doc: &[u8]) -> String {
    format!(
        "document {} is retrieved twice for query {}; remove one, or set duplicates to 'first'",
        quote(doc),
        quote(query)
    )
}
