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
    for (metric, threads) in [(Metric::Dot, 1), (Metric::Cosine, 3)] {
        let [queries_f32, ..] = queries.rows(7);
        let [corpus_f32, ..] = corpus.rows(7);
        let expected = top_k(queries_f32, corpus_f32, 20, metric, None).unwrap();
        each_pair(&queries, &corpus, 7, |queries, corpus| {
            let threads = NonZeroUsize::new(threads);
            assert_eq!(
                top_k(queries, corpus, 20, metric, threads).unwrap(),
                expected
            );
        });
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
    #![proptest_config(ProptestConfig::with_cases(64))]

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

/// Finds the `k` best of all scores, of which the lower rank wins ties.
fn best(scores: &[(f32, u32)], k: usize) -> Vec<(i64, f32)> {
    let mut sorted = scores.to_vec();
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let nearest = sorted.into_iter().take(k);
    nearest
        .map(|(score, rank)| (i64::from(rank), score + 0.0))
        .collect()
}

fn pairs(found: &Neighbours) -> Vec<(i64, f32)> {
    let all = found.indices.iter().zip(&found.scores);
    all.map(|(&index, &score)| (index, score)).collect()
}

fn run(
    queries: Rows,
    form: Form,
    k: usize,
    metric: Metric,
    threads: usize,
    blocks: &[(Corpus, Option<&[u32]>)],
) -> Result<Neighbours> {
    let mut search = Search::new(queries, form, k, metric, NonZeroUsize::new(threads))?;
    for &(corpus, ranks) in blocks {
        search.scan(corpus, ranks)?;
    }
    search.finish(None)
}

/// The score of int8 values as the documentation of [`Search`] defines it.
fn integer_score(query: &[f32], values: &[i8], scale: f32, metric: Metric) -> f32 {
    let largest = query
        .iter()
        .fold(0.0_f64, |most, &value| most.max(f64::from(value).abs()));
    let factor = 32767.0 / largest;
    let query: Vec<i64> = query
        .iter()
        .map(|&value| (f64::from(value) * factor).round_ties_even() as i64)
        .collect();
    let dot: i64 = query
        .iter()
        .zip(values)
        .map(|(q, &v)| q * i64::from(v))
        .sum();
    let norm = |squares: i64| 1.0 / (squares as f64).sqrt();
    match metric {
        Metric::Dot => dot as f32 * (1.0 / factor) as f32 * scale,
        Metric::Cosine => {
            let query = norm(query.iter().map(|q| q * q).sum()) as f32;
            let row = norm(values.iter().map(|&v| i64::from(v).pow(2)).sum()) as f32;
            (dot as f32 * query * row).clamp(-1.0, 1.0)
        }
    }
}

#[test]
fn scaled_integers_by_hand() {
    let query = Rows::new(&[1.0, -0.5], 1, 2).unwrap();
    let corpus = Corpus::Integers {
        values: &[127, 0, -127, 127],
        scales: &[0.5, 1.0],
    };
    for (metric, want) in [
        (Metric::Dot, [127.0 * 0.5, -127.0 * 1.5]),
        (Metric::Cosine, [0.894_427_2, -0.948_683_3]),
    ] {
        let found = run(query, Form::Integers, 5, metric, 1, &[(corpus, None)]).unwrap();
        assert_eq!(found.indices, [0, 1]);
        for (score, want) in found.scores.iter().zip(want) {
            assert!((score - want).abs() < 2e-5 * want.abs());
        }
    }
}

#[test]
fn signs_by_hand() {
    // 10 values: two bytes a row, of which the second has two bits that count.
    let values = [1.0, -1.0, 2.0, 0.0, 3.0, 1.0, -2.0, 1.0, 1.0, -4.0];
    let query = Rows::new(&values, 1, 10).unwrap();
    let rows = [0b1010_1101, 0b1000_0000, 0b0101_0010, 0b0100_0000, 0, 0];
    let found = run(
        query,
        Form::Signs,
        3,
        Metric::Dot,
        1,
        &[(Corpus::Signs(&rows), None)],
    )
    .unwrap();
    assert_eq!(pairs(&found), [(0, 10.0), (2, -2.0), (1, -10.0)]);
}

#[test]
fn long_sums_of_integers_do_not_overflow() {
    let dimension = 5000;
    let query = vec![1.0; dimension];
    let query = Rows::new(&query, 1, dimension).unwrap();
    let values: Vec<i8> = [-128, 127]
        .iter()
        .flat_map(|&value| vec![value; dimension])
        .collect();
    let corpus = Corpus::Integers {
        values: &values,
        scales: &[1.0, 1.0],
    };
    let found = run(query, Form::Integers, 2, Metric::Dot, 1, &[(corpus, None)]).unwrap();
    assert_eq!(found.indices, [1, 0]);
    for (score, want) in found
        .scores
        .iter()
        .zip([127.0 * 5000.0, -128.0 * 5000.0_f32])
    {
        assert!((score - want).abs() < 2e-4 * want.abs()); // 3,354 is the largest factor
    }
}

#[test]
fn ranks_that_share_a_row_each_count() {
    let query = Rows::new(&[1.0], 1, 1).unwrap();
    let corpus = Rows::new(&[5.0, 7.0, 9.0, 5.0], 4, 1).unwrap();
    let mut search = Search::new(query, Form::Floats, 4, Metric::Dot, None).unwrap();
    search
        .scan(Corpus::Floats(corpus), Some(&[1, 0, UNRANKED, 2]))
        .unwrap();
    // Ranks 1, 3 and 4 have the first row.
    let found = search
        .finish(Some(&[UNRANKED, 3, UNRANKED, 4, UNRANKED]))
        .unwrap();
    assert_eq!(pairs(&found), [(0, 7.0), (1, 5.0), (2, 5.0), (3, 5.0)]);
}

#[test]
fn rows_that_cannot_be_searched_are_named() {
    let query = Rows::new(&[1.0, 2.0], 1, 2).unwrap();
    let fail = |form, metric, corpus, ranks: Option<&[u32]>| {
        run(query, form, 1, metric, 1, &[(corpus, ranks)])
            .unwrap_err()
            .to_string()
    };
    let integers = |scales: &'static [f32]| Corpus::Integers {
        values: &[1, 2, 0, 0],
        scales,
    };
    let zero = fail(Form::Integers, Metric::Cosine, integers(&[1.0, 0.0]), None);
    assert!(zero.starts_with("row 1 of corpus is all zeros"));
    let unranked = run(
        query,
        Form::Integers,
        2,
        Metric::Cosine,
        1,
        &[(integers(&[1.0, 0.0]), Some(&[0, UNRANKED]))],
    );
    assert_eq!(unranked.unwrap().indices, [0]);
    let scale = fail(
        Form::Integers,
        Metric::Dot,
        integers(&[1.0, f32::NAN]),
        None,
    );
    assert_eq!(scale, "row 1 of corpus has the scale NaN");
    let huge = fail(Form::Integers, Metric::Dot, integers(&[1.0, 1e37]), None);
    assert!(huge.contains("row 1 of corpus has length"));
    for (form, corpus) in [
        (Form::Integers, integers(&[1.0])),
        (Form::Signs, integers(&[1.0, 1.0])),
        (Form::Integers, Corpus::Signs(&[1, 2])),
    ] {
        assert!(
            fail(form, Metric::Dot, corpus, None).starts_with("the corpus must be whole rows of 2")
        );
    }
    let ranks = fail(Form::Signs, Metric::Dot, Corpus::Signs(&[1, 2]), Some(&[1]));
    assert_eq!(ranks, "there must be a rank for each of 2 rows");
    let search = Search::new(query, Form::Floats, 1, Metric::Dot, None).unwrap();
    let message = search.finish(Some(&[0])).unwrap_err().to_string();
    assert_eq!(message, "the ranks that share a row must ascend");
}

proptest! {
    /// Integers and signs against their definitions, in blocks, with ranks, on several threads.
    #[test]
    fn small_forms_have_the_scores_of_their_definition(
        dimension in 1..40_usize, queries in 1..60_usize, corpus in 1..80_usize, k in 1..30_usize,
        seed in 0..1000_usize, cut in 0..80_usize,
    ) {
        let (queries, corpus) = (spread(queries * dimension, seed), spread(corpus * dimension, seed + 1));
        let ([asked, ..], count) = (queries.rows(dimension), corpus.i8.len() / dimension);
        let scales: Vec<f32> = (0..count).map(|row| 0.01 + (row % 5) as f32).collect();
        let bits: Vec<u8> = corpus.i8.chunks(dimension).flat_map(|row| {
            row.chunks(8).map(|byte| {
                byte.iter().enumerate().fold(0, |sum, (bit, &v)| sum | u8::from(v > 0) << (7 - bit))
            })
        }).collect();
        // Every seventh row is left out, and the others are ranked from the last to the first.
        let ranks: Vec<u32> = (0..count as u32)
            .map(|row| if row % 7 == 3 { UNRANKED } else { count as u32 - row })
            .collect();
        let cut = cut.min(count);
        let width = dimension.div_ceil(8);
        for metric in [Metric::Dot, Metric::Cosine] {
            for form in [Form::Integers, Form::Signs] {
                let block = |range: Range<usize>| match form {
                    Form::Signs => Corpus::Signs(&bits[range.start * width..range.end * width]),
                    _ => Corpus::Integers {
                        values: &corpus.i8[range.start * dimension..range.end * dimension],
                        scales: &scales[range],
                    },
                };
                let mut expected = Vec::new();
                for query in 0..asked.count() {
                    let query = asked.row(query);
                    let scores: Vec<(f32, u32)> = (0..count).filter(|&row| ranks[row] != UNRANKED).map(|row| {
                        let values = &corpus.i8[row * dimension..][..dimension];
                        let equal = query.iter().zip(values).filter(|&(&q, &v)| (q > 0.0) == (v > 0)).count();
                        let score = match form {
                            Form::Signs => 2.0 * equal as f32 - dimension as f32,
                            _ => integer_score(&query, values, scales[row], metric),
                        };
                        (score, ranks[row])
                    }).collect();
                    expected.extend(best(&scores, k));
                }
                for threads in [1, 3] {
                    let blocks = [
                        (block(0..cut), Some(&ranks[..cut])),
                        (block(cut..count), Some(&ranks[cut..])),
                    ];
                    let found = run(asked, form, k, metric, threads, &blocks).unwrap();
                    prop_assert_eq!(pairs(&found), expected.clone());
                }
            }
        }
    }

    /// Floats with ranks are the same rows in the order of their ranks.
    #[test]
    fn ranked_floats_are_reordered_floats(
        dimension in 1..9_usize, queries in 1..60_usize, corpus in 1..80_usize, k in 1..30_usize, seed in 0..1000_usize,
    ) {
        let (queries, corpus) = (spread(queries * dimension, seed), spread(corpus * dimension, seed + 1));
        let ([asked, ..], [rows, ..]) = (queries.rows(dimension), corpus.rows(dimension));
        let count = rows.count();
        let ranks: Vec<u32> = (0..count as u32).map(|row| count as u32 - 1 - row).collect();
        let reordered: Vec<f32> = corpus.f32.chunks(dimension).rev().flatten().copied().collect();
        let reordered = Rows::new(&reordered, count, dimension).unwrap();
        for metric in [Metric::Dot, Metric::Cosine] {
            let expected = top_k(asked, reordered, k, metric, None).unwrap();
            let found = run(asked, Form::Floats, k, metric, 2, &[(Corpus::Floats(rows), Some(&ranks))]).unwrap();
            prop_assert_eq!(found, expected);
        }
    }
}
