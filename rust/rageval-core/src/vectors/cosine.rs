//! Cosine similarity, row by row or for all pairs.

use std::num::NonZeroUsize;

use pulp::{Arch, Simd, WithSimd, bytemuck};

use super::lengths::{check_finite, check_multipliable, check_not_zero, dot, lengths};
use super::matrix::{Columns, Floats};
use super::product::{Consumer, Products};
use super::{Rows, allocate, check_dimensions};
use crate::error::{Error, Result};
use crate::threads;

const NAMES: [&str; 2] = ["a", "b"];
/// Pairs of rows that one task compares.
const PAIRS: usize = 1024;
/// Rows of `a` whose products one task computes.
const TASK_ROWS: usize = 256;
/// Rows of `b` that are packed at a time.
const GROUP: usize = 1024;

/// `cos(a[i], b[i]) = a[i] . b[i] / (|a[i]| |b[i]|)` for every row, shape `[n]`.
///
/// Computed in float64, rounded to float32, within `[-1, 1]`. No rows give no values.
///
/// # Errors
/// Different numbers of rows or dimensions; a value that is NaN or infinite; a row of zeros, which has no direction.
/// The message names the row.
///
/// ```
/// use rageval_core::vectors::{Rows, cosine_rows};
///
/// let a = Rows::new(&[1.0, 0.0, 3.0, 4.0], 2, 2)?;
/// let b = Rows::new(&[0.0, 5.0, 6.0, 8.0], 2, 2)?;
/// assert_eq!(cosine_rows(a, b, None)?, [0.0, 1.0]);
/// # Ok::<(), rageval_core::error::Error>(())
/// ```
pub fn cosine_rows(a: Rows, b: Rows, threads: Option<NonZeroUsize>) -> Result<Vec<f32>> {
    check_dimensions(NAMES, [a.dimension(), b.dimension()])?;
    if a.count() != b.count() {
        let (m, n) = (a.count(), b.count());
        return Err(Error::Value(format!(
            "a has {m} rows, b has {n}; they are compared row by row"
        )));
    }
    let arch = Arch::new();
    let tasks = a.count().div_ceil(PAIRS);
    let blocks = threads::map(tasks, threads::resolve(threads), |task| {
        let rows = task * PAIRS..a.count().min((task + 1) * PAIRS);
        arch.dispatch(Pairs(a.slice(rows.clone()), b.slice(rows)))
    });
    let pairs: Vec<Pair> = blocks.into_iter().flatten().collect();
    for (side, rows) in [a, b].into_iter().enumerate() {
        let squares: Vec<f64> = pairs.iter().map(|pair| pair.squares[side]).collect();
        check_finite(NAMES[side], rows, &squares)?;
        check_not_zero(NAMES[side], &squares)?;
    }
    Ok(pairs.iter().map(Pair::cosine).collect())
}

/// Dot product and squared lengths of a row of `a` and a row of `b`.
#[derive(Clone, Default)]
struct Pair {
    dot: f64,
    squares: [f64; 2],
}

impl Pair {
    fn cosine(&self) -> f32 {
        let lengths = self.squares.map(f64::sqrt);
        (self.dot / (lengths[0] * lengths[1])).clamp(-1.0, 1.0) as f32
    }
}

struct Pairs<'a>(Rows<'a>, Rows<'a>);

impl WithSimd for Pairs<'_> {
    type Output = Vec<Pair>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Vec<Pair> {
        let mut pairs = vec![Pair::default(); self.0.count()];
        let mut scratch = [Vec::new(), Vec::new()];
        for (row, pair) in pairs.iter_mut().enumerate() {
            let [a_scratch, b_scratch] = &mut scratch;
            let a = self.0.read_row(row, a_scratch);
            let b = self.1.read_row(row, b_scratch);
            *pair = Pair {
                dot: dot(a, b),
                squares: [dot(a, a), dot(b, b)],
            };
        }
        pairs
    }
}

/// The cosine of every row of `a` with every row of `b`, shape `[n, m]` in row-major order.
///
/// Computed in float32, within `[-1, 1]`. A matrix without rows gives no values.
///
/// # Errors
/// Different dimensions; a value that is NaN or infinite; a row of zeros, which has no direction, or one whose length
/// is not between 1e-15 and 1e15; a result that does not fit in memory. The message names the row.
pub fn cosine_matrix(a: Rows, b: Rows, threads: Option<NonZeroUsize>) -> Result<Vec<f32>> {
    let threads = threads::resolve(threads);
    check_dimensions(NAMES, [a.dimension(), b.dimension()])?;
    let [a_lengths, b_lengths] = [
        lengths(NAMES[0], a, threads)?,
        lengths(NAMES[1], b, threads)?,
    ];
    check_multipliable(NAMES[0], &a_lengths)?;
    check_multipliable(NAMES[1], &b_lengths)?;
    let [a_scales, b_scales] = [reciprocals(&a_lengths), reciprocals(&b_lengths)];
    let mut cosines = allocate(a.count(), b.count())?;
    let chunk = (TASK_ROWS * b.count()).max(1);
    threads::for_each_chunk(&mut cosines, chunk, threads, |task, cosines| {
        let first = task * TASK_ROWS;
        for start in (0..b.count()).step_by(GROUP) {
            let group = start..b.count().min(start + GROUP);
            Arch::new().dispatch(Products {
                rows: Floats(a),
                range: first..a.count().min(first + TASK_ROWS),
                columns: &Columns::of_floats(
                    b.slice(group.clone()),
                    Some(&b_scales[group.clone()]),
                ),
                consumer: Cosines {
                    cosines,
                    width: b.count(),
                    first_row: first,
                    first_column: start,
                    last_column: group.end,
                    scales: &a_scales,
                },
            });
        }
    });
    Ok(cosines)
}

/// A block of rows of the matrix of cosines, in which one group of columns is filled in.
struct Cosines<'a> {
    cosines: &'a mut [f32],
    width: usize,
    first_row: usize,
    first_column: usize,
    last_column: usize,
    scales: &'a [f64],
}

impl Consumer for Cosines<'_> {
    #[inline(always)]
    fn take<S: Simd>(&mut self, simd: S, row: usize, column: usize, products: &[S::f32s]) {
        let cells = &mut self.cosines[(row - self.first_row) * self.width..][..self.last_column];
        let mut cells = cells[self.first_column + column..].iter_mut();
        for &product in products {
            let cosines = cosine(simd, product, self.scales[row] as f32);
            let cosines: &[f32] = bytemuck::cast_slice(std::slice::from_ref(&cosines));
            for (&cosine, cell) in cosines.iter().zip(&mut cells) {
                *cell = cosine;
            }
        }
    }
}

/// Cosines from products with unit vectors, clamped because rounding must not carry them beyond 1.
#[inline(always)]
pub(super) fn cosine<S: Simd>(simd: S, products: S::f32s, scale: f32) -> S::f32s {
    let cosines = simd.mul_f32s(products, simd.splat_f32s(scale));
    let at_most_1 = simd.min_f32s(cosines, simd.splat_f32s(1.0));
    simd.max_f32s(at_most_1, simd.splat_f32s(-1.0))
}

pub(super) fn reciprocals(lengths: &[f64]) -> Vec<f64> {
    lengths.iter().map(|length| 1.0 / length).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(values: &[f32], dimension: usize) -> Rows<'_> {
        Rows::new(values, values.len() / dimension, dimension).unwrap()
    }

    fn exact(a: &[f32], b: &[f32]) -> f64 {
        let sum = |x: &[f32], y: &[f32]| -> f64 {
            x.iter()
                .zip(y)
                .map(|(&x, &y)| f64::from(x) * f64::from(y))
                .sum()
        };
        sum(a, b) / (sum(a, a) * sum(b, b)).sqrt()
    }

    #[test]
    fn hand_worked_example() {
        let (a, b) = (
            [3.0, 4.0, 1.0, 0.0, -2.0, 0.0],
            [4.0, 3.0, 0.0, 7.0, 9.0, 0.0],
        );
        let (a, b) = (rows(&a, 2), rows(&b, 2));
        assert_eq!(cosine_rows(a, b, None).unwrap(), [0.96, 0.0, -1.0]);
        let matrix = cosine_matrix(a, b, None).unwrap();
        let expected = [0.96, 0.8, 0.6, 0.8, 0.0, 1.0, -0.8, 0.0, -1.0];
        assert!(
            matrix
                .iter()
                .zip(expected)
                .all(|(have, want)| (have - want).abs() < 1e-6)
        );
    }

    #[test]
    fn a_vector_is_as_near_to_itself_as_can_be() {
        let values: Vec<f32> = (0..7 * 13).map(|i| (i as f32 * 0.7).sin()).collect();
        let a = rows(&values, 13);
        assert!(
            cosine_rows(a, a, None)
                .unwrap()
                .iter()
                .all(|&cosine| cosine == 1.0)
        );
        assert!(
            cosine_matrix(a, a, None)
                .unwrap()
                .iter()
                .all(|&cosine| cosine <= 1.0)
        );
    }

    #[test]
    fn tiny_and_huge_rows_have_cosines_row_by_row() {
        let (a, b) = ([1e-40, 1e-40], [1e38, 0.0]);
        let cosine = cosine_rows(rows(&a, 2), rows(&b, 2), None).unwrap()[0];
        assert!((cosine - 0.5_f32.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn no_rows_give_no_values() {
        let (none, two) = (rows(&[], 2), rows(&[1.0, 2.0], 2));
        assert!(cosine_rows(none, none, None).unwrap().is_empty());
        assert!(cosine_matrix(none, two, None).unwrap().is_empty());
        assert!(cosine_matrix(two, none, None).unwrap().is_empty());
    }

    #[test]
    fn bad_input_is_named() {
        let one = [1.0, 2.0];
        let by_rows = |a: &[f32], b: &[f32]| {
            cosine_rows(rows(a, 2), rows(b, 2), None)
                .unwrap_err()
                .to_string()
        };
        let by_matrix = |a: &[f32], b: &[f32]| {
            cosine_matrix(rows(a, 2), rows(b, 2), None)
                .unwrap_err()
                .to_string()
        };
        assert!(by_rows(&one, &[0.0, -0.0]).starts_with("row 0 of b is all zeros"));
        assert!(by_matrix(&[1.0, 1.0, 0.0, 0.0], &one).starts_with("row 1 of a is all zeros"));
        let infinite = "row 0 of b has the value inf in column 1";
        assert_eq!(by_rows(&one, &[1.0, f32::INFINITY]), infinite);
        assert_eq!(by_matrix(&one, &[1.0, f32::INFINITY]), infinite);
        assert!(by_rows(&one, &[]).starts_with("a has 1 rows, b has 0"));
        assert!(by_matrix(&one, &[1e-16, 0.0]).contains("scale the vectors"));
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(
            dimension in 1..20_usize,
            a in prop::collection::vec(-1.0_f32..1.0, 1..400),
            b in prop::collection::vec(-1.0_f32..1.0, 1..400),
        ) {
            let whole = |values: &[f32]| values.len() / dimension * dimension;
            let (a, b) = (&a[..whole(&a)], &b[..whole(&b)]);
            let (a, b) = (rows(a, dimension), rows(b, dimension));
            let shorter = a.count().min(b.count());
            let pairs = cosine_rows(a.slice(0..shorter), b.slice(0..shorter), None).unwrap();
            let matrix = cosine_matrix(a, b, NonZeroUsize::new(2)).unwrap();
            for (cell, cosine) in matrix.iter().enumerate() {
                let (i, j) = (cell / b.count(), cell % b.count());
                let want = exact(&a.row(i), &b.row(j));
                prop_assert!((f64::from(*cosine) - want).abs() < 1e-5);
                prop_assert!(i != j || (f64::from(pairs[i]) - want).abs() < 1e-7);
            }
        }
    }
}
