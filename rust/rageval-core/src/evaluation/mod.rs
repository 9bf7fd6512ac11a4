//! Measures over rankings: one pass computes all that was asked for.
//!
//! An [`Evaluator`] holds measures and [`Options`] and computes the values of one query after the other, from a
//! [`Scratch`] that whoever reads the run has filled, into a [`Part`]; parts become an [`Evaluation`]. Runs come as
//! [`Rows`] in memory, as files (`readers`), or as whatever another crate walks by itself.

mod evaluator;
mod options;
mod part;
mod rows;
#[cfg(test)]
mod tests;

pub use evaluator::Evaluator;
pub use options::Options;
pub(crate) use part::Met;
pub use part::{Part, Scratch};
pub use rows::Rows;

use crate::error::quote;
use crate::measures::Statistic;

/// Values of all queries, by rising query id (bytewise).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Query ids.
    pub queries: Vec<Vec<u8>>,
    /// `values[measure * queries + query]`.
    pub values: Vec<f64>,
    /// Lowest values over all orders of ties, where asked for; the best rank for a measure that is a rank.
    pub low: Option<Vec<f64>>,
    /// Highest values over all orders of ties, where asked for; the worst rank, 0 for none, for a measure that is a rank.
    pub high: Option<Vec<f64>>,
    /// Whether the query is not in the run.
    pub missing: Vec<bool>,
    /// Whether the query has no relevant document.
    pub no_relevant: Vec<bool>,
    /// How many queries have judgements, whether they are evaluated or not.
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

/// What to say of a NaN score.
#[must_use]
pub fn nan_message(query: &[u8], doc: &[u8]) -> String {
    format!(
        "the score of document {} for query {} is NaN; NaN has no rank",
        quote(doc),
        quote(query)
    )
}

/// What to say of a document that a query has twice.
#[must_use]
pub fn duplicate_message(query: &[u8], doc: &[u8]) -> String {
    format!(
        "document {} is retrieved twice for query {}; remove one, or set duplicates to 'first'",
        quote(doc),
        quote(query)
    )
}
