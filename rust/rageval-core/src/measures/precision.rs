//! `precision@k`: relevant documents among the first k, divided by k even if fewer were retrieved.
//!
//! `relative_P` (for the drop-in) divides by the most that the cutoff allows: `min(k, R)`. Source: trec_eval.

use super::{Cutoff, Measure, Parameters, Query, Statistic, Word, share};
use crate::error::Result;

pub(super) static PRECISION: Word = Word {
    name: "precision",
    aliases: &["p", "prec"],
    cutoff: Cutoff::Required,
    parameters: &[],
    level: true,
    statistic: Statistic::Mean,
    listed: true,
    build: |parameters| build(parameters, false),
};

pub(super) static RELATIVE_PRECISION: Word = Word {
    name: "relative_precision",
    aliases: &["relative_p"],
    cutoff: Cutoff::Required,
    parameters: &[],
    level: true,
    statistic: Statistic::Mean,
    listed: false,
    build: |parameters| build(parameters, true),
};

struct Precision {
    cutoff: usize,
    relative: bool,
}

fn build(parameters: &Parameters, relative: bool) -> Result<Box<dyn Measure>> {
    Ok(Box::new(Precision {
        cutoff: parameters.depth(),
        relative,
    }))
}

impl Measure for Precision {
    fn value(&self, query: &Query<'_>) -> f64 {
        let possible = if self.relative {
            self.cutoff.min(query.relevant())
        } else {
            self.cutoff
        };
        share(query.relevant_within(self.cutoff) as f64, possible as f64)
    }
}
