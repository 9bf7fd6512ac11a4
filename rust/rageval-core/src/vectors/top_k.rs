//! Exact nearest neighbours.

use std::num::NonZeroUsize;

use super::search::Search;
use super::{NAMES, Rows, check_dimensions};
use crate::error::Result;

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
