//! trec_eval's job through the public API: `cargo run --release --example score -- QRELS RUN [MEASURE...] [-q]`.
//!
//! Prints `measure, query (or "all"), value`, separated by tabs; with `-q`, also a line per query. The default measures
//! are `ndcg@10 map rr recall@100 precision@5`.

use std::path::Path;
use std::process::ExitCode;

use rageval_core::error::{Error, Result};
use rageval_core::evaluation::{Evaluator, Options};
use rageval_core::measures::Compiled;
use rageval_core::readers::{evaluate_run, read_judgements};

const DEFAULT: [&str; 5] = ["ndcg@10", "map", "rr", "recall@100", "precision@5"];

fn score(arguments: &[String]) -> Result<()> {
    let each_query = arguments.iter().any(|argument| argument == "-q");
    let words: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|argument| *argument != "-q")
        .collect();
    let [qrels, run, measures @ ..] = words.as_slice() else {
        return Err(Error::Usage(
            "usage: score QRELS RUN [MEASURE...] [-q]".to_owned(),
        ));
    };
    let measures = if measures.is_empty() {
        &DEFAULT[..]
    } else {
        measures
    };
    let compiled: Result<Vec<_>> = measures.iter().map(|text| Compiled::parse(text)).collect();
    let evaluator = Evaluator::new(compiled?, Options::default())?;
    let evaluation = evaluate_run(
        &evaluator,
        &read_judgements(Path::new(qrels))?,
        Path::new(run),
    )?;
    for (number, measure) in evaluator.measures().iter().enumerate() {
        if each_query {
            for (query, value) in evaluation.queries.iter().zip(evaluation.of(number)) {
                println!(
                    "{}\t{}\t{value:.4}",
                    measure.text,
                    String::from_utf8_lossy(query)
                );
            }
        }
        let aggregate = evaluation.aggregate(number, measure.word.statistic);
        println!("{}\tall\t{aggregate:.4}", measure.text);
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match score(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
