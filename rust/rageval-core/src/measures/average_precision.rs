//! `map` (average precision): the sum of the precision at each relevant document retrieved, divided by R.
//!
//! With a cutoff, only documents within it count, but R stays the same. 0 if there is no relevant document.
//! Source: Buckley and Voorhees, in TREC: Experiment and Evaluation in Information Retrieval (2005).

use super::{Cutoff, Measure, Query, Statistic, Word, share};

pub(super) static MAP: Word = Word {
    name: "map",
    aliases: &["ap", "map_cut", "average_precision"],
    cutoff: Cutoff::Optional,
    parameters: &[],
    level: true,
    statistic: Statistic::Mean,
    listed: true,
    build: |parameters| {
        Ok(Box::new(AveragePrecision {
            depth: parameters.depth(),
        }))
    },
};

struct AveragePrecision {
    depth: usize,
}

impl Measure for AveragePrecision {
    fn value(&self, query: &Query<'_>) -> f64 {
        average_precision(query, self.depth)
    }
}

pub(super) fn average_precision(query: &Query<'_>, depth: usize) -> f64 {
    let ranks = query
        .relevant_ranks()
        .take_while(|rank| *rank < depth)
        .enumerate();
    let sum = ranks.fold(0.0, |sum, (found, rank)| {
        sum + (found + 1) as f64 / (rank + 1) as f64
    });
    share(sum, query.relevant() as f64)
}
