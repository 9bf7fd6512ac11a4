//! Cosine similarity and exact top-k over row-major matrices of float32, float16 or int8.
//!
//! Vectors are the rows of a [`Rows`] view. Products of many rows with many rows are added up in float32,
//! element by element in the order of the dimensions, whatever the blocking, the number of threads and
//! the width of the machine's vectors: the results are the same bits on every machine that has fused
//! multiply-add (x86-64 since 2013, all 64-bit ARM).
//!
//! Values of other types become float32, which has them all, a few rows at a time; the results are those of
//! a matrix converted as a whole. The dot product of int8 vectors is exact where the product of their lengths
//! is at most 2^24, as it always is up to 1,024 dimensions; beyond that it is rounded as float32 sums are.

mod cosine;
mod lengths;
mod product;
#[cfg(test)]
mod tests;
mod top_k;

use std::fmt;
use std::ops::Range;

pub use half::f16;

pub use cosine::{cosine_matrix, cosine_rows};
pub use top_k::{Metric, Neighbours, top_k};

/// Values of vectors, as they lie in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Values<'a> {
    /// float32.
    F32(&'a [f32]),
    /// float16.
    F16(&'a [f16]),
    /// int8, whose values are taken as they are; no scale is known.
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

    /// The values as float32: in place if they are, else converted into `scratch`.
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

/// The same number as float32. Written so that it becomes vector instructions where it is inlined, which a call per few
/// values into `half` does not.
#[inline(always)]
fn widen(value: f16) -> f32 {
    /// What exponents differ by in the two types, where both have it.
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
    /// As [`of`](Self::of).
    pub fn new(values: &'a [f32], count: usize, dimension: usize) -> Result<Self, VectorError> {
        Self::of(Values::F32(values), count, dimension)
    }

    /// A view of `values` as `count` rows of `dimension` values.
    ///
    /// # Errors
    /// [`VectorError::Shape`] unless there are `count * dimension` values;
    /// [`VectorError::NoDimension`] if `dimension` is 0.
    ///
    /// ```
    /// use rageval_core::vectors::{Rows, Values, cosine_rows};
    ///
    /// let small = Rows::of(Values::I8(&[3, 4]), 1, 2)?;
    /// let large = Rows::new(&[60.0, 80.0], 1, 2)?;
    /// assert_eq!(cosine_rows(small, large, None)?, [1.0]);
    /// # Ok::<(), rageval_core::vectors::VectorError>(())
    /// ```
    pub fn of(values: Values<'a>, count: usize, dimension: usize) -> Result<Self, VectorError> {
        if dimension == 0 {
            return Err(VectorError::NoDimension);
        }
        if count.checked_mul(dimension) != Some(values.len()) {
            let have = values.len();
            return Err(VectorError::Shape {
                count,
                dimension,
                have,
            });
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

    /// The rows in `range`, which must lie within `0..count`.
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

/// What a vector kernel refuses, naming the place. `matrix` is the parameter's name.
#[derive(Debug, Clone, PartialEq)]
pub enum VectorError {
    /// The number of values is not the product of rows and dimension.
    Shape {
        /// Rows asked for.
        count: usize,
        /// Values per row asked for.
        dimension: usize,
        /// Values there are.
        have: usize,
    },
    /// Vectors without any dimension.
    NoDimension,
    /// Two matrices whose vectors cannot be compared.
    DimensionMismatch {
        /// The two matrices.
        matrices: [&'static str; 2],
        /// Their dimensions.
        dimensions: [usize; 2],
    },
    /// Two matrices that should have as many rows as one another.
    CountMismatch {
        /// Their numbers of rows.
        counts: [usize; 2],
    },
    /// A value is NaN or infinite.
    NotFinite {
        /// In which matrix.
        matrix: &'static str,
        /// In which row, from 0.
        row: usize,
        /// In which column, from 0.
        column: usize,
        /// The value.
        value: f32,
    },
    /// A vector of zeros has no direction, so no cosine.
    ZeroVector {
        /// In which matrix.
        matrix: &'static str,
        /// In which row, from 0.
        row: usize,
    },
    /// A vector too short or too long for its products to keep their digits in float32.
    Length {
        /// In which matrix.
        matrix: &'static str,
        /// In which row, from 0.
        row: usize,
        /// Its Euclidean length.
        length: f64,
    },
    /// Top-k with `k = 0`.
    NoNeighbours,
    /// More rows than 32 bits can number.
    TooManyRows {
        /// How many.
        count: usize,
    },
    /// The result does not fit into memory.
    OutOfMemory {
        /// How many values it would have.
        values: u128,
    },
}

impl fmt::Display for VectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape {
                count,
                dimension,
                have,
            } => {
                write!(f, "{have} values do not make {count} rows of {dimension}")
            }
            Self::NoDimension => write!(f, "the vectors have no dimension"),
            Self::DimensionMismatch {
                matrices: [a, b],
                dimensions: [m, n],
            } => write!(
                f,
                "vectors of {a} have {m} dimensions, those of {b} have {n}; use the same model for both"
            ),
            Self::CountMismatch { counts: [m, n] } => {
                write!(f, "a has {m} rows, b has {n}; they are compared row by row")
            }
            Self::NotFinite {
                matrix,
                row,
                column,
                value,
            } => {
                write!(
                    f,
                    "row {row} of {matrix} has the value {value} in column {column}"
                )
            }
            Self::ZeroVector { matrix, row } => write!(
                f,
                "row {row} of {matrix} is all zeros: it has no direction, so no cosine; leave it out"
            ),
            Self::Length {
                matrix,
                row,
                length,
            } => write!(
                f,
                "row {row} of {matrix} has length {length:.1e}, which float32 cannot multiply; scale the vectors"
            ),
            Self::NoNeighbours => write!(f, "k must be at least 1"),
            Self::TooManyRows { count } => write!(f, "{count} rows are more than {}", u32::MAX),
            Self::OutOfMemory { values } => {
                write!(
                    f,
                    "a result of {values} values does not fit into memory; split the rows"
                )
            }
        }
    }
}

impl std::error::Error for VectorError {}

fn check_dimensions(names: [&'static str; 2], [a, b]: [Rows; 2]) -> Result<(), VectorError> {
    let dimensions = [a.dimension, b.dimension];
    if a.dimension == b.dimension {
        return Ok(());
    }
    Err(VectorError::DimensionMismatch {
        matrices: names,
        dimensions,
    })
}

/// `rows * columns` zeros, or an error where there is no memory for them.
fn allocate<T: Clone + Default>(rows: usize, columns: usize) -> Result<Vec<T>, VectorError> {
    let out_of_memory = || VectorError::OutOfMemory {
        values: rows as u128 * columns as u128,
    };
    let length = rows.checked_mul(columns).ok_or_else(out_of_memory)?;
    let mut values = Vec::new();
    values
        .try_reserve_exact(length)
        .map_err(|_| out_of_memory())?;
    values.resize(length, T::default());
    Ok(values)
}
