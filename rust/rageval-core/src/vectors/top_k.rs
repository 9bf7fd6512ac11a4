//! Exact nearest neighbours.

use std::num::NonZeroUsize;
use std::ops::Range;

use pulp::{Arch, Simd, bytemuck};

use super::cosine::{cosine, reciprocals};
use super::lengths::{check_multipliable, check_no_overflow, lengths};
use super::product::{Consumer, Products};
use super::{Rows, allocate, check_dimensions};
use crate::error::{Error, Result};
use crate::threads;

/// Queries that one task answers: a multiple of every tile's width, small enough to divide evenly.
const GROUP: usize = 480;
/// No thread searches fewer corpus rows than this.
const FEWEST_ROWS: usize = 4096;

/// How the nearness of two vectors is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Their dot product.
    Dot,
    /// The cosine of the angle between them, from -1 to 1.
    Cosine,
}

/// The nearest corpus rows of every query.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbours {
    /// Neighbours per query: `k`, or all corpus rows if there are fewer.
    pub per_query: usize,
    /// Numbers of corpus rows, nearest first, `per_query` for each query.
    pub indices: Vec<i64>,
    /// The scores of those rows.
    pub scores: Vec<f32>,
}

/// The `k` rows of `corpus` with the highest score for each row of `queries`, highest first, exactly.
///
/// Equal scores are ordered by ascending row. The score is the dot product, or the cosine `q . c / (|q| |c|)`, in
/// float32. It does not depend on the blocking or the number of threads. If `k > n`, all `n` corpus rows are returned.
///
/// Besides the result, memory holds a few candidates for each of the `k` neighbours of each query. Nothing grows with
/// queries times corpus.
///
/// # Errors
/// `k = 0`; different dimensions; a value that is NaN or infinite; for the dot product, vectors so long that a product
/// could overflow; for the cosine, a row of zeros or one whose length is not between 1e-15 and 1e15. The message names
/// the row.
///
/// ```
/// use rageval_core::vectors::{Metric, Rows, top_k};
///
/// let corpus = [1.0, 0.0, 0.6, 0.8, 0.0, 1.0];
/// let corpus = Rows::new(&corpus, 3, 2)?;
/// let query = Rows::new(&[2.0, 2.0], 1, 2)?;
/// let nearest = top_k(query, corpus, 2, Metric::Cosine, None)?;
/// assert_eq!(nearest.indices, [1, 0]);
/// # Ok::<(), rageval_core::error::Error>(())
/// ```
pub fn top_k(
    queries: Rows,
    corpus: Rows,
    k: usize,
    metric: Metric,
    threads: Option<NonZeroUsize>,
) -> Result<Neighbours> {
    let threads = threads::resolve(threads);
    let search = Search::new(queries, corpus, k, metric, threads)?;
    let groups = queries.count().div_ceil(GROUP);
    let parts = search.parts(groups, threads);
    let found = threads::map(groups * parts, threads, |task| {
        let first = task / parts * GROUP;
        let group = first..queries.count().min(first + GROUP);
        search.scan(group, part(corpus.count(), parts, task % parts))
    });
    search.collect(&found, parts, threads)
}

/// The rows of part `number`, of `parts` about equal parts.
fn part(count: usize, parts: usize, number: usize) -> Range<usize> {
    let share = count.div_ceil(parts);
    (number * share).min(count)..((number + 1) * share).min(count)
}

struct Search<'a> {
    queries: Rows<'a>,
    corpus: Rows<'a>,
    k: usize,
    /// The reciprocal lengths; for the cosine only.
    scales: Option<Scales>,
}

struct Scales {
    queries: Vec<f64>,
    corpus: Vec<f64>,
}

const NAMES: [&str; 2] = ["queries", "corpus"];

impl<'a> Search<'a> {
    fn new(
        queries: Rows<'a>,
        corpus: Rows<'a>,
        k: usize,
        metric: Metric,
        threads: NonZeroUsize,
    ) -> Result<Self> {
        check_dimensions(NAMES, [queries, corpus])?;
        if k == 0 {
            return Err(Error::Value("k must be at least 1".to_owned()));
        }
        if u32::try_from(corpus.count()).is_err() {
            let count = corpus.count();
            return Err(Error::Value(format!(
                "{count} rows are more than {}",
                u32::MAX
            )));
        }
        let query_lengths = lengths(NAMES[0], queries, threads)?;
        let corpus_lengths = lengths(NAMES[1], corpus, threads)?;
        Ok(Self {
            queries,
            corpus,
            k: k.min(corpus.count()),
            scales: scales(metric, &query_lengths, &corpus_lengths)?,
        })
    }

    /// Into how many parts to divide the corpus, so that no thread is idle for long.
    fn parts(&self, groups: usize, threads: NonZeroUsize) -> usize {
        let most = self.corpus.count().div_ceil(FEWEST_ROWS).max(1);
        (2 * threads.get()).div_ceil(groups.max(1)).min(most)
    }

    /// The best candidates of each query of `group` among the corpus rows `range`.
    fn scan(&self, group: Range<usize>, range: Range<usize>) -> Vec<Vec<u64>> {
        let scales = self.scales.as_ref();
        let product = Products {
            rows: self.corpus,
            range,
            columns: self.queries.slice(group.clone()),
            scales: scales.map(|scales| &scales.queries[group.clone()]),
            consumer: Best::new(group.len(), self.k, scales.map(|scales| &*scales.corpus)),
        };
        Arch::new().dispatch(product).finish()
    }

    /// The nearest of all candidates, merged from the parts of the corpus that a group searched.
    fn collect(
        &self,
        found: &[Vec<Vec<u64>>],
        parts: usize,
        threads: NonZeroUsize,
    ) -> Result<Neighbours> {
        let (queries, k) = (self.queries.count(), self.k);
        let mut nearest: Vec<u64> = allocate(queries, k)?;
        threads::for_each_chunk(&mut nearest, k.max(1), threads, |query, nearest| {
            let group = &found[query / GROUP * parts..][..parts];
            let candidates = group.iter().flat_map(|part| &part[query % GROUP]);
            let mut candidates: Vec<u64> = candidates.copied().collect();
            candidates.sort_unstable_by(|a, b| b.cmp(a));
            nearest.copy_from_slice(&candidates[..k]);
        });
        let mut scores = allocate(queries, k)?;
        scores
            .iter_mut()
            .zip(&nearest)
            .for_each(|(cell, &nearest)| *cell = score(nearest));
        let indices = nearest.into_iter().map(index).collect();
        Ok(Neighbours {
            per_query: k,
            indices,
            scores,
        })
    }
}

/// The scales that `metric` needs, if float32 can hold the products with vectors of these lengths.
fn scales(metric: Metric, queries: &[f64], corpus: &[f64]) -> Result<Option<Scales>> {
    match metric {
        Metric::Dot => {
            check_no_overflow(NAMES, [queries, corpus])?;
            Ok(None)
        }
        Metric::Cosine => {
            check_multipliable(NAMES[0], queries)?;
            check_multipliable(NAMES[1], corpus)?;
            Ok(Some(Scales {
                queries: reciprocals(queries),
                corpus: reciprocals(corpus),
            }))
        }
    }
}

/// The best candidates so far for each of some queries.
struct Best<'a> {
    k: usize,
    corpus_scales: Option<&'a [f64]>,
    /// The score that a candidate must exceed to be among the best, one per query. Infinity for the surplus lanes of
    /// the last vector, so that they never are.
    thresholds: Vec<f32>,
    candidates: Vec<Vec<u64>>,
}

impl<'a> Best<'a> {
    fn new(queries: usize, k: usize, corpus_scales: Option<&'a [f64]>) -> Self {
        /// At least the widest tile.
        const SURPLUS: usize = 64;
        let mut thresholds = vec![f32::NEG_INFINITY; queries];
        thresholds.resize(queries + SURPLUS, f32::INFINITY);
        let candidates = vec![Vec::new(); queries];
        Self {
            k,
            corpus_scales,
            thresholds,
            candidates,
        }
    }

    #[inline(never)]
    fn add(&mut self, row: usize, column: usize, scores: &[f32]) {
        for (query, &score) in (column..).zip(scores) {
            if score > self.thresholds[query] {
                let candidates = &mut self.candidates[query];
                candidates.push(candidate(score, row));
                if candidates.len() == 2 * self.k {
                    self.thresholds[query] = keep_best(candidates, self.k);
                }
            }
        }
    }

    fn finish(mut self) -> Vec<Vec<u64>> {
        for candidates in &mut self.candidates {
            if candidates.len() > self.k {
                keep_best(candidates, self.k);
            }
            candidates.shrink_to_fit();
        }
        self.candidates
    }
}

impl Consumer for Best<'_> {
    #[inline(always)]
    fn take<S: Simd>(&mut self, simd: S, row: usize, column: usize, products: &[S::f32s]) {
        for (number, &product) in products.iter().enumerate() {
            let column = column + number * S::F32_LANES;
            let scores = match self.corpus_scales {
                None => product,
                Some(scales) => cosine(simd, product, scales[row]),
            };
            let (thresholds, _) = S::as_simd_f32s(&self.thresholds[column..]);
            let above = simd.greater_than_f32s(scores, thresholds[0]);
            if simd.first_true_m32s(above) < S::F32_LANES {
                self.add(row, column, bytemuck::cast_slice(&[scores]));
            }
        }
    }
}

/// Reduces `candidates` to the best `k` and returns the lowest score among them.
fn keep_best(candidates: &mut Vec<u64>, k: usize) -> f32 {
    let (_, &mut worst, _) = candidates.select_nth_unstable_by(k - 1, |a, b| b.cmp(a));
    candidates.truncate(k);
    score(worst)
}

/// Score and row as one number that is larger for a better candidate: a higher score, then a lower row.
fn candidate(score: f32, row: usize) -> u64 {
    // Adding 0 turns -0 into +0, so the two are equal.
    let bits = (score + 0.0).to_bits();
    let ordered = if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    };
    u64::from(ordered) << 32 | u64::from(!(row as u32))
}

fn score(candidate: u64) -> f32 {
    let ordered = (candidate >> 32) as u32;
    f32::from_bits(if ordered >> 31 == 1 {
        ordered & !(1 << 31)
    } else {
        !ordered
    })
}

fn index(candidate: u64) -> i64 {
    i64::from(!(candidate as u32))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(values: &[f32], dimension: usize) -> Rows<'_> {
        Rows::new(values, values.len() / dimension, dimension).unwrap()
    }

    fn search(queries: &[f32], corpus: &[f32], dimension: usize, k: usize) -> Neighbours {
        top_k(
            rows(queries, dimension),
            rows(corpus, dimension),
            k,
            Metric::Dot,
            None,
        )
        .unwrap()
    }

    /// Whole numbers, so that every score is exact and ties are common.
    fn whole_numbers(count: usize, seed: usize) -> Vec<f32> {
        (0..count)
            .map(|i| ((i * i * 31 + i * seed) % 7) as f32 - 3.0)
            .collect()
    }

    /// Sorts all scores of each query.
    fn sorted(queries: Rows, corpus: Rows, k: usize) -> Vec<i64> {
        let mut nearest = Vec::new();
        for query in 0..queries.count() {
            let score = |row: usize| -> f32 {
                let pairs = queries.row(query).into_iter().zip(corpus.row(row));
                pairs
                    .map(|(q, c)| q * c)
                    .fold(0.0, |sum, product| sum + product)
            };
            let scores: Vec<f32> = (0..corpus.count()).map(score).collect();
            let mut order: Vec<usize> = (0..corpus.count()).collect();
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
            nearest.extend(order.into_iter().take(k).map(|row| row as i64));
        }
        nearest
    }

    #[test]
    fn hand_worked_example() {
        let found = search(&[1.0, 2.0], &[1.0, 0.0, 0.0, 1.0, 2.0, 2.0, 0.0, 1.0], 2, 3);
        assert_eq!(found.indices, [2, 1, 3]);
        assert_eq!(found.scores, [6.0, 2.0, 2.0]);
    }

    #[test]
    fn more_neighbours_than_rows_gives_all_rows() {
        let found = search(&[1.0, -1.0], &[3.0, 5.0], 1, 10);
        assert_eq!(
            (found.per_query, &found.indices[..]),
            (2, &[1, 0, 0, 1][..])
        );
        let none = search(&[1.0], &[], 1, 10);
        assert_eq!((none.per_query, none.indices.len()), (0, 0));
        assert!(search(&[], &[1.0], 1, 10).scores.is_empty());
    }

    #[test]
    fn minus_zero_and_zero_tie() {
        assert_eq!(search(&[1.0], &[-0.0, 0.0, -0.0], 1, 3).indices, [0, 1, 2]);
    }

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

    /// More queries than a group, more rows than a part, more candidates than are kept.
    #[test]
    fn large_searches_equal_a_full_sort_on_any_number_of_threads() {
        let (queries, corpus) = (whole_numbers(490 * 3, 5), whole_numbers(4500 * 3, 11));
        let (queries, corpus) = (rows(&queries, 3), rows(&corpus, 3));
        let expected = sorted(queries, corpus, 20);
        for threads in [1, 2, 3, 8] {
            let found =
                top_k(queries, corpus, 20, Metric::Dot, NonZeroUsize::new(threads)).unwrap();
            assert_eq!(found.indices, expected);
        }
    }

    #[test]
    fn cosine_ignores_lengths() {
        let corpus = [10.0, 0.0, 0.3, 0.4, 0.0, 2.0, 3.0, 4.0];
        let found = top_k(
            rows(&[6.0, 8.0], 2),
            rows(&corpus, 2),
            4,
            Metric::Cosine,
            None,
        )
        .unwrap();
        assert_eq!(found.indices, [1, 3, 2, 0]);
        for (score, want) in found.scores.iter().zip([1.0, 1.0, 0.8, 0.6]) {
            assert!((score - want).abs() < 1e-6);
        }
    }

    #[test]
    fn bad_input_is_named() {
        let message = |queries: &[f32], corpus: &[f32], k, metric| {
            let found = top_k(rows(queries, 2), rows(corpus, 2), k, metric, None);
            found.unwrap_err().to_string()
        };
        let one = &[1.0, 1.0];
        assert!(message(one, one, 0, Metric::Dot).starts_with("k must be at least 1"));
        let nan = message(one, &[1.0, 1.0, 0.0, f32::NAN], 1, Metric::Dot);
        assert_eq!(nan, "row 1 of corpus has the value NaN in column 1");
        assert!(
            message(&[0.0, 0.0], one, 1, Metric::Cosine)
                .starts_with("row 0 of queries is all zeros")
        );
        assert!(
            message(one, &[1e-20, 0.0], 1, Metric::Cosine).contains("corpus has length 1.0e-20")
        );
        assert!(
            message(&[1e30, 0.0], &[1e25, 0.0], 1, Metric::Dot)
                .contains("row 0 of queries has length")
        );
        let mismatch = top_k(rows(one, 1), rows(one, 2), 1, Metric::Dot, None).unwrap_err();
        assert!(
            mismatch
                .to_string()
                .contains("queries have 1 dimensions, those of corpus have 2")
        );
    }

    proptest! {
        #[test]
        fn equals_a_full_sort(
            dimension in 1..9_usize, queries in 0..70_usize, corpus in 0..60_usize, k in 1..30_usize,
            seed in 0..1000_usize,
        ) {
            let queries = whole_numbers(queries * dimension, seed);
            let corpus = whole_numbers(corpus * dimension, seed + 1);
            let (queries, corpus) = (rows(&queries, dimension), rows(&corpus, dimension));
            let found = top_k(queries, corpus, k, Metric::Dot, NonZeroUsize::new(2)).unwrap();
            prop_assert_eq!(found.indices, sorted(queries, corpus, k));
        }
    }
}
