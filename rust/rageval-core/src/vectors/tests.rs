//! Types other than float32: the results are those of a matrix converted as a whole, bit for bit.

use std::num::NonZeroUsize;

use proptest::prelude::*;

use super::*;

/// The same numbers in each type.
struct Numbers {
    f32: Vec<f32>,
    f16: Vec<f16>,
    i8: Vec<i8>,
}

impl Numbers {
    fn new(numbers: impl IntoIterator<Item = i8>) -> Self {
        let i8: Vec<i8> = numbers.into_iter().collect();
        Self {
            f32: i8.iter().map(|&value| f32::from(value)).collect(),
            f16: i8.iter().map(|&value| f16::from(value)).collect(),
            i8,
        }
    }

    fn rows(&self, dimension: usize) -> [Rows<'_>; 3] {
        let count = self.i8.len() / dimension;
        let all = [
            Values::F32(&self.f32),
            Values::F16(&self.f16),
            Values::I8(&self.i8),
        ];
        all.map(|values| Rows::of(values, count, dimension).unwrap())
    }
}

/// Numbers that form no row of zeros.
fn spread(count: usize, seed: usize) -> Numbers {
    Numbers::new((0..count).map(|i| (((i * i * 31 + i * seed) % 255) as i64 - 127) as i8 | 1))
}

fn each_pair(queries: &Numbers, corpus: &Numbers, dimension: usize, check: impl Fn(Rows, Rows)) {
    for queries in queries.rows(dimension) {
        for corpus in corpus.rows(dimension) {
            check(queries, corpus);
        }
    }
}

#[test]
fn int8_products_are_whole_numbers() {
    let extremes = Numbers::new([127; 1024].into_iter().chain([-128; 1024]).chain([1; 1024]));
    let [_, _, rows] = extremes.rows(1024);
    let found = top_k(rows, rows, 3, Metric::Dot, None).unwrap();
    let expected = [
        127 * 127 * 1024,
        127 * 1024,
        127 * -128 * 1024, // of the first row
        128 * 128 * 1024,
        -128 * 1024,
        127 * -128 * 1024,
        127 * 1024,
        1024,
        -128 * 1024,
    ];
    assert_eq!(found.scores, expected.map(|score: i32| score as f32));
    assert_eq!(found.indices, [0, 2, 1, 1, 2, 0, 0, 2, 1]);
}

#[test]
fn large_searches_of_any_types_are_the_same_on_any_number_of_threads() {
    let (queries, corpus) = (spread(500 * 7, 3), spread(5000 * 7, 5));
    for metric in [Metric::Dot, Metric::Cosine] {
        let [queries_f32, ..] = queries.rows(7);
        let [corpus_f32, ..] = corpus.rows(7);
        let expected = top_k(queries_f32, corpus_f32, 20, metric, None).unwrap();
        for threads in [1, 3] {
            each_pair(&queries, &corpus, 7, |queries, corpus| {
                let threads = NonZeroUsize::new(threads);
                assert_eq!(
                    top_k(queries, corpus, 20, metric, threads).unwrap(),
                    expected
                );
            });
        }
    }
}

#[test]
fn float16_has_values_that_are_no_numbers() {
    let values = [f16::ONE, f16::ONE, f16::ONE, f16::NEG_INFINITY];
    let rows = Rows::of(Values::F16(&values), 2, 2).unwrap();
    let message = "row 1 of corpus has the value -inf in column 1";
    let error = top_k(rows.slice(0..1), rows, 1, Metric::Dot, None).unwrap_err();
    assert_eq!(error.to_string(), message);
    let error = cosine_rows(rows, rows, None).unwrap_err();
    assert_eq!(error.to_string(), message.replace("corpus", "a"));
    let zeros = Rows::of(Values::I8(&[0, 0]), 1, 2).unwrap();
    let error = cosine_matrix(rows.slice(0..1), zeros, None).unwrap_err();
    assert!(error.to_string().starts_with("row 0 of b is all zeros"));
}

#[test]
fn every_float16_is_widened_to_the_same_number() {
    for value in (0..=u16::MAX).map(f16::from_bits) {
        let (have, want) = (widen(value), value.to_f32());
        assert!(have.to_bits() == want.to_bits() || (have.is_nan() && want.is_nan()));
    }
}

#[test]
fn shapes_are_checked_for_each_type() {
    assert!(Rows::of(Values::I8(&[1, 2, 3]), 2, 2).is_err());
    assert!(Rows::of(Values::F16(&[]), 0, 0).is_err());
}

proptest! {
    #[test]
    fn any_types_give_the_bits_of_float32(
        dimension in 1..40_usize, queries in 1..70_usize, corpus in 1..60_usize, k in 1..30_usize,
        seed in 0..1000_usize,
    ) {
        let queries = spread(queries * dimension, seed);
        let corpus = spread(corpus * dimension, seed + 1);
        let ([a, ..], [b, ..]) = (queries.rows(dimension), corpus.rows(dimension));
        let both = a.count().min(b.count());
        let rows = cosine_rows(a.slice(0..both), b.slice(0..both), None).unwrap();
        let matrix = cosine_matrix(a, b, None).unwrap();
        let nearest = top_k(a, b, k, Metric::Dot, None).unwrap();
        each_pair(&queries, &corpus, dimension, |a, b| {
            assert_eq!(cosine_rows(a.slice(0..both), b.slice(0..both), None).unwrap(), rows);
            assert_eq!(cosine_matrix(a, b, None).unwrap(), matrix);
            assert_eq!(top_k(a, b, k, Metric::Dot, None).unwrap(), nearest);
        });
    }
}
