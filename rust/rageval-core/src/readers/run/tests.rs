//! Compares the streaming evaluation, with blocks so small that borders fall at every place, with the evaluation of
//! the same rows in memory and with a reference that splits lines and sorts.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use proptest::prelude::*;

use super::*;
use crate::error::Error;
use crate::evaluation::Options;
use crate::measures::{Compiled, Hit, Query};
use crate::ranking::Ties;
use crate::readers::line;
use crate::readers::{read_judgements_text, read_run_text};

const MEASURES: [&str; 6] = ["ndcg@3", "map", "rr", "bpref", "num_ret", "judged@2"];

const QRELS: &[u8] = b"q1 0 a 2\nq1 0 b 1\nq1 0 c 0\nq2 0 a 1\nq2 0 e -1\nq10 0 d 3\nq3 0 a 0\n";

fn evaluator(options: Options) -> Evaluator {
    let measures = MEASURES.map(|text| Compiled::parse(text).unwrap());
    Evaluator::new(measures.into(), options).unwrap()
}

fn judgements() -> Judgements {
    read_judgements_text(Path::new("qrels"), QRELS.to_vec()).unwrap()
}

fn sizes(block: usize) -> Sizes {
    Sizes {
        block,
        chunk: block as u64 * 2,
        border: block.div_ceil(3),
        table: block * 30,
    }
}

fn stream(evaluator: &Evaluator, text: &[u8], sizes: Sizes) -> Result<Evaluation> {
    let source = Source::from_memory(Path::new("run"), text.to_vec())?;
    evaluate_source(evaluator, &judgements(), source, sizes)
}

fn in_memory(evaluator: &Evaluator, text: &[u8]) -> Result<Evaluation> {
    let table = read_run_text(Path::new("run"), text.to_vec())?;
    let evaluation = evaluator.evaluate_rows(&judgements(), &table);
    let source = Source::from_memory(Path::new("run"), text.to_vec())?;
    evaluation.map_err(|error| table.locate(&source, error))
}

/// The line number in an error.
fn line_of(error: &Error) -> u64 {
    match error {
        Error::Malformed { line, .. } => *line,
        other => panic!("{other} names no line"),
    }
}

type Ranking = Vec<(f32, Vec<u8>)>;

/// Rankings by query, and the numbers of all wrong lines; the readers stop at one of them.
fn read_slowly(text: &[u8]) -> (BTreeMap<Vec<u8>, Ranking>, BTreeSet<u64>) {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let (mut rankings, mut wrong) = (BTreeMap::<Vec<u8>, Ranking>::new(), BTreeSet::new());
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        let fields: Vec<&[u8]> = line
            .split(|byte| line::is_gap(*byte))
            .filter(|field| !field.is_empty())
            .collect();
        let [query, _, doc, _, score, _, ..] = fields[..] else {
            if !fields.is_empty() {
                wrong.insert(number);
            }
            continue;
        };
        let score = std::str::from_utf8(score)
            .ok()
            .and_then(|score| score.parse().ok());
        let ids = std::str::from_utf8(query).is_ok() && std::str::from_utf8(doc).is_ok();
        let ranking = rankings.entry(query.to_vec()).or_default();
        let judged = query != b"unjudged" && query != b"q";
        let twice = judged && ranking.iter().any(|(_, known)| known == doc);
        match score.filter(|score: &f64| !score.is_nan() && ids && !twice) {
            Some(score) => ranking.push((score as f32 + 0.0, doc.to_vec())),
            None => drop(wrong.insert(number)),
        }
    }
    (rankings, wrong)
}

fn measure_slowly(rankings: &BTreeMap<Vec<u8>, Ranking>) -> Vec<(Vec<u8>, Vec<f64>)> {
    let judgements = judgements();
    let measures = MEASURES.map(|text| Compiled::parse(text).unwrap());
    let judged = rankings
        .iter()
        .filter_map(|(query, ranking)| Some((query, ranking, judgements.find(query)?)));
    let values = judged.map(|(query, ranking, index)| {
        let judged = judgements.query(index);
        let mut ranking = ranking.clone();
        ranking.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
        let hits: Vec<Hit> = (0..)
            .zip(&ranking)
            .filter_map(|(rank, (_, doc))| {
                let relevance = judgements.relevance(judged, crate::hash::hash(doc), doc)?;
                Some(Hit { rank, relevance })
            })
            .collect();
        let view = Query {
            hits: &hits,
            retrieved: ranking.len(),
            gains: &judged.grades.gains,
            zeros: judged.grades.zeros,
            level: 1,
        };
        let values = measures
            .iter()
            .map(|measure| measure.value(&view, &mut Vec::new()));
        (query.clone(), values.collect())
    });
    values.collect()
}

fn by_query(evaluation: &Evaluation) -> Vec<(Vec<u8>, Vec<f64>)> {
    let values = |query| {
        (0..MEASURES.len())
            .map(|m| evaluation.of(m)[query])
            .collect()
    };
    let queries = evaluation.queries.iter().enumerate();
    queries
        .map(|(i, query)| (query.clone(), values(i)))
        .collect()
}

/// Mostly valid lines of few queries and documents, so that queries continue, recur and tie.
fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let query = prop::sample::select(vec!["q1", "q1", "q1", "q2", "q10", "q3", "unjudged", "q"]);
    let doc = "[a-h][0-9]{0,2}";
    let score = prop::sample::select(vec![
        "1",
        "2.5",
        "2.50",
        "-0.0",
        "0",
        "1e-3",
        "12345678.90123",
        "inf",
        "-7",
        "+7",
        ".25",
        "-1.",
        "123456789012345",
        "1234567890123456",
        "0.123456789012345678901234567890123456789",
    ]);
    let gap = || prop::sample::select(vec![" ", " ", " ", "\t", "  ", " \t "]);
    let lead = prop::sample::select(vec!["", "", "", " ", "\t"]);
    let tail = prop::sample::select(vec!["", "", "", " ", "\r", " further columns\r"]);
    let good = (lead, query, gap(), doc, gap(), score, gap(), tail).prop_map(
        |(lead, query, a, doc, b, score, c, tail)| {
            format!("{lead}{query}{a}Q0{b}{doc}{c}1{a}{score}{b}tag{tail}").into_bytes()
        },
    );
    let blank = prop::sample::select(vec!["", "\r", "  ", "\t"]).prop_map(|s: &str| s.into());
    let wrong = prop::sample::select(vec![
        &b"q1 Q0 a 1 2.0"[..],
        b"q1",
        b"q1 Q0 a 1 x tag",
        b"q2 Q0 a 1 nan tag",
        b"q1 Q0 a\xFF 1 2.0 tag",
        b"q\xFF1 Q0 a 1 2.0 tag",
    ]);
    prop_oneof![60 => good, 6 => blank, 1 => wrong.prop_map(<[u8]>::to_vec)]
}

fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let lines = prop::collection::vec(any_line(), 0..30);
    (any::<bool>(), lines, any::<bool>(), any::<bool>()).prop_map(
        |(mark, mut lines, sorted, ended)| {
            if sorted {
                lines.sort();
            }
            let mut text = if mark {
                b"\xEF\xBB\xBF".to_vec()
            } else {
                Vec::new()
            };
            text.extend(lines.join(&b'\n'));
            if ended {
                text.push(b'\n');
            }
            text
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn blocks_and_threads_change_nothing(text in any_text(), block in 1usize..200, threads in 1usize..4) {
        let options = Options { threads: NonZeroUsize::new(threads), ..Options::default() };
        let evaluator = evaluator(options);
        let (rankings, wrong) = read_slowly(&text);
        let streamed = stream(&evaluator, &text, sizes(block));
        let held = in_memory(&evaluator, &text);
        if rankings.is_empty() && wrong.is_empty() {
            prop_assert_eq!(streamed.unwrap_err().to_string(), "run: contains no run lines");
            prop_assert_eq!(held.unwrap_err().to_string(), "run: contains no run lines");
        } else if wrong.is_empty() {
            let (streamed, held) = (streamed.unwrap(), held.unwrap());
            prop_assert_eq!(by_query(&streamed), measure_slowly(&rankings));
            prop_assert_eq!(streamed, held);
        } else {
            for error in [streamed.unwrap_err(), held.unwrap_err()] {
                prop_assert!(wrong.contains(&line_of(&error)), "{}, not one of {:?}", error, wrong);
            }
        }
    }

    #[test]
    fn options_mean_the_same_in_blocks_and_in_memory(
        text in any_text(),
        block in 1usize..200,
        ties in prop::sample::select(vec![Ties::TrecEval, Ties::Float64, Ties::Input, Ties::Ranx]),
        (depth, judged_only, drop_self) in (0usize..6, any::<bool>(), any::<bool>()),
    ) {
        let options = Options {
            ties, depth, judged_only, drop_self, keep_first: true, tie_range: true, missing_as_empty: true, threads: NonZeroUsize::new(2),
            ..Options::default()
        };
        let evaluator = evaluator(options);
        let streamed = stream(&evaluator, &text, sizes(block));
        match (streamed, in_memory(&evaluator, &text)) {
            (Ok(streamed), Ok(held)) => prop_assert_eq!(streamed, held),
            (Err(streamed), Err(held)) => prop_assert_eq!(streamed.to_string(), held.to_string()),
            (streamed, held) => prop_assert!(false, "{streamed:?} but {held:?}"),
        }
    }

    #[test]
    fn any_bytes_give_a_value_or_an_error(
        text in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            prop::collection::vec(prop::sample::select(b"q1 \t\r\n\n\n\0\x0B.-e9\xFF\xC3\xA9".to_vec()), 0..200),
        ],
        block in 1usize..40,
    ) {
        let evaluator = evaluator(Options { keep_first: true, threads: NonZeroUsize::new(1), ..Options::default() });
        match (stream(&evaluator, &text, sizes(block)), in_memory(&evaluator, &text)) {
            (Ok(streamed), Ok(held)) => prop_assert_eq!(streamed, held),
            (Err(streamed), Err(held)) => prop_assert_eq!(streamed.to_string(), held.to_string()),
            (streamed, held) => prop_assert!(false, "{streamed:?} but {held:?}"),
        }
    }
}

#[test]
fn parts_start_at_new_queries_and_cover_the_text() {
    let text: Vec<u8> = (0..40)
        .flat_map(|row| format!("q{} Q0 d{row} 1 {row} t\n", row / 7).into_bytes())
        .collect();
    for chunk in 1..text.len() as u64 {
        let source = Source::from_memory(Path::new("run"), text.clone()).unwrap();
        let sizes = Sizes {
            block: 9,
            chunk,
            border: 5,
            table: 0,
        };
        let parts = cut(&source, sizes).unwrap();
        assert_eq!(
            (parts[0].0, parts[parts.len() - 1].1),
            (0, text.len() as u64)
        );
        for pair in parts.windows(2) {
            assert_eq!(pair[0].1, pair[1].0);
            let start = pair[1].0 as usize;
            assert_eq!(text[start - 1], b'\n');
            let before = text[..start - 1]
                .rsplit(|byte| *byte == b'\n')
                .next()
                .unwrap();
            assert_ne!(before[..2], text[start..start + 2], "chunk {chunk}");
        }
    }
}

/// Enough valid lines come before the wrong one that no reader sees it in its first block.
#[test]
fn every_error_names_its_line() {
    for (line, expected) in [
        (
            &b"q2 Q0 d 1 2.0"[..],
            "has 5 columns; a run line has 6: query_id Q0 doc_id rank score tag",
        ),
        (
            b"q2",
            "has 1 column; a run line has 6: query_id Q0 doc_id rank score tag",
        ),
        (b"q1 Q0 d 1 high t", "the score 'high' is not a number"),
        (b"q1 Q0 d 1 1,5 t", "the score '1,5' is not a number"),
        (b"q1 Q0 d 1 \xFF t", "the score '\u{FFFD}' is not a number"),
        (
            b"q1 Q0 d 1 NaN t",
            "the score of document 'd' for query 'q1' is NaN, which cannot be ranked",
        ),
        (
            b"q1 Q0 d7 1 1 t",
            "document 'd7' is retrieved twice for query 'q1'; remove one, or set duplicates to 'first'",
        ),
        (
            b"q1 Q0 d\xE9 1 1 t",
            "the id 'd\u{FFFD}' is not UTF-8; convert the file (iconv -f LATIN1 -t UTF-8)",
        ),
        (
            b"\xE9 Q0 d 1 1 t",
            "the id '\u{FFFD}' is not UTF-8; convert the file (iconv -f LATIN1 -t UTF-8)",
        ),
        (
            b"\0q1 Q0 d 1 1 t",
            "contains the control character 0x00; is this a text file?",
        ),
        (
            b"q1\0 Q0 d 1 1 t",
            "contains the control character 0x00; is this a text file?",
        ),
        (
            b"q1 Q0 d 1 1\x01 t",
            "contains the control character 0x01; is this a text file?",
        ),
        (
            b"q1 Q0 d 1 1 t\x1A",
            "contains the control character 0x1A; is this a text file?",
        ),
        (
            b"q1 Q0 d 1 1 t further \x02",
            "contains the control character 0x02; is this a text file?",
        ),
        (
            b"q1 Q0 d 1 1 t\rq1 Q0 e 1 1 t\r",
            "contains a carriage return; convert the line endings (tr '\\r' '\\n')",
        ),
    ] {
        let mut text = Vec::new();
        for row in 0..20 {
            text.extend(format!("q1 Q0 d{row} 1 1.5 t\n").into_bytes());
        }
        text.extend(line);
        text.extend(b"\nq9 Q0 d 1 1 t\n");
        for block in [1, 7, 64, 1000] {
            let error = stream(&evaluator(Options::default()), &text, sizes(block)).unwrap_err();
            assert_eq!(error.to_string(), format!("run:21: {expected}"));
        }
        let error = in_memory(&evaluator(Options::default()), &text).unwrap_err();
        assert_eq!(error.to_string(), format!("run:21: {expected}"));
    }
}

#[test]
fn a_border_at_any_byte_changes_nothing() {
    let long = "t".repeat(70);
    let lines = format!(
        "q1 Q0 a 1 2.5 t\r\n\tq1\tQ0\tb\t2\t2.25\tt\nq1 Q0  \u{e9} 3 -1e0 t further\n\r\n \nq10 Q0 d 1 1 {long}\n\
         unjudged Q0 a 1 7 t\nq2 Q0 e 1 0.123456789012345678 t\nq2 Q0 {long} 2 -0 t\nq2 Q0 a 3 .0 t"
    );
    let again = format!("{lines}\nq1 Q0 h 1 2.5 t");
    for text in [lines, again] {
        let evaluator = evaluator(Options::default());
        let expected = in_memory(&evaluator, text.as_bytes()).unwrap();
        for block in 1..=text.len() {
            for table in [0, 1 << 20] {
                let sizes = Sizes {
                    table,
                    ..sizes(block)
                };
                assert_eq!(
                    stream(&evaluator, text.as_bytes(), sizes).unwrap(),
                    expected,
                    "{block}"
                );
            }
        }
    }
}

#[test]
fn scattered_queries_are_grouped_in_any_number_of_passes() {
    let rows = (0..600u32).map(|row| {
        let query = if row % 13 == 0 {
            "unjudged".to_owned()
        } else {
            format!("q{}", row * 7 % 20)
        };
        format!(
            "{query} Q0 {}{row} 1 {} t\n",
            ["a", "d"][row as usize % 2],
            row * 37 % 101
        )
    });
    let mut text: String = rows.collect();
    text.push_str("q1 Q0 a 1 50 t\nq2 Q0 a 1 50 t\nq3 Q0 a 1 50 t\nq10 Q0 d 1 50 t\n");
    let evaluator = evaluator(Options::default());
    let expected = in_memory(&evaluator, text.as_bytes()).unwrap();
    assert_eq!((expected.queries.len(), expected.unjudged_queries), (4, 17));
    let twice = format!("{text}q3 Q0 a 1 50 t\n");
    for table in [0, 100, 1000, 5000, 1 << 20] {
        let sizes = Sizes {
            table,
            ..sizes(100)
        };
        assert_eq!(
            stream(&evaluator, text.as_bytes(), sizes).unwrap(),
            expected,
            "{table}"
        );
        let error = stream(&evaluator, twice.as_bytes(), sizes).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("run:605: document 'a' is retrieved twice"),
            "{error}"
        );
    }
}

#[test]
fn duplicates_in_distant_rows_are_found_too() {
    let text = b"q1 Q0 a 1 3 t\nq2 Q0 a 1 3 t\nq1 Q0 b 2 2 t\nq1 Q0 a 3 1 t\n";
    let error = stream(&evaluator(Options::default()), text, sizes(5)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "run:4: document 'a' is retrieved twice for query 'q1'; remove one, or set duplicates to 'first'"
    );
}

#[test]
fn the_error_in_the_first_part_is_reported() {
    let mut text = Vec::new();
    for row in 0..50 {
        text.extend(
            format!("q{row} Q0 d 1 {} t\n", if row >= 30 { "x" } else { "1" }).into_bytes(),
        );
    }
    let evaluator = evaluator(Options {
        threads: NonZeroUsize::new(4),
        ..Options::default()
    });
    for block in 1..100 {
        let error = stream(&evaluator, &text, sizes(block)).unwrap_err();
        assert_eq!(error.to_string(), "run:31: the score 'x' is not a number");
    }
}

#[test]
fn a_file_that_shrinks_is_an_error() {
    let path = std::env::temp_dir().join(format!("rageval-shrinks-{}", std::process::id()));
    std::fs::write(&path, b"q1 Q0 a 1 3 t\n".repeat(100)).unwrap();
    let source = Source::open(&path).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(700).unwrap();
    let result = evaluate_source(
        &evaluator(Options::default()),
        &judgements(),
        source,
        sizes(50),
    );
    std::fs::remove_file(&path).unwrap();
    let message = result.unwrap_err().to_string();
    assert!(
        message.ends_with(
            "became shorter while it was being read; try again when it is no longer being written"
        ),
        "{message}"
    );
}

#[test]
fn a_query_longer_than_all_blocks_is_one_ranking() {
    let mut text = Vec::new();
    for row in 0..500 {
        text.extend(format!("q1 Q0 d{row} 1 -{row} t\n").into_bytes());
    }
    text.extend(b"q1 Q0 a 1 -1000 t");
    let evaluation = stream(&evaluator(Options::default()), &text, sizes(1)).unwrap();
    assert_eq!(evaluation.of(2), [1.0 / 501.0]);
    assert_eq!(evaluation.of(4), [501.0]);
}
