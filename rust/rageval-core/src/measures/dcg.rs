//! `ndcg` and `dcg`: (normalised) discounted cumulative gain.
//!
//! `DCG@k = sum over ranks i <= k of gain_i / log2(i + 1)`; nDCG divides by the DCG of the ideal ranking of all judged
//! documents. Gain is the relevance where it is positive (`gain=linear`) or `2^relevance - 1` (`gain=exp`).
//! Both are 0 without a positive judgement. The relevance level has no effect.
//! Source: Järvelin and Kekäläinen, ACM TOIS 20 (2002); exponential gain: Burges et al., ICML 2005.

use super::{Cutoff, Hit, Measure, Parameters, Query, Statistic, Word, discount};
use crate::error::Result;

pub(super) static NDCG: Word = Word {
    name: "ndcg",
    aliases: &["ndcg_cut"],
    cutoff: Cutoff::Optional,
    parameters: &["gain"],
    level: false,
    statistic: Statistic::Mean,
    listed: true,
    build: |parameters| Dcg::build(parameters, true),
};

pub(super) static DCG: Word = Word {
    name: "dcg",
    aliases: &[],
    cutoff: Cutoff::Optional,
    parameters: &["gain"],
    level: false,
    statistic: Statistic::Mean,
    listed: true,
    build: |parameters| Dcg::build(parameters, false),
};

struct Dcg {
    depth: usize,
    exponential: bool,
    normalized: bool,
}

impl Dcg {
    fn build(parameters: &Parameters, normalized: bool) -> Result<Box<dyn Measure>> {
        let exponential = parameters.choice("gain", &["linear", "exp"])? == "exp";
        Ok(Box::new(Self {
            depth: parameters.depth(),
            exponential,
            normalized,
        }))
    }

    fn gain(&self, relevance: i32) -> f64 {
        match relevance {
            ..=0 => 0.0,
            _ if self.exponential => f64::from(relevance).exp2() - 1.0,
            _ => f64::from(relevance),
        }
    }

    fn found(&self, hits: &[Hit]) -> f64 {
        hits.iter()
            .take_while(|hit| (hit.rank as usize) < self.depth)
            .filter(|hit| hit.relevance > 0)
            .fold(0.0, |sum, hit| {
                sum + self.gain(hit.relevance) / discount(hit.rank as usize)
            })
    }

    fn ideal(&self, gains: &[i32]) -> f64 {
        let best = gains.iter().take(self.depth).enumerate();
        best.fold(0.0, |sum, (rank, &gain)| {
            sum + self.gain(gain) / discount(rank)
        })
    }
}

impl Measure for Dcg {
    fn value(&self, query: &Query<'_>) -> f64 {
        let found = self.found(query.hits);
        if !self.normalized || found == 0.0 {
            return found;
        }
        let ideal = self.ideal(query.gains);
        // Exponential gains overflow beyond 2^1023: infinity over infinity is NaN, which the evaluator refuses.
        found / ideal
    }
}
