//! `bpref`: how often a relevant document is ranked above the first R judged nonrelevant ones.
//!
//! `bpref = 1/R * sum over relevant retrieved of (1 - min(n, R) / min(N, R))`, where n is the number of judged
//! nonrelevant documents above it and N the number of all of them. Unjudged documents and negative judgements are
//! ignored. Source: Buckley and Voorhees, SIGIR 2004, in trec_eval's form.

use super::{Cutoff, Measure, Query, Statistic, Word, share};

pub(super) static BPREF: Word = Word {
    name: "bpref",
    aliases: &[],
    cutoff: Cutoff::Never,
    parameters: &[],
    level: true,
    statistic: Statistic::Mean,
    listed: true,
    build: |_| Ok(Box::new(Bpref)),
};

struct Bpref;

impl Measure for Bpref {
    fn value(&self, query: &Query<'_>) -> f64 {
        bpref(query)
    }

    fn needs_nonrelevant(&self) -> bool {
        true
    }
}

pub(super) fn bpref(query: &Query<'_>) -> f64 {
    let relevant = query.relevant();
    let bound = query.nonrelevant().min(relevant) as f64;
    let mut nonrelevant = 0usize;
    let mut sum = 0.0;
    for hit in query.hits {
        if hit.relevance >= query.level {
            sum += if nonrelevant > 0 {
                1.0 - nonrelevant.min(relevant) as f64 / bound
            } else {
                1.0
            };
        } else if hit.relevance >= 0 {
            nonrelevant += 1;
        }
    }
    share(sum, relevant as f64)
}
