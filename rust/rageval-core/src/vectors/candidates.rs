//! The best candidates of each query, as products come in.

use std::ops::Range;

use pulp::{Simd, bytemuck};

use super::cosine::cosine;
use super::product::Consumer;
use super::top_k::UNRANKED;

/// What is known of the rows of a block.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    /// The number of the block's first row.
    pub(super) first: usize,
    pub(super) scales: Option<&'a [f32]>,
    pub(super) ranks: Option<&'a [u32]>,
    /// Whether scores are cosines, which rounding must not carry beyond 1.
    pub(super) clamp: bool,
}

/// The best candidates so far for each of some queries.
pub(super) struct Best {
    k: usize,
    /// The score that a candidate must reach to be among the best, one per query. Infinity for the surplus lanes of
    /// the last vector, so that they never do.
    thresholds: Vec<f32>,
    /// The last of the best candidates.
    worst: Vec<u64>,
    pub(super) candidates: Vec<Vec<u64>>,
}

impl Best {
    pub(super) fn new(queries: usize, k: usize) -> Self {
        /// At least the widest tile.
        const SURPLUS: usize = 64;
        let mut thresholds = vec![f32::NEG_INFINITY; queries];
        thresholds.resize(queries + SURPLUS, f32::INFINITY);
        Self {
            k,
            thresholds,
            worst: vec![0; queries],
            candidates: vec![Vec::new(); queries],
        }
    }

    #[inline(never)]
    fn add(&mut self, rank: usize, column: usize, scores: &[f32]) {
        let queries = self.candidates.len();
        for (query, &score) in (column..queries).zip(scores) {
            let found = candidate(score, rank);
            if found > self.worst[query] {
                let candidates = &mut self.candidates[query];
                candidates.push(found);
                if candidates.len() == 2 * self.k {
                    self.worst[query] = keep_best(candidates, self.k);
                    self.thresholds[query] = self::score(self.worst[query]);
                }
            }
        }
    }
}

pub(super) struct Scored<'a> {
    pub(super) best: &'a mut Best,
    pub(super) block: Block<'a>,
}

impl Consumer for Scored<'_> {
    #[inline(always)]
    fn take<S: Simd>(&mut self, simd: S, row: usize, column: usize, products: &[S::f32s]) {
        let block = &self.block;
        let rank = match block.ranks {
            None => block.first + row,
            Some(ranks) if ranks[row] == UNRANKED => return,
            Some(ranks) => ranks[row] as usize,
        };
        for (number, &product) in products.iter().enumerate() {
            let column = column + number * S::F32_LANES;
            let scores = match block.scales {
                None => product,
                Some(scales) if block.clamp => cosine(simd, product, scales[row]),
                Some(scales) => simd.mul_f32s(product, simd.splat_f32s(scales[row])),
            };
            let (thresholds, _) = S::as_simd_f32s(&self.best.thresholds[column..]);
            let reached = match block.ranks {
                None => simd.greater_than_f32s(scores, thresholds[0]), // of equal scores, later rows are farther
                Some(_) => simd.greater_than_or_equal_f32s(scores, thresholds[0]),
            };
            if simd.first_true_m32s(reached) < S::F32_LANES {
                self.best.add(rank, column, bytemuck::cast_slice(&[scores]));
            }
        }
    }

    #[inline(always)]
    fn wants(&self, rows: Range<usize>) -> bool {
        self.block
            .ranks
            .is_none_or(|ranks| ranks[rows].iter().any(|&rank| rank != UNRANKED))
    }
}

/// Reduces `candidates` to the best `k` and returns the last of them.
fn keep_best(candidates: &mut Vec<u64>, k: usize) -> u64 {
    let (_, &mut worst, _) = candidates.select_nth_unstable_by(k - 1, |a, b| b.cmp(a));
    candidates.truncate(k);
    worst
}

/// Score and row as one number that is larger for a better candidate: a higher score, then a lower row.
pub(super) fn candidate(score: f32, row: usize) -> u64 {
    // Adding 0 turns -0 into +0, so the two are equal.
    let bits = (score + 0.0).to_bits();
    let ordered = if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    };
    u64::from(ordered) << 32 | u64::from(!(row as u32))
}

pub(super) fn score(candidate: u64) -> f32 {
    let ordered = (candidate >> 32) as u32;
    f32::from_bits(if ordered >> 31 == 1 {
        ordered & !(1 << 31)
    } else {
        !ordered
    })
}

pub(super) fn index(candidate: u64) -> i64 {
    i64::from(!(candidate as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_ordered_as_their_scores() {
        let scores = [
            f32::NEG_INFINITY,
            -3.5,
            -1e-40,
            0.0,
            1e-40,
            2.0,
            f32::INFINITY,
        ];
        for pair in scores.windows(2) {
            assert!(candidate(pair[0], 1) < candidate(pair[1], 9));
        }
        assert!(candidate(1.0, 5) > candidate(1.0, 6));
        for score_in in scores {
            assert_eq!(
                (score(candidate(score_in, 7)), index(candidate(score_in, 7))),
                (score_in, 7)
            );
        }
    }
}
