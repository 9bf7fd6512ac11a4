//! Exact top-k and cosines of embeddings of 384 dimensions.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rageval_core::vectors::{Metric, Rows, Values, cosine_matrix, cosine_rows, f16, top_k};

const DIMENSION: usize = 384;

fn wavy(count: usize, phase: f32) -> Vec<f32> {
    (0..count * DIMENSION)
        .map(|i| ((i % 9973) as f32 * 0.37 + (i / 9973) as f32 + phase).sin())
        .collect()
}

fn rows(values: &[f32]) -> Rows<'_> {
    Rows::new(values, values.len() / DIMENSION, DIMENSION).expect("whole rows")
}

fn search(criterion: &mut Criterion) {
    let corpus = wavy(20_000, 0.0);
    let mut group = criterion.benchmark_group("top 100 of 20k x 384");
    for count in [1, 16, 200] {
        let queries = wavy(count, 1.0);
        group.throughput(Throughput::Elements((count * corpus.len()) as u64));
        for metric in [Metric::Dot, Metric::Cosine] {
            group.bench_function(format!("{metric:?}, {count} queries"), |bencher| {
                bencher.iter(|| top_k(black_box(rows(&queries)), rows(&corpus), 100, metric, None));
            });
        }
    }
}

fn types(criterion: &mut Criterion) {
    let corpus = wavy(20_000, 0.0);
    let half: Vec<f16> = corpus.iter().map(|&value| f16::from_f32(value)).collect();
    let small: Vec<i8> = corpus.iter().map(|value| (value * 127.0) as i8).collect();
    let types = [
        ("float32", Values::F32(&corpus)),
        ("float16", Values::F16(&half)),
        ("int8", Values::I8(&small)),
    ];
    let mut group = criterion.benchmark_group("top 100 of 20k x 384, by type");
    for count in [1, 200] {
        let queries = wavy(count, 1.0);
        group.throughput(Throughput::Elements((count * corpus.len()) as u64));
        for (name, values) in types {
            let corpus = Rows::of(values, 20_000, DIMENSION).expect("whole rows");
            group.bench_function(format!("{name}, {count} queries"), |bencher| {
                bencher.iter(|| top_k(black_box(rows(&queries)), corpus, 100, Metric::Dot, None));
            });
        }
    }
}

fn cosines(criterion: &mut Criterion) {
    let (a, b) = (wavy(2_000, 0.0), wavy(2_000, 2.0));
    criterion.bench_function("cosine of 2k pairs x 384", |bencher| {
        bencher.iter(|| cosine_rows(black_box(rows(&a)), rows(&b), None));
    });
    criterion.bench_function("cosine matrix 2k x 2k x 384", |bencher| {
        bencher.iter(|| cosine_matrix(black_box(rows(&a)), rows(&b), None));
    });
}

criterion_group! {
    name = vectors;
    config = Criterion::default().sample_size(20);
    targets = search, types, cosines
}
criterion_main!(vectors);
