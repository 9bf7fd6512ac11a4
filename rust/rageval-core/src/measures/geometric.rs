//! `gm_map`: the geometric mean of average precision; `gm_bpref` for the drop-in.
//!
//! A query's value is the logarithm of its average precision, floored at 1e-5 (trec_eval's `MIN_GEO_MEAN`); the
//! aggregate is `exp` of their mean. Source: Robertson, CIKM 2006.

use super::{Cutoff, Measure, Query, Statistic, Word};

pub(super) static GM_MAP: Word = Word {
    name: "gm_map",
    aliases: &["gmap"],
    cutoff: Cutoff::Never,
    parameters: &[],
    level: true,
    statistic: Statistic::GeometricMean,
    listed: true,
    build: |_| Ok(Box::new(LogAveragePrecision)),
};

pub(super) static GM_BPREF: Word = Word {
    name: "gm_bpref",
    aliases: &[],
    cutoff: Cutoff::Never,
    parameters: &[],
    level: true,
    statistic: Statistic::GeometricMean,
    listed: false,
    build: |_| Ok(Box::new(LogBpref)),
};

const FLOOR: f64 = 0.00001;

struct LogAveragePrecision;

impl Measure for LogAveragePrecision {
    fn value(&self, query: &Query<'_>) -> f64 {
        super::average_precision::average_precision(query, usize::MAX)
            .max(FLOOR)
            .ln()
    }
}

struct LogBpref;

impl Measure for LogBpref {
    fn value(&self, query: &Query<'_>) -> f64 {
        super::bpref::bpref(query).max(FLOOR).ln()
    }

    fn needs_nonrelevant(&self) -> bool {
        true
    }
}
