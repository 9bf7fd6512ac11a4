//! Cosine similarity and exact top-k over row-major matrices of float32, float16 or int8.
//!
//! Vectors are the rows of a [`Rows`] view. Products of many rows with many rows are added up in float32, element by
//! element in the order of the dimensions, whatever the blocking, the number of threads or the width of the machine's
//! vectors. The results are the same bits on every machine that has fused multiply-add (x86-64 since 2013, all 64-bit
//! ARM).
//!
//! Values of other types are converted to float32, which represents all of them exactly, a few rows at a time. The
//! results are those of a matrix converted as a whole. The dot product of int8 vectors is exact if the product of their
//! lengths is at most 2^24, which is always so up to 1,024 dimensions; beyond that it is rounded like float32 sums.

mod candidates;
mod cosine;
mod lengths;
mod matrix;
mod product;
mod search;
#[cfg(test)]
mod tests;
mod top_k;

use std::ops::Range;

pub use half::f16;

use crate::error::{Error, Result};

pub use cosine::{cosine_matrix, cosine_rows};
pub use search::Search;
pub use top_k::{Corpus, Form, Metric, Neighbours, UNRANKED, top_k};

/// Values of vectors, in the type in which they are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Values<'a> {
    /// float32.
    F32(&'a [f32]),
    /// float16.
    F16(&'a [f16]),
    /// int8, without a scale: the values are used as they are.
    I8(&'a [i8]),
}

impl<'a> Values<'a> {
    fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F16(values) => values.len(),
            Self::I8(values) => values.len(),
        }
    }

    #[inline(always)]
    fn slice(&self, range: Range<usize>) -> Self {
        match self {
            Self::F32(values) => Self::F32(&values[range]),
            Self::F16(values) => Self::F16(&values[range]),
            Self::I8(values) => Self::I8(&values[range]),
        }
    }

    /// The values as float32: in place if they already are, otherwise converted into `scratch`.
    #[inline(always)]
    fn read<'s>(&self, scratch: &'s mut Vec<f32>) -> &'s [f32]
    where
        'a: 's,
    {
        match self {
            Self::F32(values) => return values,
            Self::F16(values) => {
                scratch.clear();
                scratch.extend(values.iter().map(|&value| widen(value)));
            }
            Self::I8(values) => {
                scratch.clear();
                scratch.extend(values.iter().map(|&value| f32::from(value)));
            }
        }
        scratch
    }
}

/// The same number as float32. Written so that it compiles to vector instructions when it is inlined; a call into
/// `half` for every few values does not.
#[inline(always)]
fn widen(value: f16) -> f32 {
    /// The difference between the exponents of the two types, for numbers that are normal in both.
    const BIAS: u32 = 112 << 23;
    const SUBNORMAL: u32 = BIAS + (1 << 23);
    let bits = u32::from(value.to_bits());
    let (sign, magnitude) = ((bits & 0x8000) << 16, (bits & 0x7FFF) << 13);
    let normal = magnitude + BIAS;
    let not_finite = normal + BIAS;
    let subnormal = f32::from_bits(magnitude + SUBNORMAL) - f32::from_bits(SUBNORMAL);
    let widened = if magnitude < 1 << 23 {
        subnormal.to_bits()
    } else if magnitude >= 31 << 23 {
        not_finite
    } else {
        normal
    };
    f32::from_bits(sign | widened)
}

/// Vectors of one dimension, one per row, in row-major order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rows<'a> {
    values: Values<'a>,
    count: usize,
    dimension: usize,
}

impl<'a> Rows<'a> {
    /// A view of float32 `values` as `count` rows of `dimension` values.
    ///
    /// # Errors
    /// The same as [`of`](Self::of).
    pub fn new(values: &'a [f32], count: usize, dimension: usize) -> Result<Self> {
        Self::of(Values::F32(values), count, dimension)
    }

    /// A view of `values` as `count` rows of `dimension` values.
    ///
    /// # Errors
    /// [`Error::Value`] unless there are `count * dimension` values, and if `dimension` is 0.
    ///
    /// ```
    /// use rageval_core::vectors::{Rows, Values, cosine_rows};
    ///
    /// let small = Rows::of(Values::I8(&[3, 4]), 1, 2)?;
    /// let large = Rows::new(&[60.0, 80.0], 1, 2)?;
    /// assert_eq!(cosine_rows(small, large, None)?, [1.0]);
    /// # Ok::<(), rageval_core::error::Error>(())
    /// ```
    pub fn of(values: Values<'a>, count: usize, dimension: usize) -> Result<Self> {
        if dimension == 0 {
            return Err(Error::Value("the vectors have 0 dimensions".to_owned()));
        }
        if count.checked_mul(dimension) != Some(values.len()) {
            let have = values.len();
            return Err(Error::Value(format!(
                "{have} values do not make {count} rows of {dimension}"
            )));
        }
        Ok(Self {
            values,
            count,
            dimension,
        })
    }

    /// The number of rows.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The number of values in a row.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Row number `row`, which must be less than [`count`](Self::count), as float32: in place or in `scratch`.
    #[inline(always)]
    fn read_row<'s>(&self, row: usize, scratch: &'s mut Vec<f32>) -> &'s [f32]
    where
        'a: 's,
    {
        self.slice(row..row + 1).values.read(scratch)
    }

    #[cfg(test)]
    fn row(&self, row: usize) -> Vec<f32> {
        self.read_row(row, &mut Vec::new()).to_vec()
    }

    /// The rows in `range`, which must be within `0..count`.
    #[inline(always)]
    fn slice(&self, range: Range<usize>) -> Self {
        Self {
            values: self
                .values
                .slice(range.start * self.dimension..range.end * self.dimension),
            count: range.len(),
            dimension: self.dimension,
        }
    }
}

/// The operands of a search, as messages name them.
const NAMES: [&str; 2] = ["queries", "corpus"];

fn check_dimensions([a, b]: [&str; 2], [m, n]: [usize; 2]) -> Result<()> {
    if m == n {
        return Ok(());
    }
    Err(Error::Value(format!(
        "vectors of {a} have {m} dimensions, those of {b} have {n}; use the same model for both"
    )))
}

/// `rows * columns` zeros, or an error if there is not enough memory.
fn allocate<T: Clone + Default>(rows: usize, columns: usize) -> Result<Vec<T>> {
    let out_of_memory = || {
        let values = rows as u128 * columns as u128;
        Error::Memory(format!(
            "a result of {values} values does not fit in memory; split the rows"
        ))
    };
    let length = rows.checked_mul(columns).ok_or_else(out_of_memory)?;
    let mut values = Vec::new();
    values
        .try_reserve_exact(length)
        .map_err(|_| out_of_memory())?;
    values.resize(length, T::default());
    Ok(values)
}
