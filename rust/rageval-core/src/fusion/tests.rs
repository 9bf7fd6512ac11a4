use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
struct Run(Vec<(String, String, f64)>);

impl Rows for Run {
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

/// Lines of `query doc score`, separated by commas.
fn run(lines: &str) -> Run {
    let rows = lines.split(',').filter(|line| !line.trim().is_empty());
    let row = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        (
            columns[0].to_owned(),
            columns[1].to_owned(),
            columns[2].parse().unwrap(),
        )
    };
    Run(rows.map(row).collect())
}

fn settings(method: Method, weights: &[f64]) -> Fusion {
    Fusion {
        method,
        weights: weights.to_vec(),
        depth: 1000,
        threads: None,
    }
}

fn show(runs: &[Run], places: &[Retrieved]) -> Vec<(String, String, f64)> {
    let place = |place: &Retrieved| {
        let (query, doc, _) = &runs[place.run as usize].0[place.row as usize];
        (query.clone(), doc.clone(), place.score)
    };
    places.iter().map(place).collect()
}

fn row(query: &str, doc: &str, score: f64) -> (String, String, f64) {
    (query.to_owned(), doc.to_owned(), score)
}

const RRF: Method = Method::ReciprocalRank { k: 60.0 };
const MIN_MAX: Method = Method::WeightedSum(Normalization::MinMax);

#[test]
fn reciprocal_ranks_by_hand() {
    let runs = [run("q a 9, q b 8, q c 7"), run("q c 0.9, q d 0.8")];
    let fused = fuse(&runs, &settings(RRF, &[1.0, 1.0])).unwrap();
    let expected = [
        row("q", "c", 1.0 / 63.0 + 1.0 / 61.0),
        row("q", "a", 1.0 / 61.0),
        row("q", "d", 1.0 / 62.0),
        row("q", "b", 1.0 / 62.0),
    ];
    assert_eq!(show(&runs, &fused), expected);
}

#[test]
fn weighted_min_max_by_hand() {
    let runs = [run("q a 30, q b 20, q c 10"), run("q c 5, q b 4, q d 1")];
    let fused = fuse(&runs, &settings(MIN_MAX, &[0.4, 0.6])).unwrap();
    let expected = [
        row("q", "b", 0.4 * 0.5 + 0.6 * 0.75),
        row("q", "c", 0.6),
        row("q", "a", 0.4),
        row("q", "d", 0.0),
    ];
    assert_eq!(show(&runs, &fused), expected);
}

#[test]
fn a_document_that_a_run_lacks_gets_the_least_standard_score() {
    // Mean 2, deviation 1 in both: the values are 1 and -1.
    let runs = [run("q a 3, q b 1"), run("q c 3, q b 1")];
    let method = Method::WeightedSum(Normalization::ZScore);
    let fused = fuse(&runs, &settings(method, &[1.0, 2.0])).unwrap();
    assert_eq!(
        show(&runs, &fused),
        [row("q", "c", 1.0), row("q", "a", -1.0), row("q", "b", -3.0)]
    );
}

#[test]
fn scores_of_max_and_none() {
    let runs = [run("q a 4, q b -2"), run("q b 10")];
    let max = settings(Method::WeightedSum(Normalization::Max), &[1.0, 1.0]);
    let fused = fuse(&runs, &max).unwrap();
    assert_eq!(
        show(&runs, &fused),
        [row("q", "a", 1.0), row("q", "b", 0.5)]
    );
    let none = settings(Method::WeightedSum(Normalization::None), &[1.0, 0.5]);
    let fused = fuse(&runs, &none).unwrap();
    assert_eq!(
        show(&runs, &fused),
        [row("q", "a", 4.0), row("q", "b", 3.0)]
    );
}

#[test]
fn equal_scores_are_all_the_best() {
    let runs = [run("q a 3, q b 3"), run("p a 7")];
    let fused = fuse(&runs, &settings(MIN_MAX, &[1.0, 1.0])).unwrap();
    let expected = [row("q", "b", 1.0), row("q", "a", 1.0), row("p", "a", 1.0)];
    assert_eq!(show(&runs, &fused), expected);
}

#[test]
fn scores_that_float32_cannot_tell_apart_are_ties() {
    let ranked = rank_documents(&run("q a 1.00000000001, q b 1.0, q c 2"), 3, None).unwrap();
    let rows: Vec<u32> = ranked.iter().map(|place| place.row).collect();
    assert_eq!(rows, [2, 1, 0]);
}

#[test]
fn rankings_are_ordered_and_cut_per_query() {
    let shuffled = run("q2 a 1, q1 b 5, q2 b 2, q1 a 5, q1 \u{e9} 5, q1 c -1");
    let ranked = rank_documents(&shuffled, 3, None).unwrap();
    let expected = [
        row("q2", "b", 2.0),
        row("q2", "a", 1.0),
        row("q1", "\u{e9}", 5.0),
        row("q1", "b", 5.0),
        row("q1", "a", 5.0),
    ];
    assert_eq!(show(&[shuffled], &ranked), expected);
    assert!(rank_documents(&run(""), 1, None).unwrap().is_empty());
}

#[test]
fn bad_rows_are_named() {
    let fail = |a: &str, b: &str, method| {
        fuse(&[run(a), run(b)], &settings(method, &[1.0, 1.0]))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        fail("q a 1", "p a 1, q b 1, q c NaN", RRF),
        "runs[1], row 2: the score of document 'c' for query 'q' is NaN; it must be finite"
    );
    assert!(fail("q a inf", "", MIN_MAX).starts_with("runs[0], row 0: the score of document 'a'"));
    assert_eq!(
        fail("q a 1, p b 1, q a 0", "", RRF),
        "runs[0], row 2: document 'a' is retrieved twice for query 'q'; remove one"
    );
    let max = Method::WeightedSum(Normalization::Max);
    assert!(fail("q a -1", "", max).contains("the scores for query 'q': the highest is -1"));
    assert!(fail("q a 1e308, q b -1e308", "", MIN_MAX).contains("are too large"));
    let run_error = rank_documents(&run("q a 1, q a 1"), 9, None).unwrap_err();
    assert!(
        run_error
            .to_string()
            .starts_with("run, row 1: document 'a' is retrieved twice")
    );
}

#[test]
fn bad_settings_are_refused() {
    let fail = |fusion: Fusion| fuse(&[run("q a 1")], &fusion).unwrap_err().to_string();
    assert!(fail(settings(RRF, &[])).contains("0 weights for 1 runs"));
    assert!(fail(settings(RRF, &[-1.0])).contains("at least 0, not -1"));
    assert!(fail(settings(RRF, &[f64::NAN])).contains("not NaN"));
    assert!(fail(settings(RRF, &[0.0])).contains("all weights are 0"));
    let negative = Method::ReciprocalRank { k: -1.0 };
    assert!(fail(settings(negative, &[1.0])).contains("k must be finite"));
    assert!(
        fail(Fusion {
            depth: 0,
            ..settings(RRF, &[1.0])
        })
        .contains("depth")
    );
    assert!(rank_documents(&run(""), 0, None).is_err());
}

/// The paper's formula, computed with maps.
fn reciprocal_ranks(runs: &[Run], weights: &[f64]) -> BTreeMap<(String, String), f64> {
    let mut sums = BTreeMap::new();
    for (run, weight) in runs.iter().zip(weights) {
        let mut ranks: BTreeMap<&str, f64> = BTreeMap::new();
        for (query, doc, _) in &run.0 {
            let rank = ranks.entry(query).or_default();
            *rank += 1.0;
            *sums.entry((query.clone(), doc.clone())).or_insert(0.0) +=
                weight * (1.0 / (60.0 + *rank));
        }
    }
    sums
}

prop_compose! {
    /// A few queries and documents in any order, without duplicates.
    fn any_run()(rows in prop::collection::btree_map(("[pq]{1,2}", "[ab]{0,3}"), -9..9, 0..40), seed in any::<u64>()) -> Run {
        let mut rows: Vec<_> = rows.into_iter().map(|((query, doc), score)| (query, doc, f64::from(score))).collect();
        rows.sort_by_key(|(query, doc, _)| crate::hash::hash(format!("{seed}{query} {doc}").as_bytes()));
        Run(rows)
    }
}

proptest! {
    #[test]
    fn sums_are_those_of_the_definition(runs in prop::collection::vec(any_run(), 1..4), depth in 1..9_usize) {
        let weights = [1.0, 0.5, 2.0];
        let weights = &weights[..runs.len()];
        let fused = fuse(&runs, &settings(RRF, weights)).unwrap();
        let sums = reciprocal_ranks(&runs, weights);
        let shown = show(&runs, &fused);
        prop_assert_eq!(shown.len(), sums.len());
        for (query, doc, score) in &shown {
            prop_assert_eq!(*score, sums[&(query.clone(), doc.clone())]);
        }
        for pair in shown.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            let key = |row: &(String, String, f64)| (row.2 as f32, row.1.clone().into_bytes());
            prop_assert!(key(&pair[0]) > key(&pair[1]));
        }
        let cut = fuse(&runs, &Fusion { depth, threads: NonZeroUsize::new(2), ..settings(RRF, weights) }).unwrap();
        let first = shown.chunk_by(|a, b| a.0 == b.0).flat_map(|ranking| ranking.iter().take(depth));
        prop_assert_eq!(show(&runs, &cut), first.cloned().collect::<Vec<_>>());
    }
}
