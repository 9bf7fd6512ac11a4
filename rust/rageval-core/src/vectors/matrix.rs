//! What can be multiplied: floats, scaled integers and signs, as rows of 32-bit words.

use std::any::Any;
use std::ops::Range;

use pulp::{Simd, bytemuck};

use super::Rows;

/// Rows of words, and how two words are multiplied and added up.
pub(super) trait Matrix: Copy {
    /// A buffer for rows that must be converted.
    type Scratch: Default;

    /// The number of words of a row.
    fn width(&self) -> usize;

    /// The words of some rows.
    fn read<'s>(&self, rows: Range<usize>, scratch: &'s mut Self::Scratch) -> &'s [u32]
    where
        Self: 's;

    /// `sum` plus the product of a row's word with the words of some columns.
    fn step<S: Simd>(simd: S, row: u32, columns: S::u32s, sum: S::u32s) -> S::u32s;

    /// The sums of all words as products.
    fn finish<S: Simd>(&self, simd: S, sums: S::u32s) -> S::f32s;
}

/// The words of the other operand, row-major, and what its products are multiplied by in the end, if anything.
pub(super) struct Columns {
    pub(super) words: Vec<u32>,
    pub(super) width: usize,
    pub(super) scales: Option<Vec<f32>>,
}

impl Columns {
    pub(super) fn count(&self) -> usize {
        self.words.len() / self.width
    }

    /// Rows of floats, each first multiplied by its entry in `scales`.
    pub(super) fn of_floats(rows: Rows, scales: Option<&[f64]>) -> Self {
        let mut words = Vec::with_capacity(rows.count() * rows.dimension());
        let mut scratch = Vec::new();
        for row in 0..rows.count() {
            let scale = scales.map_or(1.0, |scales| scales[row]);
            let values = rows.read_row(row, &mut scratch).iter();
            words.extend(values.map(|&value| ((f64::from(value) * scale) as f32).to_bits()));
        }
        Self {
            words,
            width: rows.dimension(),
            scales: None,
        }
    }

    /// Rows of floats as whole numbers of 15 bits and a sign, with the scale that makes them floats again.
    ///
    /// With `normalize`, the scale is the reciprocal of the whole numbers' length instead. A row has fewer bits if a
    /// sum of its products with int8 could exceed 31 bits, which needs more than 500 dimensions of about equal size.
    pub(super) fn of_integers(rows: Rows, normalize: bool) -> Self {
        let width = rows.dimension().div_ceil(2);
        let mut words = vec![0_u32; rows.count() * width];
        let mut scratch = Vec::new();
        let cells = bytemuck::cast_slice_mut::<u32, i16>(&mut words).chunks_exact_mut(2 * width);
        let scales = cells.enumerate().map(|(row, cells)| {
            let values = rows.read_row(row, &mut scratch);
            let factor = fit(values);
            for (cell, &value) in cells.iter_mut().zip(values) {
                *cell = (f64::from(value) * factor).round_ties_even() as i16;
            }
            let square: f64 = cells.iter().map(|&cell| f64::from(cell).powi(2)).sum();
            let scale = if normalize { square.sqrt() } else { factor };
            if square > 0.0 {
                scale.recip() as f32
            } else {
                0.0
            }
        });
        let scales = Some(scales.collect());
        Self {
            words,
            width,
            scales,
        }
    }

    /// The signs of floats: 1 for a number above 0.
    pub(super) fn of_signs(rows: Rows) -> Self {
        let bytes = rows.dimension().div_ceil(8);
        let width = bytes.div_ceil(4);
        let mut words = vec![0_u32; rows.count() * width];
        let mut scratch = Vec::new();
        let cells = bytemuck::cast_slice_mut::<u32, u8>(&mut words).chunks_exact_mut(4 * width);
        for (row, cells) in cells.enumerate() {
            let values = rows.read_row(row, &mut scratch);
            for (cell, values) in cells.iter_mut().zip(values.chunks(8)) {
                let bits = values.iter().enumerate();
                *cell = bits.fold(0, |byte, (bit, &value)| {
                    byte | u8::from(value > 0.0) << (7 - bit)
                });
            }
        }
        Self {
            words,
            width,
            scales: None,
        }
    }
}

/// The largest factor with which all values fit in an int16, and products with any int8 in an int32.
fn fit(values: &[f32]) -> f64 {
    const LARGEST: f64 = i16::MAX as f64;
    const LARGEST_SUM: f64 = i32::MAX as f64 / 128.0;
    let magnitudes = values.iter().map(|value| f64::from(value.abs()));
    let largest = magnitudes.clone().fold(0.0, f64::max);
    let sum: f64 = magnitudes.sum();
    let rounding = values.len() as f64; // each of the numbers is off by at most a half
    (LARGEST / largest)
        .min((LARGEST_SUM - rounding) / sum)
        .max(0.0)
}

/// Floats, added up in float32 by fused multiply-add.
#[derive(Clone, Copy)]
pub(super) struct Floats<'a>(pub(super) Rows<'a>);

impl Matrix for Floats<'_> {
    type Scratch = Vec<f32>;

    #[inline(always)]
    fn width(&self) -> usize {
        self.0.dimension()
    }

    #[inline(always)]
    fn read<'s>(&self, rows: Range<usize>, scratch: &'s mut Vec<f32>) -> &'s [u32]
    where
        Self: 's,
    {
        bytemuck::cast_slice(self.0.slice(rows).values.read(scratch))
    }

    #[inline(always)]
    fn step<S: Simd>(simd: S, row: u32, columns: S::u32s, sum: S::u32s) -> S::u32s {
        let row = simd.splat_f32s(f32::from_bits(row));
        let [columns, sum] = [columns, sum].map(|words| simd.transmute_f32s_u32s(words));
        simd.transmute_u32s_f32s(simd.mul_add_e_f32s(row, columns, sum))
    }

    #[inline(always)]
    fn finish<S: Simd>(&self, simd: S, sums: S::u32s) -> S::f32s {
        simd.transmute_f32s_u32s(sums)
    }
}

/// int8 values, multiplied with int16 values two at a time and added up exactly in int32.
#[derive(Clone, Copy)]
pub(super) struct Integers<'a> {
    pub(super) values: &'a [i8],
    pub(super) dimension: usize,
}

impl Matrix for Integers<'_> {
    type Scratch = Vec<u32>;

    #[inline(always)]
    fn width(&self) -> usize {
        self.dimension.div_ceil(2)
    }

    #[inline(always)]
    fn read<'s>(&self, rows: Range<usize>, scratch: &'s mut Vec<u32>) -> &'s [u32]
    where
        Self: 's,
    {
        let width = self.width();
        scratch.resize(rows.len() * width, 0);
        let values = &self.values[rows.start * self.dimension..rows.end * self.dimension];
        let cells = bytemuck::cast_slice_mut::<u32, i16>(scratch);
        let cells = cells.chunks_exact_mut(2 * width);
        for (cells, values) in cells.zip(values.chunks_exact(self.dimension)) {
            for (cell, &value) in cells.iter_mut().zip(values) {
                *cell = i16::from(value);
            }
        }
        scratch
    }

    #[inline(always)]
    fn step<S: Simd>(simd: S, row: u32, columns: S::u32s, sum: S::u32s) -> S::u32s {
        #[cfg(target_arch = "x86_64")]
        {
            let this: &dyn Any = &simd;
            let row = simd.splat_u32s(row);
            if let Some(simd) = this.downcast_ref::<pulp::x86::V4>() {
                let pairs = simd
                    .avx512bw
                    ._mm512_madd_epi16(bytemuck::cast(row), bytemuck::cast(columns));
                return bytemuck::cast(simd.avx512f._mm512_add_epi32(bytemuck::cast(sum), pairs));
            }
            if let Some(simd) = this.downcast_ref::<pulp::x86::V3>() {
                let pairs = simd
                    .avx2
                    ._mm256_madd_epi16(bytemuck::cast(row), bytemuck::cast(columns));
                return bytemuck::cast(simd.avx2._mm256_add_epi32(bytemuck::cast(sum), pairs));
            }
        }
        zip_lanes(columns, sum, |column, sum| {
            let [low, high] = [row, row >> 16].map(|half| i32::from(half as u16 as i16));
            let [by_low, by_high] =
                [column, column >> 16].map(|half| i32::from(half as u16 as i16));
            sum.wrapping_add((low * by_low + high * by_high) as u32)
        })
    }

    #[inline(always)]
    fn finish<S: Simd>(&self, _: S, sums: S::u32s) -> S::f32s {
        let zeros: S::u32s = bytemuck::Zeroable::zeroed();
        bytemuck::cast(zip_lanes(sums, zeros, |sum, _| {
            (sum as i32 as f32).to_bits()
        }))
    }
}

/// Signs, a bit each: the product of two rows is the number of equal signs less that of different ones.
#[derive(Clone, Copy)]
pub(super) struct Signs<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) dimension: usize,
}

impl Matrix for Signs<'_> {
    type Scratch = Vec<u32>;

    #[inline(always)]
    fn width(&self) -> usize {
        self.dimension.div_ceil(32)
    }

    #[inline(always)]
    fn read<'s>(&self, rows: Range<usize>, scratch: &'s mut Vec<u32>) -> &'s [u32]
    where
        Self: 's,
    {
        let (bytes, width) = (self.dimension.div_ceil(8), self.width());
        scratch.resize(rows.len() * width, 0);
        let cells = bytemuck::cast_slice_mut::<u32, u8>(scratch).chunks_exact_mut(4 * width);
        let rows = self.bytes[rows.start * bytes..rows.end * bytes].chunks_exact(bytes);
        for (cells, row) in cells.zip(rows) {
            cells[..bytes].copy_from_slice(row);
        }
        scratch
    }

    #[inline(always)]
    fn step<S: Simd>(_: S, row: u32, columns: S::u32s, sum: S::u32s) -> S::u32s {
        zip_lanes(columns, sum, |column, sum| {
            sum + (row ^ column).count_ones()
        })
    }

    #[inline(always)]
    fn finish<S: Simd>(&self, _: S, sums: S::u32s) -> S::f32s {
        let zeros: S::u32s = bytemuck::Zeroable::zeroed();
        let dimension = self.dimension as i64;
        bytemuck::cast(zip_lanes(sums, zeros, |different, _| {
            ((dimension - 2 * i64::from(different)) as f32).to_bits()
        }))
    }
}

/// Applies a function lane by lane.
#[inline(always)]
fn zip_lanes<W: bytemuck::Pod>(a: W, mut b: W, with: impl Fn(u32, u32) -> u32) -> W {
    let lanes = bytemuck::cast_slice_mut::<W, u32>(std::slice::from_mut(&mut b));
    let others = bytemuck::cast_slice::<W, u32>(std::slice::from_ref(&a));
    for (lane, &other) in lanes.iter_mut().zip(others) {
        *lane = with(other, *lane);
    }
    b
}
