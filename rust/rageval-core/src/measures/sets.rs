//! Measures of the retrieved set, regardless of order: `set_precision`, `set_recall`, `set_f(beta=1)`, and for the
//! drop-in `set_map`, `set_relative_P` and `utility`.
//!
//! `set_f = (x + 1) * P * R / (x * P + R)`, where x is trec_eval's `beta` in `set_F` (a weight, not its square).
//! 0 if the formula would divide by 0.

use super::{Cutoff, Measure, Query, Statistic, Word, share};

struct SetMeasure {
    value: fn(&Counts) -> f64,
}

/// The contingency table of a retrieved set.
struct Counts {
    found: f64,
    retrieved: f64,
    relevant: f64,
}

impl Counts {
    fn of(query: &Query<'_>) -> Self {
        Self {
            found: query.relevant_retrieved() as f64,
            retrieved: query.retrieved as f64,
            relevant: query.relevant() as f64,
        }
    }
}

impl Measure for SetMeasure {
    fn value(&self, query: &Query<'_>) -> f64 {
        (self.value)(&Counts::of(query))
    }
}

macro_rules! set_measure {
    ($word:ident, $name:literal, $aliases:expr, $listed:literal, $value:expr) => {
        pub(super) static $word: Word = Word {
            name: $name,
            aliases: $aliases,
            cutoff: Cutoff::Never,
            parameters: &[],
            level: true,
            statistic: Statistic::Mean,
            listed: $listed,
            build: |_| Ok(Box::new(SetMeasure { value: $value })),
        };
    };
}

set_measure!(SET_PRECISION, "set_precision", &["set_p"], true, |n| share(
    n.found,
    n.retrieved
));
set_measure!(SET_RECALL, "set_recall", &["set_r"], true, |n| share(
    n.found, n.relevant
));
set_measure!(SET_MAP, "set_map", &[], false, |n| share(
    n.found * n.found,
    n.retrieved * n.relevant
));
set_measure!(
    SET_RELATIVE_PRECISION,
    "set_relative_precision",
    &["set_relative_p"],
    false,
    |n| { share(n.found, n.retrieved.min(n.relevant)) }
);
set_measure!(UTILITY, "utility", &[], false, |n| n.found
    - (n.retrieved - n.found));

pub(super) static SET_F: Word = Word {
    name: "set_f",
    aliases: &[],
    cutoff: Cutoff::Never,
    parameters: &["beta"],
    level: true,
    statistic: Statistic::Mean,
    listed: true,
    build: |parameters| {
        Ok(Box::new(SetF {
            weight: parameters.number("beta", 1.0, 0.0..=1e6)?,
        }))
    },
};

struct SetF {
    weight: f64,
}

impl Measure for SetF {
    fn value(&self, query: &Query<'_>) -> f64 {
        let counts = Counts::of(query);
        let precision = share(counts.found, counts.retrieved);
        let recall = share(counts.found, counts.relevant);
        share(
            (self.weight + 1.0) * precision * recall,
            self.weight * precision + recall,
        )
    }
}
