//! `recall@k`: relevant documents among the first k, divided by R; 0 if there is no relevant document.

use super::{Cutoff, Measure, Query, Statistic, Word, share};

pub(super) static RECALL: Word = Word {
    name: "recall",
    aliases: &["r"],
    cutoff: Cutoff::Required,
    parameters: &[],
    level: true,
    statistic: Statistic::Mean,
    listed: true,
    build: |parameters| {
        Ok(Box::new(Recall {
            cutoff: parameters.depth(),
        }))
    },
};

struct Recall {
    cutoff: usize,
}

impl Measure for Recall {
    fn value(&self, query: &Query<'_>) -> f64 {
        share(
            query.relevant_within(self.cutoff) as f64,
            query.relevant() as f64,
        )
    }
}
