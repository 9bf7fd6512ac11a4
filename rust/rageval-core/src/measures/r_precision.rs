//! `rprec`: precision after R documents; and, for the drop-in, `Rprec_mult`: precision at multiples of R.

use super::{Cutoff, Measure, Query, Statistic, Word, share};

pub(super) static RPREC: Word = Word {
    name: "rprec",
    aliases: &["r_precision"],
    cutoff: Cutoff::Never,
    parameters: &[],
    level: true,
    statistic: Statistic::Mean,
    listed: true,
    build: |_| Ok(Box::new(RPrecision)),
};

pub(super) static RPREC_MULT: Word = Word {
    name: "rprec_mult",
    aliases: &[],
    cutoff: Cutoff::Level,
    parameters: &[],
    level: true,
    statistic: Statistic::Mean,
    listed: false,
    build: |parameters| {
        Ok(Box::new(RPrecisionMultiple {
            multiple: parameters.recall.unwrap_or(1.0),
        }))
    },
};

struct RPrecision;

impl Measure for RPrecision {
    fn value(&self, query: &Query<'_>) -> f64 {
        let relevant = query.relevant();
        share(query.relevant_within(relevant) as f64, relevant as f64)
    }
}

struct RPrecisionMultiple {
    multiple: f64,
}

impl Measure for RPrecisionMultiple {
    fn value(&self, query: &Query<'_>) -> f64 {
        let cutoff = super::interpolated::documents_at(self.multiple, query.relevant());
        share(query.relevant_within(cutoff) as f64, cutoff as f64)
    }
}
