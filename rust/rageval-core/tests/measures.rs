//! Every measure on one ranking that can be computed by hand, and properties that hold for all rankings.

use proptest::prelude::*;
use rageval_core::measures::{Compiled, Cutoff, Hit, Query, words};

/// Judged documents with relevance 0, 2, 1 at ranks 1, 2, 4 of five; a document of relevance 3 and one of relevance 0
/// were not retrieved. So R = 3, and 2 judged documents are not relevant.
const HITS: [Hit; 3] = [
    Hit {
        rank: 0,
        relevance: 0,
    },
    Hit {
        rank: 1,
        relevance: 2,
    },
    Hit {
        rank: 3,
        relevance: 1,
    },
];

fn value(measure: &str, hits: &[Hit], retrieved: usize, gains: &[i32], zeros: usize) -> f64 {
    let query = Query {
        hits,
        retrieved,
        gains,
        zeros,
        level: 1,
    };
    Compiled::parse(measure)
        .unwrap()
        .value(&query, &mut Vec::new())
}

#[test]
fn every_measure_has_the_value_worked_out_by_hand() {
    let (log3, log5) = (3f64.log2(), 5f64.log2());
    let ideal = 3.0 + 2.0 / log3 + 1.0 / 2.0;
    let epsilon = 0.00001;
    let cases = [
        ("precision@2", 1.0 / 2.0),
        ("precision@10", 2.0 / 10.0),
        ("precision(rel=2)@5", 1.0 / 5.0),
        // Without the unjudged documents the ranking is 0, 2, 1.
        ("precision(judged_only=true)@3", 2.0 / 3.0),
        ("recall@2", 1.0 / 3.0),
        ("recall(rel=2)@5", 1.0 / 2.0),
        ("capped_recall@2", 1.0 / 2.0),
        (
            "f1@5",
            2.0 * (2.0 / 5.0) * (2.0 / 3.0) / (2.0 / 5.0 + 2.0 / 3.0),
        ),
        ("success@1", 0.0),
        ("success@2", 1.0),
        ("rr", 1.0 / 2.0),
        ("rr@1", 0.0),
        ("map", (1.0 / 2.0 + 2.0 / 4.0) / 3.0),
        ("map@2", (1.0 / 2.0) / 3.0),
        ("rprec", 1.0 / 3.0),
        ("dcg", 2.0 / log3 + 1.0 / log5),
        ("dcg(gain=exp)@2", 3.0 / log3),
        ("ndcg", (2.0 / log3 + 1.0 / log5) / ideal),
        ("ndcg@2", (2.0 / log3) / (3.0 + 2.0 / log3)),
        // One nonrelevant document of min(2, 3) stands above both.
        ("bpref", (0.5 + 0.5) / 3.0),
        (
            "infap",
            ((1.0 / 2.0 + 1.0 / 2.0 * epsilon / (1.0 + 2.0 * epsilon))
                + (1.0 / 4.0 + 3.0 / 4.0 * (2.0 / 3.0) / 2.0))
                / 3.0,
        ),
        ("rbp(p=0.8)", 0.2 * (0.8 + 0.8 * 0.8 * 0.8)),
        ("err", 3.0 / 16.0 / 2.0 + 13.0 / 16.0 * (1.0 / 16.0) / 4.0),
        ("iprec@0", 1.0 / 2.0),
        ("iprec@0.5", 2.0 / 4.0),
        ("iprec@1", 0.0),
        ("gm_map", (1.0f64 / 3.0).ln()),
        ("judged@3", 2.0 / 3.0),
        ("num_ret", 5.0),
        ("num_rel", 3.0),
        ("num_rel_ret", 2.0),
        ("set_precision", 2.0 / 5.0),
        ("set_recall", 2.0 / 3.0),
        (
            "set_f(beta=2)",
            3.0 * (2.0 / 5.0) * (2.0 / 3.0) / (2.0 * 2.0 / 5.0 + 2.0 / 3.0),
        ),
        // R is 3, so there is no single target.
        ("target_rank", 0.0),
        ("relative_precision@5", 2.0 / 3.0),
        ("rprec_mult@2", 2.0 / 6.0),
        ("set_map", 4.0 / 15.0),
        ("set_relative_precision", 2.0 / 3.0),
        ("utility", 2.0 - 3.0),
        ("num_q", 1.0),
        ("num_nonrel_judged_ret", 1.0),
    ];
    for (measure, expected) in cases {
        let found = value(measure, &HITS, 5, &[3, 2, 1], 2);
        assert!(
            (found - expected).abs() < 1e-15,
            "{measure}: {found}, expected {expected}"
        );
    }
    for word in words().iter().filter(|word| word.listed) {
        let covered = cases
            .iter()
            .any(|(measure, _)| measure.split(['@', '(']).next() == Some(word.name));
        assert!(covered, "'{}' is not worked out", word.name);
    }
}

#[test]
fn nothing_found_and_nothing_to_find_are_zero() {
    for word in words() {
        let measure = spell(word);
        let floor = if word.name.starts_with("gm_") {
            0.00001f64.ln()
        } else {
            0.0
        };
        for (retrieved, gains) in [(0, &[][..]), (0, &[2, 1][..]), (7, &[][..])] {
            let expected = match (word.name, retrieved, gains.len()) {
                ("num_q", ..) => 1.0,
                ("num_ret", retrieved, _) => retrieved as f64,
                ("num_rel", _, relevant) => relevant as f64,
                ("utility", retrieved, _) => -(retrieved as f64),
                _ => floor,
            };
            assert_eq!(
                value(&measure, &[], retrieved, gains, 0),
                expected,
                "{measure}, {retrieved} retrieved"
            );
        }
    }
}

fn spell(word: &rageval_core::measures::Word) -> String {
    match word.cutoff {
        Cutoff::Never | Cutoff::Optional => word.name.to_owned(),
        Cutoff::Required => format!("{}@3", word.name),
        Cutoff::Level => format!("{}@0.5", word.name),
    }
}

/// A ranking: relevance by rank, where judged; and what was judged and not retrieved.
fn any_query() -> impl Strategy<Value = (Vec<Hit>, usize, Vec<i32>, usize)> {
    let ranking = prop::collection::vec(prop::option::weighted(0.6, -1..5i32), 0..30);
    (ranking, prop::collection::vec(0..5i32, 0..10)).prop_map(|(ranking, others)| {
        let hits: Vec<Hit> = (0..)
            .zip(&ranking)
            .filter_map(|(rank, relevance)| {
                Some(Hit {
                    rank,
                    relevance: (*relevance)?,
                })
            })
            .collect();
        let all = || ranking.iter().flatten().chain(&others);
        let mut gains: Vec<i32> = all().copied().filter(|relevance| *relevance > 0).collect();
        gains.sort_unstable_by(|a, b| b.cmp(a));
        let zeros = all().filter(|relevance| **relevance == 0).count();
        (hits, ranking.len(), gains, zeros)
    })
}

proptest! {
    #[test]
    fn shares_lie_between_0_and_1((hits, retrieved, gains, zeros) in any_query()) {
        // gdeval's ERR, sums, logarithms and ranks are on other scales.
        let other = ["dcg", "gm_map", "gm_bpref", "num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret",
                     "utility", "target_rank", "g", "bing", "rndcg", "ndcg_rel"];
        for word in words() {
            let measure = spell(word);
            let value = value(&measure, &hits, retrieved, &gains, zeros);
            prop_assert!(value.is_finite(), "{}: {}", measure, value);
            if !other.contains(&word.name) {
                prop_assert!((0.0..=1.0 + 1e-12).contains(&value), "{}: {}", measure, value);
            }
        }
    }

    #[test]
    fn a_relevant_document_that_rises_lowers_nothing((hits, retrieved, gains, zeros) in any_query()) {
        let rising = hits.iter().position(|hit| hit.relevance > 0 && hit.rank > 0);
        let Some(place) = rising.filter(|place| *place == 0 || hits[place - 1].rank + 1 < hits[*place].rank) else {
            return Ok(());
        };
        let mut risen = hits.clone();
        risen[place].rank -= 1;
        for measure in ["ndcg", "map", "rr", "precision@3", "recall@3", "rprec", "rbp", "success@2", "iprec@0.5"] {
            let (before, after) = (
                value(measure, &hits, retrieved, &gains, zeros),
                value(measure, &risen, retrieved, &gains, zeros),
            );
            prop_assert!(after >= before - 1e-12, "{measure}: {before} became {after}");
        }
    }

    #[test]
    fn any_text_is_a_measure_or_an_error(text in ".{0,40}") {
        let _ = Compiled::parse(&text);
    }
}
