//! Bootstrap and permutation at the sizes of a real evaluation.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use rageval_core::statistics::{
    Bootstrap, bootstrap_means, permutation_test_paired, permutation_test_unpaired,
};

fn wavy(n: usize, phase: f64) -> Vec<f64> {
    (0..n)
        .map(|i| ((i * i) as f64 * 0.37 + phase).sin())
        .collect()
}

fn bootstrap(criterion: &mut Criterion) {
    let samples: Vec<Vec<f64>> = (0..4)
        .map(|column| wavy(7_000, f64::from(column)))
        .collect();
    let rows: Vec<&[f64]> = samples.iter().map(Vec::as_slice).collect();
    for columns in [1, 2, 4] {
        criterion.bench_function(
            &format!("bootstrap 10k x 7k, {columns} columns"),
            |bencher| {
                bencher
                    .iter(|| bootstrap_means(black_box(&rows[..columns]), &Bootstrap::default()));
            },
        );
    }
}

fn permutation(criterion: &mut Criterion) {
    let comparisons: Vec<Vec<f64>> = (0..50).map(|row| wavy(250, f64::from(row))).collect();
    let rows: Vec<&[f64]> = comparisons.iter().map(Vec::as_slice).collect();
    criterion.bench_function("permutation 10k x 50 x 250", |bencher| {
        bencher.iter(|| permutation_test_paired(black_box(&rows), 10_000, 0, None));
    });
}

fn permutation_unpaired(criterion: &mut Criterion) {
    let samples: Vec<Vec<f64>> = (0..8).map(|row| wavy(1_000, f64::from(row))).collect();
    let pairs: Vec<(&[f64], &[f64])> = samples.iter().map(|values| values.split_at(200)).collect();
    criterion.bench_function("permutation 10k x 8 x (200 of 1000)", |bencher| {
        bencher.iter(|| permutation_test_unpaired(black_box(&pairs), 10_000, 0, None));
    });
}

criterion_group! {
    name = statistics;
    config = Criterion::default().sample_size(20);
    targets = bootstrap, permutation, permutation_unpaired
}
criterion_main!(statistics);
