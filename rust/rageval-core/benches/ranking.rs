//! Evaluation of a generated run, from its file and from rows: 500 queries of 1,000 documents, 50 judged ones each.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rageval_core::evaluation::{Evaluator, Options};
use rageval_core::judgements::Judgements;
use rageval_core::measures::Compiled;
use rageval_core::readers::{evaluate_run, read_judgements_text, read_run};

const QUERIES: u64 = 500;
const DEPTH: u64 = 1000;
const JUDGED: u64 = 50;

/// A document's number: every query retrieves different documents out of a million.
fn doc(query: u64, row: u64) -> u64 {
    (query * 7919 + row * 104_729) % 1_000_003
}

/// Scores decrease with rank, as those of real systems do. `shuffled` writes the same rows in another order per query.
fn write_run(shuffled: bool) -> String {
    let mut text = String::new();
    for query in 0..QUERIES {
        for place in 0..DEPTH {
            let row = if shuffled { place * 7 % DEPTH } else { place };
            let score = 40.0 / (1.0 + row as f64 / 17.0) + (query % 13) as f64;
            let number = doc(query, row);
            text.push_str(&format!(
                "{query} Q0 D{number} {} {score:.6} bench\n",
                row + 1
            ));
        }
    }
    text
}

fn judgements() -> Judgements {
    let mut text = String::new();
    for query in 0..QUERIES {
        for place in 0..JUDGED {
            let number = doc(query, place * 29);
            text.push_str(&format!("{query} 0 D{number} {}\n", place % 3));
        }
    }
    read_judgements_text(Path::new("qrels"), text.into_bytes()).expect("qrels")
}

fn evaluator(threads: usize) -> Evaluator {
    let measures = ["ndcg@10", "map", "rr", "recall@100", "precision@5"];
    let measures = measures.map(|text| Compiled::parse(text).expect("a measure"));
    let options = Options {
        threads: NonZeroUsize::new(threads),
        ..Options::default()
    };
    Evaluator::new(measures.into(), options).expect("an evaluator")
}

fn ranking(criterion: &mut Criterion) {
    let judgements = judgements();
    let mut group = criterion.benchmark_group("500 x 1000");
    for (order, run) in [("sorted", write_run(false)), ("shuffled", write_run(true))] {
        let path =
            std::env::temp_dir().join(format!("rageval-bench-{}-{order}", std::process::id()));
        std::fs::write(&path, &run).expect("a file");
        let table = read_run(&path).expect("a run");
        for threads in [1, 2] {
            let evaluator = evaluator(threads);
            group.throughput(Throughput::Bytes(run.len() as u64));
            group.bench_function(format!("file, {order}, {threads} threads"), |bencher| {
                bencher.iter(|| evaluate_run(&evaluator, &judgements, black_box(&path)));
            });
            group.throughput(Throughput::Elements(QUERIES * DEPTH));
            group.bench_function(format!("rows, {order}, {threads} threads"), |bencher| {
                bencher.iter(|| evaluator.evaluate_rows(&judgements, black_box(&table)));
            });
        }
        std::fs::remove_file(&path).expect("the file");
    }
    group.finish();
}

criterion_group! {
    name = evaluation;
    config = Criterion::default().sample_size(20);
    targets = ranking
}
criterion_main!(evaluation);
