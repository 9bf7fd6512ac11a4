use std::num::NonZeroUsize;
use std::ops::Range;

use proptest::prelude::*;

use super::rows::cut;
use super::*;
use crate::hash::hash;
use crate::judgements::Judgements;
use crate::measures::Compiled;

/// Rows of (query, document, score).
struct Table(Vec<(&'static str, String, f64)>);

impl Table {
    fn new(rows: &[(&'static str, &str, f64)]) -> Self {
        Self(
            rows.iter()
                .map(|(query, doc, score)| (*query, (*doc).to_owned(), *score))
                .collect(),
        )
    }
}

impl Rows for Table {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn query(&self, row: usize) -> &[u8] {
        self.0[row].0.as_bytes()
    }

    fn doc(&self, row: usize) -> &[u8] {
        self.0[row].1.as_bytes()
    }

    fn score(&self, row: usize) -> f64 {
        self.0[row].2
    }
}

fn judge(rows: &[(&str, &str, i32)]) -> Judgements {
    let mut judgements = Judgements::default();
    for (query, doc, relevance) in rows {
        judgements
            .push(query.as_bytes(), doc.as_bytes(), *relevance)
            .unwrap();
    }
    judgements.finish();
    judgements
}

fn evaluator(measures: &[&str], options: Options) -> Evaluator {
    let compiled = measures.iter().map(|text| Compiled::parse(text).unwrap());
    Evaluator::new(compiled.collect(), options).unwrap()
}

fn names(evaluation: &Evaluation) -> Vec<&str> {
    let names = evaluation.queries.iter().map(|id| std::str::from_utf8(id));
    names.collect::<std::result::Result<_, _>>().unwrap()
}

#[test]
fn queries_come_sorted_with_what_is_missing_and_unjudged() {
    let judgements = judge(&[
        ("q2", "a", 1),
        ("q10", "a", 1),
        ("q1", "b", 0),
        ("q3", "a", 1),
    ]);
    let run = Table::new(&[
        ("q3", "a", 1.0),
        ("q1", "b", 1.0),
        ("x", "a", 1.0),
        ("x", "a", 1.0),
        ("q2", "b", 1.0),
    ]);
    let skipping = evaluator(&["rr"], Options::default())
        .evaluate_rows(&judgements, &run)
        .unwrap();
    assert_eq!(names(&skipping), ["q1", "q2", "q3"]);
    assert_eq!(skipping.values, [0.0, 0.0, 1.0]);
    assert_eq!(skipping.no_relevant, [true, false, false]);
    assert_eq!(skipping.unjudged_queries, 1);
    let options = Options {
        missing_as_empty: true,
        ..Options::default()
    };
    let complete = evaluator(&["rr"], options)
        .evaluate_rows(&judgements, &run)
        .unwrap();
    assert_eq!(names(&complete), ["q1", "q10", "q2", "q3"]);
    assert_eq!(complete.missing, [false, true, false, false]);
    assert_eq!(complete.values, [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(complete.aggregate(0, Statistic::Mean), 0.25);
}

#[test]
fn a_run_without_judged_queries_has_no_values() {
    let run = Table::new(&[("x", "a", 1.0), ("y", "a", 1.0)]);
    let evaluation = evaluator(&["rr", "map"], Options::default())
        .evaluate_rows(&judge(&[("q", "a", 1)]), &run)
        .unwrap();
    assert!(evaluation.queries.is_empty() && evaluation.values.is_empty());
    assert_eq!(evaluation.unjudged_queries, 2);
    assert_eq!(evaluation.aggregate(1, Statistic::Mean), 0.0);
}

#[test]
fn wrong_rows_are_named_even_if_a_query_recurs() {
    let judgements = judge(&[("q", "a", 1), ("r", "a", 1)]);
    let evaluator = evaluator(&["rr"], Options::default());
    let message = |rows: &[_]| {
        evaluator
            .evaluate_rows(&judgements, &Table::new(rows))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message(&[
            ("q", "a", 1.0),
            ("r", "a", 1.0),
            ("q", "b", 1.0),
            ("q", "a", 0.0)
        ]),
        "run, row 3: document 'a' is retrieved twice for query 'q'; remove one, or set duplicates to 'first'"
    );
    assert_eq!(
        message(&[("q", "a", 1.0), ("q", "b", f64::NAN)]),
        "run, row 1: the score of document 'b' for query 'q' is NaN, which cannot be ranked"
    );
}

#[test]
fn options_change_the_ranking_in_trec_evals_order() {
    let judgements = judge(&[("q", "q", 1), ("q", "a", 1), ("q", "b", 0)]);
    let run = Table::new(&[
        ("q", "q", 9.0),
        ("q", "x", 8.0),
        ("q", "b", 7.0),
        ("q", "a", 6.0),
        ("q", "x", 5.0),
    ]);
    let first = Options {
        keep_first: true,
        ..Options::default()
    };
    for (options, found, retrieved) in [
        (first, 1.0, 4.0),
        (
            Options {
                drop_self: true,
                ..first
            },
            1.0 / 3.0,
            3.0,
        ),
        (
            Options {
                drop_self: true,
                judged_only: true,
                ..first
            },
            0.5,
            2.0,
        ),
        (
            Options {
                drop_self: true,
                depth: 2,
                ..first
            },
            0.0,
            2.0,
        ),
        (
            Options {
                drop_self: true,
                depth: 2,
                judged_only: true,
                ..first
            },
            0.0,
            1.0,
        ),
    ] {
        let evaluation = evaluator(&["rr", "num_ret"], options)
            .evaluate_rows(&judgements, &run)
            .unwrap();
        assert_eq!(evaluation.values, [found, retrieved], "{options:?}");
    }
}

#[test]
fn gains_that_overflow_are_refused() {
    let run = Table::new(&[("q", "a", 1.0)]);
    for measure in ["ndcg(gain=exp)@10", "dcg(gain=exp)"] {
        let evaluator = evaluator(&["rr", measure], Options::default());
        let error = evaluator
            .evaluate_rows(&judge(&[("q", "a", 1024)]), &run)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "measure '{measure}' has no finite value for query 'q': its relevance values are too large for this gain"
            )
        );
        let largest = evaluator
            .evaluate_rows(&judge(&[("q", "a", 1023)]), &run)
            .unwrap();
        assert!(largest.of(1)[0] >= 1.0);
    }
    let linear = evaluator(&["ndcg@10"], Options::default());
    assert_eq!(
        linear
            .evaluate_rows(&judge(&[("q", "a", i32::MAX)]), &run)
            .unwrap()
            .values,
        [1.0]
    );
}

#[test]
fn an_evaluator_needs_measures_and_a_level() {
    let message = |measures, options| Evaluator::new(measures, options).err().unwrap().to_string();
    assert_eq!(
        message(Vec::new(), Options::default()),
        "no measures given; give at least one, such as 'ndcg@10'"
    );
    let options = Options {
        level: 0,
        ..Options::default()
    };
    assert_eq!(
        message(vec![Compiled::parse("rr").unwrap()], options),
        "relevance level 0 is below 1"
    );
}

#[test]
fn missing_queries_enter_a_geometric_mean_last() {
    let judgements = judge(&[("a", "d", 1), ("b", "d", 1)]);
    let options = Options {
        missing_as_empty: true,
        ..Options::default()
    };
    let run = Table::new(&[("b", "d", 1.0)]);
    let evaluation = evaluator(&["gm_map"], options)
        .evaluate_rows(&judgements, &run)
        .unwrap();
    assert_eq!(evaluation.missing, [true, false]);
    assert_eq!(
        evaluation.aggregate(0, Statistic::GeometricMean),
        (0.00001f64.ln() / 2.0).exp()
    );
}

proptest! {
    #[test]
    fn cuts_lie_between_queries(lengths in prop::collection::vec(1usize..9, 0..30), size in 1usize..20) {
        let ends: Vec<usize> = lengths.iter().scan(0, |sum, length| { *sum += length; Some(*sum) }).collect();
        let n = ends.last().copied().unwrap_or(0);
        let end_of_query = |row: usize| ends.iter().copied().find(|end| *end > row).unwrap();
        let ranges = cut(n, size, end_of_query);
        prop_assert_eq!(ranges.iter().map(Range::len).sum::<usize>(), n);
        prop_assert!(ranges.iter().all(|range| ends.contains(&range.end) && !range.is_empty()));
        prop_assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].len() >= size));
    }

    #[test]
    fn tasks_and_the_order_of_rows_change_nothing(
        rows in prop::collection::btree_map(
            (prop::sample::select(vec!["q1", "q2", "q3", "x"]), 0..12u32), -3..3i32, 0..40,
        ),
        shuffled in any::<u64>(),
        rows_per_task in 1usize..9,
    ) {
        let judgements = judge(&[("q1", "1", 1), ("q1", "5", 2), ("q1", "7", 0), ("q2", "3", 1), ("q3", "2", -1)]);
        let rows: Vec<_> = rows
            .into_iter()
            .map(|((query, doc), score)| (query, doc.to_string(), f64::from(score)))
            .collect();
        let evaluator = evaluator(&["map", "ndcg@2", "bpref"], Options { threads: NonZeroUsize::new(2), ..Options::default() });
        let together = Table(rows.clone());
        let expected = evaluator.evaluate_rows(&judgements, &together).unwrap();
        let parts = evaluator.evaluate_segments(&judgements, &together, rows_per_task, &|row| row).unwrap();
        let assembled = evaluator.assemble_judged(&parts.unwrap(), &judgements).unwrap();
        prop_assert_eq!(assembled.as_ref(), Some(&expected));
        let mut apart = rows;
        apart.sort_by_key(|(query, doc, _)| hash(format!("{query} {doc} {shuffled}").as_bytes()));
        prop_assert_eq!(evaluator.evaluate_rows(&judgements, &Table(apart)).unwrap(), expected);
    }
}
