//! `iprec@x`: interpolated precision at recall x; and, for the drop-in, its mean over the eleven standard levels.
//!
//! The highest precision at or after the `int(x * R + 0.9)`-th relevant document, rounded as in trec_eval 9; 0 if fewer
//! were retrieved. Source: trec_eval's `iprec_at_recall`.

use super::{Cutoff, Measure, Query, Statistic, Word};

pub(super) static IPREC: Word = Word {
    name: "iprec",
    aliases: &["iprec_at_recall"],
    cutoff: Cutoff::Level,
    parameters: &[],
    level: true,
    statistic: Statistic::Mean,
    listed: true,
    build: |parameters| {
        Ok(Box::new(InterpolatedPrecision {
            recall: parameters.recall.unwrap_or(0.0),
        }))
    },
};

pub(super) static ELEVEN_POINTS: Word = Word {
    name: "11pt_avg",
    aliases: &[],
    cutoff: Cutoff::Never,
    parameters: &[],
    level: true,
    statistic: Statistic::Mean,
    listed: false,
    build: |_| Ok(Box::new(ElevenPoints)),
};

/// The number of documents that a share of the relevant ones is, rounded as in trec_eval 9.
pub(super) fn documents_at(share: f64, relevant: usize) -> usize {
    (share * relevant as f64 + 0.9) as usize
}

fn interpolated_precision(query: &Query<'_>, recall: f64) -> f64 {
    let wanted = documents_at(recall, query.relevant());
    let precisions = query
        .relevant_ranks()
        .enumerate()
        .map(|(found, rank)| (found + 1) as f64 / (rank + 1) as f64);
    precisions
        .skip(wanted.saturating_sub(1))
        .fold(0.0, f64::max)
}

struct InterpolatedPrecision {
    recall: f64,
}

impl Measure for InterpolatedPrecision {
    fn value(&self, query: &Query<'_>) -> f64 {
        interpolated_precision(query, self.recall)
    }
}

struct ElevenPoints;

impl Measure for ElevenPoints {
    fn value(&self, query: &Query<'_>) -> f64 {
        const LEVELS: [f64; 11] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
        let sum = LEVELS.iter().rev().fold(0.0, |sum, level| {
            sum + interpolated_precision(query, *level)
        });
        sum / LEVELS.len() as f64
    }
}
