//! Products of every row of one matrix with every row of another, passed on tile by tile.
//!
//! A row is a sequence of 32-bit words, and [`Matrix`] says what a word holds: a float32, two int16 or 32 signs. The
//! columns' words are packed so that neighbouring columns are in the lanes of one machine vector. The rows are read in
//! place (or a block at a time, if they must be converted), one word at a time, which is spread over the lanes. A tile of
//! products stays in registers until the consumer has seen it, so there is never a matrix of scores.

use std::ops::Range;

use pulp::{Simd, WithSimd, bytemuck};

use super::matrix::{Columns, Matrix};

/// Rows that are multiplied by all columns before the next are read; few enough for the second-level cache.
const BLOCK_BYTES: usize = 128 * 1024;

/// Consumes the products.
pub(super) trait Consumer {
    /// Takes the products of row `row` with the columns from `column` on, in the lanes of `products`.
    ///
    /// Rows come in ascending order for each column. The last vectors can extend past the last column; their surplus
    /// lanes hold products with a vector of zeros.
    fn take<S: Simd>(&mut self, simd: S, row: usize, column: usize, products: &[S::f32s]);

    /// Whether any of the rows is wanted; if not, they are not even read.
    #[inline(always)]
    fn wants(&self, _rows: Range<usize>) -> bool {
        true
    }
}

/// The products of `rows` (those in `range`, which keep their numbers) with `columns`.
pub(super) struct Products<'a, M, C> {
    pub(super) rows: M,
    pub(super) range: Range<usize>,
    pub(super) columns: &'a Columns,
    pub(super) consumer: C,
}

impl<M: Matrix, C: Consumer> WithSimd for Products<'_, M, C> {
    type Output = C;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> C {
        if self.columns.count() <= S::F32_LANES {
            multiply::<S, M, C, 6, 1>(simd, self)
        } else if S::REGISTER_COUNT >= 32 {
            multiply::<S, M, C, 8, 3>(simd, self)
        } else {
            multiply::<S, M, C, 6, 2>(simd, self)
        }
    }
}

/// Works in tiles of `R` rows by `V` vectors of columns: as many as fit in the vector registers, but no more rows than
/// there are other registers to point at them.
#[inline(always)]
fn multiply<S: Simd, M: Matrix, C: Consumer, const R: usize, const V: usize>(
    simd: S,
    products: Products<M, C>,
) -> C {
    let Products {
        rows,
        range,
        columns,
        mut consumer,
    } = products;
    let width = rows.width();
    let (packed, scales) = pack::<S, V>(columns);
    let block = (BLOCK_BYTES / (width * size_of::<u32>()) / R).max(1) * R;
    let mut scratch = M::Scratch::default();
    for start in range.clone().step_by(block) {
        let block = start..range.end.min(start + block);
        if !consumer.wants(block.clone()) {
            continue;
        }
        let words = rows.read(block.clone(), &mut scratch);
        for (number, panel) in packed.chunks_exact(width * V).enumerate() {
            let column = number * V * S::F32_LANES;
            let (panel, _) = panel.as_chunks::<V>();
            for first in block.clone().step_by(R) {
                // When rows run out, the last one fills the tile and the copies are dropped.
                let tile_rows = std::array::from_fn(|r| {
                    let row = (first + r).min(block.end - 1) - start;
                    &words[row * width..][..width]
                });
                let tile = tile::<S, M, R, V>(simd, tile_rows, panel);
                for (row, sums) in (first..block.end).zip(tile) {
                    let mut products = sums.map(|sum| rows.finish(simd, sum));
                    for (product, &scale) in products
                        .iter_mut()
                        .zip(scales.get(number * V..).unwrap_or_default())
                    {
                        *product = simd.mul_f32s(*product, scale);
                    }
                    consumer.take(simd, row, column, &products);
                }
            }
        }
    }
    consumer
}

/// Each product is one chain of steps in the order of the words.
#[inline(always)]
fn tile<S: Simd, M: Matrix, const R: usize, const V: usize>(
    simd: S,
    rows: [&[u32]; R],
    panel: &[[S::u32s; V]],
) -> [[S::u32s; V]; R] {
    let mut sums = [[simd.splat_u32s(0); V]; R];
    let rows = rows.map(|row| &row[..panel.len()]);
    for (k, columns) in panel.iter().enumerate() {
        for (sums, row) in sums.iter_mut().zip(&rows) {
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum = M::step(simd, row[k], *column, *sum);
            }
        }
    }
    sums
}

/// Panels of `V` vectors of columns; within a panel, word by word. The last panel is padded with zeros. The scales of
/// the columns come in vectors too, `V` for a panel, and not at all if the columns have none.
#[inline(always)]
fn pack<S: Simd, const V: usize>(columns: &Columns) -> (Vec<S::u32s>, Vec<S::f32s>) {
    let lanes = V * S::F32_LANES;
    let panels = columns.count().div_ceil(lanes);
    let mut packed: Vec<S::u32s> = vec![bytemuck::Zeroable::zeroed(); panels * columns.width * V];
    let words: &mut [u32] = bytemuck::cast_slice_mut(&mut packed);
    for (number, panel) in words.chunks_exact_mut(columns.width * lanes).enumerate() {
        let first = number * lanes;
        for column in first..columns.count().min(first + lanes) {
            let lane = panel[column - first..].iter_mut().step_by(lanes);
            let words = &columns.words[column * columns.width..][..columns.width];
            lane.zip(words).for_each(|(cell, &word)| *cell = word);
        }
    }
    let vectors = columns.scales.as_ref().map_or(0, |_| panels * V);
    let mut scales: Vec<S::f32s> = vec![bytemuck::Zeroable::zeroed(); vectors];
    let cells: &mut [f32] = bytemuck::cast_slice_mut(&mut scales);
    cells
        .iter_mut()
        .zip(columns.scales.iter().flatten())
        .for_each(|(cell, &scale)| *cell = scale);
    (packed, scales)
}

#[cfg(test)]
mod tests {
    use pulp::{Arch, Scalar};

    use super::super::Rows;
    use super::super::matrix::{Floats, Integers, Signs};
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
        multiply: impl Fn(Products<Floats, Collected>) -> Collected,
    ) -> Vec<f32> {
        let range = 1..rows.count();
        let consumer = Collected(Vec::new());
        let products = Products {
            rows: Floats(rows),
            range,
            columns: &Columns::of_floats(columns, None),
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

    /// int8 and signs are exact, so that every instruction set gives the same bits.
    #[test]
    fn integers_and_signs_are_the_same_on_every_instruction_set() {
        fn collect<M: Matrix>(
            rows: M,
            count: usize,
            columns: &Columns,
        ) -> [Vec<(usize, usize, f32)>; 3] {
            let products = || Products {
                rows,
                range: 0..count,
                columns,
                consumer: Collected(Vec::new()),
            };
            let sorted = |found: Collected| {
                let count = columns.count();
                let mut cells: Vec<_> = found.0.into_iter().filter(|cell| cell.1 < count).collect();
                cells.sort_by_key(|&(row, column, _)| (row, column));
                cells
            };
            let best = sorted(Arch::new().dispatch(products()));
            let plain = sorted(Simd::vectorize(Scalar, products()));
            #[cfg(target_arch = "x86_64")]
            if let Some(avx2) = pulp::x86::V3::try_new() {
                return [best, plain, sorted(Simd::vectorize(avx2, products()))];
            }
            [best.clone(), plain, best]
        }
        for (count, columns, dimension) in [(1, 1, 1), (9, 16, 5), (40, 17, 33), (300, 49, 120)] {
            let values: Vec<i8> = (0..count * dimension)
                .map(|i| (i * 7919 % 251) as i8)
                .collect();
            let bytes: Vec<u8> = values.iter().map(|&value| value as u8).collect();
            let queries = fractions(columns * dimension, 3);
            let queries = Rows::new(&queries, columns, dimension).unwrap();
            let values = &values[..];
            let bytes = &bytes[..count * dimension.div_ceil(8)];
            let integers = collect(
                Integers { values, dimension },
                count,
                &Columns::of_integers(queries, false),
            );
            let signs = collect(
                Signs { bytes, dimension },
                count,
                &Columns::of_signs(queries),
            );
            for [best, plain, avx2] in [integers, signs] {
                assert_eq!(best.len(), count * columns);
                assert_eq!(best, plain);
                assert_eq!(best, avx2);
            }
        }
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
