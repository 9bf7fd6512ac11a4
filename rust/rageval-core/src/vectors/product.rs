//! Products of every row of one matrix with every row of another, passed on tile by tile.
//!
//! The columns' vectors are packed so that neighbouring columns are in the lanes of one machine vector. The rows are
//! read in place (or a block at a time, if they must be converted to float32), one value at a time, which is spread
//! over the lanes. A tile of products stays in registers until the consumer has seen it, so there is never a matrix of
//! scores.

use std::ops::Range;

use pulp::{Simd, WithSimd, bytemuck};

use super::Rows;

/// Rows that are multiplied by all columns before the next are read; few enough for the second-level cache.
const BLOCK_BYTES: usize = 128 * 1024;

/// Consumes the products.
pub(super) trait Consumer {
    /// Takes the products of row `row` with the columns from `column` on, in the lanes of `products`.
    ///
    /// Rows come in ascending order for each column. The last vectors can extend past the last column; their surplus
    /// lanes hold products with a vector of zeros.
    fn take<S: Simd>(&mut self, simd: S, row: usize, column: usize, products: &[S::f32s]);
}

/// The products of `rows` (those in `range`, which keep their numbers) with `columns`, each first multiplied by its
/// entry in `scales`.
pub(super) struct Products<'a, C> {
    pub(super) rows: Rows<'a>,
    pub(super) range: Range<usize>,
    pub(super) columns: Rows<'a>,
    pub(super) scales: Option<&'a [f64]>,
    pub(super) consumer: C,
}

impl<C: Consumer> WithSimd for Products<'_, C> {
    type Output = C;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> C {
        if self.columns.count() <= S::F32_LANES {
            multiply::<S, C, 6, 1>(simd, self)
        } else if S::REGISTER_COUNT >= 32 {
            multiply::<S, C, 8, 3>(simd, self)
        } else {
            multiply::<S, C, 6, 2>(simd, self)
        }
    }
}

/// Works in tiles of `R` rows by `V` vectors of columns: as many as fit in the vector registers, but no more rows than
/// there are other registers to point at them.
#[inline(always)]
fn multiply<S: Simd, C: Consumer, const R: usize, const V: usize>(
    simd: S,
    products: Products<C>,
) -> C {
    let Products {
        rows,
        range,
        columns,
        scales,
        mut consumer,
    } = products;
    let dimension = rows.dimension();
    let packed = pack::<S, V>(columns, scales);
    let row_bytes = dimension * size_of::<f32>();
    let block = (BLOCK_BYTES / row_bytes / R).max(1) * R;
    let mut scratch = Vec::new();
    for start in range.clone().step_by(block) {
        let block = start..range.end.min(start + block);
        let values = rows.slice(block.clone()).values.read(&mut scratch);
        for (number, panel) in packed.chunks_exact(dimension * V).enumerate() {
            let column = number * V * S::F32_LANES;
            let (panel, _) = panel.as_chunks::<V>();
            for first in block.clone().step_by(R) {
                // When rows run out, the last one fills the tile and the copies are dropped.
                let tile_rows = std::array::from_fn(|r| {
                    let row = (first + r).min(block.end - 1) - start;
                    &values[row * dimension..][..dimension]
                });
                let tile = tile::<S, R, V>(simd, tile_rows, panel);
                for (row, products) in (first..block.end).zip(&tile) {
                    consumer.take(simd, row, column, products);
                }
            }
        }
    }
    consumer
}

/// Each product is one chain of fused multiply-adds in the order of the dimensions.
#[inline(always)]
fn tile<S: Simd, const R: usize, const V: usize>(
    simd: S,
    rows: [&[f32]; R],
    panel: &[[S::f32s; V]],
) -> [[S::f32s; V]; R] {
    let mut sums = [[simd.splat_f32s(0.0); V]; R];
    let rows = rows.map(|row| &row[..panel.len()]);
    for (k, columns) in panel.iter().enumerate() {
        for (sums, row) in sums.iter_mut().zip(&rows) {
            let value = simd.splat_f32s(row[k]);
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum = simd.mul_add_e_f32s(value, *column, *sum);
            }
        }
    }
    sums
}

/// Panels of `V` vectors of columns; within a panel, dimension by dimension. The last panel is padded with zeros.
#[inline(always)]
fn pack<S: Simd, const V: usize>(columns: Rows, scales: Option<&[f64]>) -> Vec<S::f32s> {
    let width = V * S::F32_LANES;
    let dimension = columns.dimension();
    let panels = columns.count().div_ceil(width);
    let mut packed: Vec<S::f32s> = vec![bytemuck::Zeroable::zeroed(); panels * dimension * V];
    let values: &mut [f32] = bytemuck::cast_slice_mut(&mut packed);
    let mut scratch = Vec::new();
    for (number, panel) in values.chunks_exact_mut(dimension * width).enumerate() {
        let first = number * width;
        for column in first..columns.count().min(first + width) {
            let scale = scales.map_or(1.0, |scales| scales[column]);
            let lane = panel[column - first..].iter_mut().step_by(width);
            for (cell, &value) in lane.zip(columns.read_row(column, &mut scratch)) {
                *cell = (f64::from(value) * scale) as f32;
            }
        }
    }
    packed
}

#[cfg(test)]
mod tests {
    use pulp::{Arch, Scalar};

    use super::*;

    struct Collected(Vec<(usize, usize, f32)>);

    impl Consumer for Collected {
        fn take<S: Simd>(&mut self, _: S, row: usize, column: usize, products: &[S::f32s]) {
            let products: &[f32] = bytemuck::cast_slice(products);
            let cells = products.iter().enumerate();
            self.0
                .extend(cells.map(|(lane, &product)| (row, column + lane, product)));
        }
    }

    fn products(
        rows: Rows,
        columns: Rows,
        multiply: impl Fn(Products<Collected>) -> Collected,
    ) -> Vec<f32> {
        let range = 1..rows.count();
        let consumer = Collected(Vec::new());
        let products = Products {
            rows,
            range,
            columns,
            scales: None,
            consumer,
        };
        let mut cells = multiply(products).0;
        cells.sort_by_key(|&(row, column, _)| (row, column));
        let cells = cells
            .into_iter()
            .filter(|&(_, column, _)| column < columns.count());
        cells.map(|(_, _, product)| product).collect()
    }

    fn fractions(count: usize, seed: usize) -> Vec<f32> {
        (0..count)
            .map(|i| ((i * 7919 + seed) % 1009) as f32 / 1009.0 - 0.4)
            .collect()
    }

    fn each_shape(check: impl Fn(Rows, Rows)) {
        for (rows, columns, dimension) in [
            (2, 1, 1),
            (9, 16, 5),
            (40, 17, 33),
            (300, 49, 120),
            (30, 100, 7),
        ] {
            let (a, b) = (
                fractions(rows * dimension, 3),
                fractions(columns * dimension, 8),
            );
            check(
                Rows::new(&a, rows, dimension).unwrap(),
                Rows::new(&b, columns, dimension).unwrap(),
            );
        }
    }

    #[test]
    fn every_instruction_set_gives_the_products() {
        each_shape(|rows, columns| {
            let best = products(rows, columns, |products| Arch::new().dispatch(products));
            let plain = products(rows, columns, |products| Simd::vectorize(Scalar, products));
            assert_eq!(best.len(), (rows.count() - 1) * columns.count());
            for (i, (best, plain)) in best.iter().zip(plain).enumerate() {
                let (row, column) = (1 + i / columns.count(), i % columns.count());
                let pairs = rows.row(row).into_iter().zip(columns.row(column));
                let exact: f64 = pairs.map(|(a, b)| f64::from(a) * f64::from(b)).sum();
                assert!((f64::from(*best) - exact).abs() < 1e-4);
                assert!((f64::from(plain) - exact).abs() < 1e-4);
            }
        });
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn narrow_and_wide_vectors_give_the_same_bits() {
        let Some(avx2) = pulp::x86::V3::try_new() else {
            return;
        };
        each_shape(|rows, columns| {
            let best = products(rows, columns, |products| Arch::new().dispatch(products));
            assert_eq!(
                best,
                products(rows, columns, |products| Simd::vectorize(avx2, products))
            );
        });
    }
}
