//! `capped_recall@k`: relevant documents among the first k, divided by `min(k, R)`, the most that are possible.
//!
//! 0 if there is no relevant document. Source: BEIR's `R_cap@k` (Thakur et al., NeurIPS 2021).

use super::{Cutoff, Measure, Query, Statistic, Word, share};

pub(super) static CAPPED_RECALL: Word = Word {
    name: "capped_recall",
    aliases: &["r_cap", "recall_cap"],
    cutoff: Cutoff::Required,
    parameters: &[],
    level: true,
    statistic: Statistic::Mean,
    listed: true,
    build: |parameters| {
        Ok(Box::new(CappedRecall {
            cutoff: parameters.depth(),
        }))
    },
};

struct CappedRecall {
    cutoff: usize,
}

impl Measure for CappedRecall {
    fn value(&self, query: &Query<'_>) -> f64 {
        share(
            query.relevant_within(self.cutoff) as f64,
            query.relevant().min(self.cutoff) as f64,
        )
    }
}
