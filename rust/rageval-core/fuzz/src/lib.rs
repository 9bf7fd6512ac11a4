//! What must hold for any bytes. `tests/fuzz.rs` of the crate runs the same functions on changed seeds in every
//! `cargo test`, without a fuzzer.

use std::num::NonZeroUsize;
use std::path::Path;

use rageval_core::evaluation::{Evaluator, Options};
use rageval_core::hash::hash;
use rageval_core::judgements::Judgements;
use rageval_core::measures::{Compiled, Hit, Query};
use rageval_core::readers::{
    evaluate_run_text, read_judgements_text, read_qrels_text, read_run_text,
};
use rageval_core::text::{Search, names, split_sentences, word_support};

const QRELS: &[u8] = b"q1 0 d1 2\nq1 0 d2 1\nq1 0 d3 0\nq2 0 d1 1\nq2 0 d4 -1\nq 0 d 3\n";

fn evaluator() -> Evaluator {
    let measures = ["ndcg@3", "map", "rr", "bpref", "infap", "judged@2"];
    let measures = measures.map(|text| Compiled::parse(text).expect("a measure"));
    let options = Options {
        keep_first: true,
        tie_range: true,
        threads: NonZeroUsize::new(1),
        ..Options::default()
    };
    Evaluator::new(measures.into(), options).expect("an evaluator")
}

/// A run: read in blocks and read whole, it gives the same finite values or the same error.
pub fn run(bytes: &[u8]) {
    let name = Path::new("run");
    let judgements = read_judgements_text(name, QRELS.to_vec()).expect("judgements");
    let evaluator = evaluator();
    let streamed = evaluate_run_text(&evaluator, &judgements, name, bytes.to_vec());
    let table = read_run_text(name, bytes.to_vec());
    let held = table.and_then(|table| evaluator.evaluate_rows(&judgements, &table));
    match (streamed, held) {
        (Ok(streamed), Ok(held)) => {
            assert_eq!(streamed, held);
            assert!(held.values.iter().all(|value| value.is_finite()));
        }
        (Err(streamed), Err(held)) => assert_eq!(streamed.to_string(), held.to_string()),
        (streamed, held) => panic!("{streamed:?}, but whole: {held:?}"),
    }
}

/// Qrels: ids are UTF-8 and not empty, and every row can be looked up unless a pair is judged twice.
pub fn qrels(bytes: &[u8]) {
    let name = Path::new("qrels");
    let mut known = Judgements::default();
    let mut rows = Vec::new();
    let read = read_qrels_text(name, bytes.to_vec(), |row| {
        for id in [row.query, row.doc] {
            assert!(!id.is_empty() && std::str::from_utf8(id).is_ok());
        }
        known.push(row.query, row.doc, row.relevance)?;
        rows.push((row.query.to_vec(), row.doc.to_vec(), row.relevance));
        Ok(())
    });
    let indexed = read_judgements_text(name, bytes.to_vec());
    match (read, indexed) {
        (Ok(()), Ok(judgements)) => {
            for (query, doc, relevance) in rows {
                let judged = judgements.query(judgements.find(&query).expect("a query"));
                let found = judgements.relevance(judged, hash(&doc), &doc);
                assert_eq!(found, Some(relevance));
            }
        }
        (Err(read), Err(indexed)) => assert_eq!(read.to_string(), indexed.to_string()),
        (read, indexed) => panic!("{read:?}, but indexed: {indexed:?}"),
    }
}

/// A measure's name: its canonical text parses to the same measure, and its value is finite.
pub fn measure_name(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(measure) = Compiled::parse(text) else {
        return;
    };
    let again = Compiled::parse(&measure.text).map(|again| again.text);
    assert_eq!(again.ok().as_deref(), Some(measure.text.as_str()), "{text}");
    let hit = |(rank, relevance)| Hit { rank, relevance };
    let query = Query {
        hits: &[(0, 0), (1, 2), (3, -1), (4, 1)].map(hit),
        retrieved: 6,
        gains: &[3, 2, 1, 1],
        zeros: 2,
        level: 1,
    };
    let value = measure.value(&query, &mut Vec::new());
    assert!(value.is_finite(), "{text}: {value}");
}

/// A text: its sentences are in order and cover everything visible. The text supports itself, whole and sentence by
/// sentence.
pub fn text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let chars: Vec<char> = text.chars().collect();
    let mut held = 0;
    let mut covered = 0;
    for (start, end) in split_sentences(&text) {
        assert!(covered <= start && start < end && end <= chars.len());
        held += chars[start..end].iter().filter(|c| !is_space(**c)).count();
        covered = end;
    }
    assert_eq!(held, chars.iter().filter(|c| !is_space(**c)).count());
    let search = Search {
        texts: vec![&*text],
        sources: vec![&*text, ""],
    };
    let shares = word_support(&[search], NonZeroUsize::new(1))
        .remove(0)
        .remove(0);
    let [own, blank, together] = shares[..] else {
        panic!("{shares:?}");
    };
    assert_eq!((own.found, together), (own.total, own));
    assert_eq!((blank.found, blank.total), (0, own.total));
    assert!(names(&text).iter().all(|name| !name.is_empty()));
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}
