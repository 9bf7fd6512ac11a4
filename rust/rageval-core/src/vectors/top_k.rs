//! Exact nearest neighbours.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use pulp::{Arch, Simd, bytemuck};

use super::cosine::{cosine, reciprocals};
use super::lengths::{check_multipliable, check_no_overflow, check_not_zero, lengths};
use super::matrix::{Columns, Floats, Integers, Matrix, Signs};
use super::product::{Consumer, Products};
use super::{Rows, allocate, check_dimensions};
use crate::error::{Error, Result};
use crate::threads;

/// Queries that one task answers: a multiple of every tile's width, small enough to divide evenly.
const GROUP: usize = 480;
/// No thread searches fewer corpus rows than this.
const FEWEST_ROWS: usize = 4096;
/// The rank of a row that is not searched.
pub const UNRANKED: u32 = u32::MAX;

/// How the nearness of two vectors is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Their dot product.
    Dot,
    /// The cosine of the angle between them, from -1 to 1.
    Cosine,
}

/// What the vectors of a corpus consist of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// float32 or float16.
    Floats,
    /// int8 with a scale for each vector.
    Integers,
    /// The sign of each value.
    Signs,
}

/// Some rows of a corpus.
#[derive(Debug, Clone, Copy)]
pub enum Corpus<'a> {
    /// Vectors whose values are used as they are.
    Floats(Rows<'a>),
    /// int8 vectors, row-major, and what the values of each are multiplied by.
    Integers {
        /// The values.
        values: &'a [i8],
        /// A scale for each row.
        scales: &'a [f32],
    },
    /// A bit for each value, the first in the highest bit of the first byte; each row begins with a byte of its own.
    Signs(&'a [u8]),
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
    check_dimensions(NAMES, [queries.dimension(), corpus.dimension()])?;
    let mut search = Search::new(queries, Form::Floats, k, metric, threads)?;
    search.scan(Corpus::Floats(corpus), None)?;
    search.finish(None)
}

const NAMES: [&str; 2] = ["queries", "corpus"];

/// A search through a corpus that comes in blocks of rows, of which only one needs to be in memory.
///
/// The result is exact for the scores that the corpus' [`Form`] gives, and does not depend on how it is divided, nor on
/// the number of threads:
///
/// - floats: as for [`top_k`].
/// - integers: a query becomes int16 values with a scale, `max / 32767`. The dot product is the exact sum of the
///   products, rounded to float32 and multiplied by the query's scale, then by the row's. The cosine is that of the two
///   vectors of integers: the scales are the reciprocals of their lengths.
/// - signs: the number of equal signs less that of different ones; a sign is whether a value is above 0.
pub struct Search {
    form: Form,
    metric: Metric,
    k: usize,
    dimension: usize,
    threads: NonZeroUsize,
    lengths: Vec<f64>,
    groups: Vec<Group>,
    rows: usize,
    ranked: usize,
}

/// Some queries, and the best candidates for each from every part into which a block of rows was divided.
struct Group {
    columns: Columns,
    parts: Vec<Mutex<Best>>,
}

impl Search {
    /// A search for the `k` best rows for each query.
    ///
    /// # Errors
    /// As for [`top_k`], as far as they are in the queries.
    pub fn new(
        queries: Rows,
        form: Form,
        k: usize,
        metric: Metric,
        threads: Option<NonZeroUsize>,
    ) -> Result<Self> {
        if k == 0 {
            return Err(Error::Value("k must be at least 1".to_owned()));
        }
        let threads = threads::resolve(threads);
        let lengths = lengths(NAMES[0], queries, threads)?;
        let is_cosine = metric == Metric::Cosine;
        if is_cosine {
            check_multipliable(NAMES[0], &lengths)?;
        }
        let scales = is_cosine.then(|| reciprocals(&lengths));
        let groups = (0..queries.count()).step_by(GROUP).map(|first| {
            let range = first..queries.count().min(first + GROUP);
            let rows = queries.slice(range.clone());
            let columns = match form {
                Form::Floats => Columns::of_floats(rows, scales.as_ref().map(|all| &all[range])),
                Form::Integers => Columns::of_integers(rows, is_cosine),
                Form::Signs => Columns::of_signs(rows),
            };
            let parts = Vec::new();
            Group { columns, parts }
        });
        Ok(Self {
            form,
            metric,
            k: k.min(UNRANKED as usize),
            dimension: queries.dimension(),
            threads,
            groups: groups.collect(),
            lengths,
            rows: 0,
            ranked: 0,
        })
    }

    /// Searches the next rows of the corpus.
    ///
    /// `ranks` has a number for each row: of equal scores the lower one is nearer, and the result names rows by it.
    /// Rows with [`UNRANKED`] are left out. By default rows are numbered as they come.
    ///
    /// # Errors
    /// As for [`top_k`], as far as they are in the ranked rows; rows of another form or dimension; a number of ranks that
    /// is not that of the rows; a scale that is negative or not finite. The message numbers the rows of this block from 0.
    pub fn scan(&mut self, corpus: Corpus, ranks: Option<&[u32]>) -> Result<()> {
        let count = self.count(corpus)?;
        if ranks.is_some_and(|ranks| ranks.len() != count) {
            return Err(Error::Value(format!(
                "there must be a rank for each of {count} rows"
            )));
        }
        if self.rows + count >= UNRANKED as usize {
            let rows = self.rows + count;
            return Err(Error::Value(format!(
                "{rows} rows are more than {}",
                UNRANKED - 1
            )));
        }
        let scales = self.scales(corpus, ranks)?;
        let block = Block {
            first: self.rows,
            scales: scales.as_deref(),
            ranks,
            clamp: self.metric == Metric::Cosine,
        };
        match corpus {
            Corpus::Floats(rows) => self.multiply(Floats(rows), count, block),
            Corpus::Integers { values, .. } => {
                let dimension = self.dimension;
                self.multiply(Integers { values, dimension }, count, block);
            }
            Corpus::Signs(bytes) => {
                let dimension = self.dimension;
                self.multiply(Signs { bytes, dimension }, count, block);
            }
        }
        let ranked = |ranks: &[u32]| ranks.iter().filter(|&&rank| rank != UNRANKED).count();
        self.rows += count;
        self.ranked += ranks.map_or(count, ranked);
        Ok(())
    }

    /// The nearest rows.
    ///
    /// `next` continues a list of ranks that share a row: the rank after each, or [`UNRANKED`] after the last. A row's own
    /// rank, which must be the lowest, begins the list. All of them have the row's score.
    ///
    /// # Errors
    /// A result that does not fit in memory; a list that does not ascend.
    pub fn finish(self, next: Option<&[u32]>) -> Result<Neighbours> {
        let total = next.map_or(self.ranked, <[u32]>::len);
        if next.is_some_and(|next| (0_u32..).zip(next).any(|(rank, &next)| next <= rank)) {
            return Err(Error::Value(
                "the ranks that share a row must ascend".to_owned(),
            ));
        }
        let k = self.k.min(total);
        let mut nearest: Vec<u64> = allocate(self.lengths.len(), k)?;
        threads::for_each_chunk(&mut nearest, k.max(1), self.threads, |query, nearest| {
            let mut candidates = Vec::new();
            for part in &self.groups[query / GROUP].parts {
                let part = part.lock().unwrap_or_else(PoisonError::into_inner);
                candidates.extend_from_slice(&part.candidates[query % GROUP]);
            }
            if let Some(next) = next {
                expand(&mut candidates, next);
            }
            candidates.sort_unstable_by(|a, b| b.cmp(a));
            nearest
                .iter_mut()
                .zip(candidates)
                .for_each(|(cell, one)| *cell = one);
        });
        Ok(Neighbours {
            per_query: k,
            scores: nearest.iter().map(|&candidate| score(candidate)).collect(),
            indices: nearest.into_iter().map(index).collect(),
        })
    }

    /// The number of rows, if they are of this search's form and dimension.
    fn count(&self, corpus: Corpus) -> Result<usize> {
        let (form, values, width, scales) = match corpus {
            Corpus::Floats(rows) => {
                check_dimensions(NAMES, [self.dimension, rows.dimension()])?;
                (Form::Floats, rows.count(), 1, None)
            }
            Corpus::Integers { values, scales } => (
                Form::Integers,
                values.len(),
                self.dimension,
                Some(scales.len()),
            ),
            Corpus::Signs(bytes) => (Form::Signs, bytes.len(), self.dimension.div_ceil(8), None),
        };
        let count = values / width;
        if form != self.form || values % width != 0 || scales.is_some_and(|scales| scales != count)
        {
            return Err(Error::Value(format!(
                "the corpus must be whole rows of {} {:?}, with a scale for each row of integers",
                self.dimension, self.form
            )));
        }
        Ok(count)
    }

    /// What the products of each row are multiplied by, if anything.
    fn scales(&self, corpus: Corpus, ranks: Option<&[u32]>) -> Result<Option<Vec<f32>>> {
        let is_ranked = |row: usize| ranks.is_none_or(|ranks| ranks[row] != UNRANKED);
        let reciprocals = |mut lengths: Vec<f64>, check: fn(&str, &[f64]) -> Result<()>| {
            let unranked = lengths
                .iter_mut()
                .enumerate()
                .filter(|(row, _)| !is_ranked(*row));
            unranked.for_each(|(_, length)| *length = 1.0);
            check(NAMES[1], &lengths)?;
            Ok(Some(
                lengths.iter().map(|length| length.recip() as f32).collect(),
            ))
        };
        match (corpus, self.metric) {
            (Corpus::Signs(_), _) => Ok(None),
            (Corpus::Floats(rows), Metric::Dot) => {
                let lengths = lengths(NAMES[1], rows, self.threads)?;
                check_no_overflow(NAMES, [&self.lengths, &lengths])?;
                Ok(None)
            }
            (Corpus::Floats(rows), Metric::Cosine) => {
                reciprocals(lengths(NAMES[1], rows, self.threads)?, check_multipliable)
            }
            (Corpus::Integers { values, scales }, Metric::Cosine) => {
                check_scales(scales)?;
                reciprocals(
                    integer_lengths(values, self.dimension, self.threads),
                    check_not_zero,
                )
            }
            (Corpus::Integers { scales, .. }, Metric::Dot) => {
                check_scales(scales)?;
                let longest = (self.dimension as f64).sqrt() * 128.0;
                let lengths: Vec<f64> = scales
                    .iter()
                    .map(|&scale| longest * f64::from(scale.max(1.0)))
                    .collect();
                check_no_overflow(NAMES, [&self.lengths, &lengths])?;
                Ok(Some(scales.to_vec()))
            }
        }
    }

    fn multiply<M: Matrix + Sync>(&mut self, rows: M, count: usize, block: Block) {
        let (groups, threads) = (self.groups.len(), self.threads);
        let most = count.div_ceil(FEWEST_ROWS).max(1);
        let parts = (2 * threads.get()).div_ceil(groups.max(1)).min(most);
        for group in &mut self.groups {
            while group.parts.len() < parts {
                group
                    .parts
                    .push(Mutex::new(Best::new(group.columns.count(), self.k)));
            }
        }
        threads::map(groups * parts, threads, |task| {
            let (group, part) = (&self.groups[task / parts], task % parts);
            let mut best = group.parts[part]
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let consumer = Scored {
                best: &mut *best,
                block,
            };
            Arch::new().dispatch(Products {
                rows,
                range: share(count, parts, part),
                columns: &group.columns,
                consumer,
            });
        });
    }
}

/// The rows of part `number`, of `parts` about equal parts.
fn share(count: usize, parts: usize, number: usize) -> Range<usize> {
    let share = count.div_ceil(parts);
    (number * share).min(count)..((number + 1) * share).min(count)
}

/// Adds the other ranks that share the candidates' rows.
fn expand(candidates: &mut Vec<u64>, next: &[u32]) {
    for place in 0..candidates.len() {
        let found = candidates[place];
        let mut rank = index(found) as usize;
        while let Some(&after) = next.get(rank).filter(|&&after| after != UNRANKED) {
            rank = after as usize;
            candidates.push(candidate(score(found), rank));
        }
    }
}

fn check_scales(scales: &[f32]) -> Result<()> {
    match scales
        .iter()
        .position(|scale| !(scale.is_finite() && *scale >= 0.0))
    {
        None => Ok(()),
        Some(row) => Err(Error::Value(format!(
            "row {row} of corpus has the scale {}",
            scales[row]
        ))),
    }
}

/// The lengths of rows of int8.
fn integer_lengths(values: &[i8], dimension: usize, threads: NonZeroUsize) -> Vec<f64> {
    /// So many squares add up to less than 2^31.
    const FEW: usize = 65_536;
    let chunks: Vec<&[i8]> = values.chunks(FEWEST_ROWS * dimension).collect();
    let squared = |part: &[i8]| {
        part.iter()
            .map(|&value| i32::from(value).pow(2))
            .sum::<i32>()
    };
    let parts = threads::map(chunks.len(), threads, |number| {
        Arch::new().dispatch(|| {
            let rows = chunks[number].chunks_exact(dimension);
            let squares = rows.map(|row| {
                row.chunks(FEW)
                    .map(|part| i64::from(squared(part)))
                    .sum::<i64>()
            });
            squares
                .map(|square| (square as f64).sqrt())
                .collect::<Vec<f64>>()
        })
    });
    parts.into_iter().flatten().collect()
}

/// What is known of the rows of a block.
#[derive(Clone, Copy)]
struct Block<'a> {
    /// The number of the block's first row.
    first: usize,
    scales: Option<&'a [f32]>,
    ranks: Option<&'a [u32]>,
    /// Whether scores are cosines, which rounding must not carry beyond 1.
    clamp: bool,
}

/// The best candidates so far for each of some queries.
struct Best {
    k: usize,
    /// The score that a candidate must reach to be among the best, one per query. Infinity for the surplus lanes of
    /// the last vector, so that they never do.
    thresholds: Vec<f32>,
    /// The last of the best candidates.
    worst: Vec<u64>,
    candidates: Vec<Vec<u64>>,
}

impl Best {
    fn new(queries: usize, k: usize) -> Self {
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

struct Scored<'a> {
    best: &'a mut Best,
    block: Block<'a>,
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
