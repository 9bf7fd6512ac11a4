//! Euclidean lengths, and the checks based on them.

use std::num::NonZeroUsize;

use pulp::{Arch, Simd, WithSimd};

use super::Rows;
use crate::error::{Error, Result};
use crate::threads;

/// Rows whose lengths one task computes.
const BLOCK: usize = 1024;
/// Running sums, so that additions need not wait for each other.
const LANES: usize = 16;
/// Products of unit vectors with vectors of these lengths neither overflow nor lose digits in float32.
const MULTIPLIABLE: std::ops::RangeInclusive<f64> = 1e-15..=1e15;

/// The Euclidean length of every row, in float64.
///
/// # Errors
/// [`Error::Value`], naming the first value that is NaN or infinite.
pub(super) fn lengths(name: &str, rows: Rows, threads: NonZeroUsize) -> Result<Vec<f64>> {
    let arch = Arch::new();
    let blocks = threads::map(rows.count().div_ceil(BLOCK), threads, |block| {
        let start = block * BLOCK;
        arch.dispatch(SquaredLengths(
            rows.slice(start..rows.count().min(start + BLOCK)),
        ))
    });
    let squares: Vec<f64> = blocks.into_iter().flatten().collect();
    check_finite(name, rows, &squares)?;
    Ok(squares.into_iter().map(f64::sqrt).collect())
}

/// Checks that all values are finite. A row's values are finite if the sum of their squares is: the squares of float32
/// values cannot overflow in float64.
pub(super) fn check_finite(matrix: &str, rows: Rows, squares: &[f64]) -> Result<()> {
    let Some(row) = squares.iter().position(|square| !square.is_finite()) else {
        return Ok(());
    };
    let mut scratch = Vec::new();
    let values = rows.read_row(row, &mut scratch);
    let column = values
        .iter()
        .position(|value| !value.is_finite())
        .unwrap_or(0);
    let value = values[column];
    Err(Error::Value(format!(
        "row {row} of {matrix} has the value {value} in column {column}"
    )))
}

/// Checks that every row has a direction.
pub(super) fn check_not_zero(name: &str, lengths: &[f64]) -> Result<()> {
    match lengths.iter().position(|&length| length == 0.0) {
        None => Ok(()),
        Some(row) => Err(Error::Value(format!(
            "row {row} of {name} is all zeros, so it has no direction and no cosine; leave it out"
        ))),
    }
}

/// Checks that products of unit vectors with every row keep their precision in float32.
pub(super) fn check_multipliable(name: &str, lengths: &[f64]) -> Result<()> {
    check_not_zero(name, lengths)?;
    match lengths
        .iter()
        .position(|length| !MULTIPLIABLE.contains(length))
    {
        None => Ok(()),
        Some(row) => Err(not_multipliable(name, row, lengths[row])),
    }
}

/// Checks that no product of rows overflows: by the Cauchy-Schwarz inequality, neither a product nor any of its partial
/// sums exceeds the product of the lengths.
pub(super) fn check_no_overflow(names: [&str; 2], lengths: [&[f64]; 2]) -> Result<()> {
    let longest = lengths.map(|lengths| {
        let pairs = lengths.iter().copied().enumerate();
        pairs.fold(
            (0, 0.0),
            |longest, pair| if pair.1 > longest.1 { pair } else { longest },
        )
    });
    if longest[0].1 * longest[1].1 < f64::from(f32::MAX) / 2.0 {
        return Ok(());
    }
    let worse = usize::from(longest[1].1 > longest[0].1);
    let (row, length) = longest[worse];
    Err(not_multipliable(names[worse], row, length))
}

fn not_multipliable(matrix: &str, row: usize, length: f64) -> Error {
    Error::Value(format!(
        "row {row} of {matrix} has length {length:.1e}, which float32 cannot multiply; scale the vectors"
    ))
}

struct SquaredLengths<'a>(Rows<'a>);

impl WithSimd for SquaredLengths<'_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Vec<f64> {
        let mut squares = vec![0.0; self.0.count()];
        let mut scratch = Vec::new();
        for (row, square) in squares.iter_mut().enumerate() {
            let values = self.0.read_row(row, &mut scratch);
            *square = dot(values, values);
        }
        squares
    }
}

/// The dot product of `a` and `b` in float64, added up in an order that depends only on the length.
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut sums = [0.0; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += f64::from(a[lane]) * f64::from(b[lane]);
        }
    }
    for (sum, (&a, &b)) in sums.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *sum += f64::from(a) * f64::from(b);
    }
    sums.iter().sum()
}
