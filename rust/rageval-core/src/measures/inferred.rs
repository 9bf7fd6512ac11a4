//! `infap`: inferred average precision, for pools in which only a sample was judged.
//!
//! A negative relevance means "in the pool, not judged". Source: Yilmaz and Aslam, CIKM 2006; smoothing 1e-5 as in
//! trec_eval.

use super::{Cutoff, Measure, Query, Statistic, Word, share};

pub(super) static INFAP: Word = Word {
    name: "infap",
    aliases: &[],
    cutoff: Cutoff::Never,
    parameters: &[],
    level: true,
    statistic: Statistic::Mean,
    listed: true,
    build: |_| Ok(Box::new(InferredAp)),
};

const EPSILON: f64 = 0.00001;

struct InferredAp;

impl Measure for InferredAp {
    fn value(&self, query: &Query<'_>) -> f64 {
        let (mut relevant, mut nonrelevant, mut unjudged) = (0u32, 0u32, 0u32);
        let mut sum = 0.0;
        for hit in query.hits {
            if hit.relevance < 0 {
                unjudged += 1;
            } else if hit.relevance < query.level {
                nonrelevant += 1;
            } else {
                sum += expected_precision(hit.rank, relevant, nonrelevant, unjudged);
                relevant += 1;
            }
        }
        share(sum, query.relevant() as f64)
    }

    fn needs_nonrelevant(&self) -> bool {
        true
    }
}

fn expected_precision(rank: u32, relevant: u32, nonrelevant: u32, unjudged: u32) -> f64 {
    if rank == 0 {
        return 1.0;
    }
    let above = f64::from(rank);
    let pooled = f64::from(relevant + nonrelevant + unjudged) / above;
    let judged_relevant = (f64::from(relevant) + EPSILON)
        / (f64::from(relevant) + f64::from(nonrelevant) + 2.0 * EPSILON);
    1.0 / (above + 1.0) + (above / (above + 1.0)) * pooled * judged_relevant
}
