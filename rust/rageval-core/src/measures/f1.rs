//! `f1@k`: harmonic mean of precision@k and recall@k; 0 if both are 0.

use super::{Cutoff, Measure, Query, Statistic, Word, share};

pub(super) static F1: Word = Word {
    name: "f1",
    aliases: &[],
    cutoff: Cutoff::Required,
    parameters: &[],
    level: true,
    statistic: Statistic::Mean,
    listed: true,
    build: |parameters| {
        Ok(Box::new(F1Measure {
            cutoff: parameters.depth(),
        }))
    },
};

struct F1Measure {
    cutoff: usize,
}

impl Measure for F1Measure {
    fn value(&self, query: &Query<'_>) -> f64 {
        let found = query.relevant_within(self.cutoff) as f64;
        let precision = found / self.cutoff as f64;
        let recall = share(found, query.relevant() as f64);
        share(2.0 * precision * recall, precision + recall)
    }
}
