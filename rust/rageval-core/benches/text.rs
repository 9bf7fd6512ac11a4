//! Sentences, names and word support, on texts as long as answers and their contexts.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rageval_core::text::{Search, names, split_sentences, word_support};

const SENTENCES: [&str; 4] = [
    "The first bridge over the river was opened in 1,889 by Dr. Amélie Laurent, an engineer from Lyon. ",
    "It carried well-known trains of the U.S. army, e.g. on May 12, 1944, and was rebuilt for $3.5 million. ",
    "Most of the visitors who walked across it in the evenings hadn't heard of that story. ",
    "Its successor is 1.2 km longer, and nobody's favourite.\n",
];

/// A text of this many sentences, different for each `number`.
fn write(sentences: usize, number: usize) -> String {
    let sentence = |at: usize| {
        SENTENCES[(at + number) % SENTENCES.len()].replace("river", &format!("river{number}"))
    };
    (0..sentences).map(sentence).collect()
}

fn one_text(criterion: &mut Criterion) {
    let text = write(40, 0);
    let mut group = criterion.benchmark_group("a text of 3.4 kB");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("sentences", |bencher| {
        bencher.iter(|| split_sentences(black_box(&text)));
    });
    group.bench_function("names", |bencher| bencher.iter(|| names(black_box(&text))));
    group.finish();
}

fn support(criterion: &mut Criterion) {
    let searches: Vec<Search<String>> = (0..200)
        .map(|number| Search {
            texts: (0..4).map(|at| write(1, number + at)).collect(),
            sources: (0..3).map(|at| write(8, number + at)).collect(),
        })
        .collect();
    let mut group = criterion.benchmark_group("support");
    group.throughput(Throughput::Elements(searches.len() as u64));
    group.bench_function("200 answers of 4 sentences, 3 contexts of 8", |bencher| {
        bencher.iter(|| word_support(black_box(&searches), None));
    });
    group.finish();
}

criterion_group! {
    name = text;
    config = Criterion::default().sample_size(20);
    targets = one_text, support
}
criterion_main!(text);
