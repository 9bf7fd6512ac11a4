//! `num_ret`, `num_rel`, `num_rel_ret`: the number of documents that were retrieved, are relevant, or both. Summed over
//! queries.

use super::{Cutoff, Measure, Query, Statistic, Word};

/// A count is a function of a query.
struct Count {
    count: fn(&Query<'_>) -> usize,
    nonrelevant: bool,
}

impl Measure for Count {
    fn value(&self, query: &Query<'_>) -> f64 {
        (self.count)(query) as f64
    }

    fn needs_nonrelevant(&self) -> bool {
        self.nonrelevant
    }
}

macro_rules! count {
    ($word:ident, $name:literal, $level:literal, $listed:literal, $nonrelevant:literal, $count:expr) => {
        pub(super) static $word: Word = Word {
            name: $name,
            aliases: &[],
            cutoff: Cutoff::Never,
            parameters: &[],
            level: $level,
            statistic: Statistic::Sum,
            listed: $listed,
            build: |_| {
                Ok(Box::new(Count {
                    count: $count,
                    nonrelevant: $nonrelevant,
                }))
            },
        };
    };
}

count!(NUM_RET, "num_ret", false, true, false, |query| query
    .retrieved);
count!(NUM_REL, "num_rel", true, true, false, |query| query
    .relevant());
count!(NUM_REL_RET, "num_rel_ret", true, true, false, |query| query
    .relevant_retrieved());
count!(NUM_Q, "num_q", false, false, false, |_| 1);
count!(
    NUM_NONREL_JUDGED_RET,
    "num_nonrel_judged_ret",
    true,
    false,
    true,
    |query| {
        query
            .hits
            .iter()
            .filter(|hit| (0..query.level).contains(&hit.relevance))
            .count()
    }
);
