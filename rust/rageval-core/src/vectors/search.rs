//! A search through a corpus that comes in blocks.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use pulp::Arch;

use super::candidates::{Best, Block, Scored, candidate, index, score};
use super::cosine::reciprocals;
use super::lengths::{check_multipliable, check_no_overflow, check_not_zero, lengths};
use super::matrix::{Columns, Floats, Integers, Matrix, Signs};
use super::product::Products;
use super::top_k::{Corpus, Form, Metric, Neighbours, UNRANKED};
use super::{NAMES, Rows, allocate, check_dimensions};
use crate::error::{Error, Result};
use crate::threads;

/// Queries that one task answers: a multiple of every tile's width, small enough to divide evenly.
const GROUP: usize = 480;
/// No thread searches fewer corpus rows than this.
const FEWEST_ROWS: usize = 4096;
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
                best: &mut best,
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
