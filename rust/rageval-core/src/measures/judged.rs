//! `judged@k`: how many of the first k are judged, divided by `min(k, retrieved)`; 0 if nothing was retrieved.
//!
//! A negative relevance counts as a judgement here. A low value warns that the other measures rest on few judgements.
//! Source: ir_measures' `Judged@k`; BEIR's `Hole@k` is its complement.

use super::{Cutoff, Measure, Query, Statistic, Word, share};

pub(super) static JUDGED: Word = Word {
    name: "judged",
    aliases: &[],
    cutoff: Cutoff::Optional,
    parameters: &[],
    level: false,
    statistic: Statistic::Mean,
    listed: true,
    build: |parameters| {
        Ok(Box::new(Judged {
            depth: parameters.depth(),
        }))
    },
};

struct Judged {
    depth: usize,
}

impl Measure for Judged {
    fn value(&self, query: &Query<'_>) -> f64 {
        let judged = query
            .hits
            .iter()
            .take_while(|hit| (hit.rank as usize) < self.depth)
            .count();
        share(judged as f64, query.retrieved.min(self.depth) as f64)
    }

    fn needs_nonrelevant(&self) -> bool {
        true
    }
}
