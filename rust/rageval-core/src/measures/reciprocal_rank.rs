//! `rr` (mrr): one over the rank of the first relevant document; 0 if it is beyond the cutoff.

use super::{Cutoff, Measure, Query, Statistic, Word};

pub(super) static RR: Word = Word {
    name: "rr",
    aliases: &["mrr", "recip_rank", "reciprocal_rank"],
    cutoff: Cutoff::Optional,
    parameters: &[],
    level: true,
    statistic: Statistic::Mean,
    listed: true,
    build: |parameters| {
        Ok(Box::new(ReciprocalRank {
            depth: parameters.depth(),
        }))
    },
};

struct ReciprocalRank {
    depth: usize,
}

impl Measure for ReciprocalRank {
    fn value(&self, query: &Query<'_>) -> f64 {
        let first = query
            .relevant_ranks()
            .next()
            .filter(|rank| *rank < self.depth);
        first.map_or(0.0, |rank| 1.0 / (rank + 1) as f64)
    }
}
