//! `success@k` (hit rate): 1 if a relevant document is among the first k, else 0.

use super::{Cutoff, Measure, Query, Statistic, Word};

pub(super) static SUCCESS: Word = Word {
    name: "success",
    aliases: &["hit", "hit_rate", "hits", "accuracy", "top_k_accuracy"],
    cutoff: Cutoff::Required,
    parameters: &[],
    level: true,
    statistic: Statistic::Mean,
    listed: true,
    build: |parameters| {
        Ok(Box::new(Success {
            cutoff: parameters.depth(),
        }))
    },
};

struct Success {
    cutoff: usize,
}

impl Measure for Success {
    fn value(&self, query: &Query<'_>) -> f64 {
        f64::from(u8::from(query.relevant_within(self.cutoff) > 0))
    }
}
