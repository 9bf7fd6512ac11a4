//! `rbp(p=0.8)`: rank-biased precision, `(1 - p) * sum over relevant of p^(rank - 1)`.
//!
//! Relevance is binary at the relevance level. Unjudged documents count as not relevant (the lower bound of the
//! paper's residual interval). Source: Moffat and Zobel, ACM TOIS 27 (2008).

use crate::error::Error;

use super::{Cutoff, Measure, Query, Statistic, Word};

pub(super) static RBP: Word = Word {
    name: "rbp",
    aliases: &["rank_biased_precision"],
    cutoff: Cutoff::Optional,
    parameters: &["p"],
    level: true,
    statistic: Statistic::Mean,
    listed: true,
    build: |parameters| {
        let persistence = parameters.number("p", 0.8, 0.0..=1.0)?;
        if persistence == 0.0 || persistence == 1.0 {
            return Err(Error::Usage(format!(
                "p={persistence} is not between 0 and 1 (exclusive)"
            )));
        }
        Ok(Box::new(Rbp {
            depth: parameters.depth(),
            persistence,
        }))
    },
};

struct Rbp {
    depth: usize,
    persistence: f64,
}

impl Measure for Rbp {
    fn value(&self, query: &Query<'_>) -> f64 {
        let ranks = query.relevant_ranks().take_while(|rank| *rank < self.depth);
        let sum: f64 = ranks
            .map(|rank| {
                self.persistence
                    .powi(i32::try_from(rank).unwrap_or(i32::MAX))
            })
            .sum();
        (1.0 - self.persistence) * sum
    }
}
