use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::Path;

use proptest::prelude::*;

use super::*;

/// A small generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// A number below 4096; small ones are frequent.
    fn rank(&mut self) -> u64 {
        let bits = 1 + self.below(12);
        self.below(1 << bits)
    }
}

fn build(texts: &[String], run: usize, folder: Option<&Path>, threads: usize) -> Vec<u8> {
    let threads = NonZeroUsize::new(threads);
    let stops = ["the".to_owned()];
    let mut builder = Builder::new(Splitter::Words, &stops, false, folder, threads).with_run(run);
    let mut number = 0;
    for batch in texts.chunks(700) {
        let ids = batch.iter().map(|_| {
            number += 1;
            format!("d{}", number * 7919 % 1_000_003)
        });
        builder
            .add(ids, batch, &Alphabet::default(), &mut |_| Ok(Vec::new()))
            .unwrap();
    }
    let mut bytes = Vec::new();
    builder
        .finish(Output::Memory(&mut bytes), b"note", &mut |_, _| Ok(()))
        .unwrap();
    bytes
}

fn search(
    bytes: &[u8],
    queries: &[Vec<String>],
    settings: Settings,
    depth: usize,
) -> Vec<Vec<(String, f32)>> {
    let index = Index::read(bytes, Path::new("index")).unwrap();
    let view = index.with(bytes);
    let found = Searcher::new(view, settings)
        .unwrap()
        .search(queries, depth, None)
        .unwrap();
    let ids = view.ids().unwrap();
    let name = |hit: Hit| (ids.get(hit.document).to_owned(), hit.score());
    let named = |hits: Vec<Hit>| hits.into_iter().map(name).collect();
    found.into_iter().map(named).collect()
}

/// All documents one after another, with float32 sums in the order of the query.
fn search_slowly(texts: &[String], query: &[String], settings: Settings) -> Vec<(String, f32)> {
    let split = |text: &String| -> Vec<String> {
        let words = text
            .split(' ')
            .filter(|word| word.len() > 1 && *word != "the");
        words.map(str::to_owned).collect()
    };
    let documents: Vec<Vec<String>> = texts.iter().map(split).collect();
    let mut dfs: HashMap<&str, u32> = HashMap::new();
    for words in &documents {
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.sort_unstable();
        words.dedup();
        words
            .into_iter()
            .for_each(|word| *dfs.entry(word).or_default() += 1);
    }
    let total: usize = documents.iter().map(Vec::len).sum();
    let formula = scoring::Formula::new(settings, texts.len() as u64, total as u64);
    let known: Vec<&String> = query
        .iter()
        .filter(|word| dfs.contains_key(word.as_str()))
        .collect();
    let weights: Vec<_> = known
        .iter()
        .map(|word| formula.weight(dfs[word.as_str()]))
        .collect();
    let absent = scoring::sum_pairwise(
        &weights
            .iter()
            .map(|weight| weight.absent)
            .collect::<Vec<_>>(),
    );
    let mut found = Vec::new();
    for (number, words) in documents.iter().enumerate() {
        let mut sum = 0.0_f32;
        for (word, weight) in known.iter().zip(&weights) {
            let frequency = words.iter().filter(|other| other == word).count() as u32;
            if frequency > 0 {
                sum += formula.contribution(*weight, frequency, words.len() as u32);
            }
        }
        if sum > 0.0 {
            found.push((
                format!("d{}", (number + 1) * 7919 % 1_000_003),
                sum + absent,
            ));
        }
    }
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    found
}

/// Texts whose words are as frequent as in a language: the nth word about 1 / n times.
fn write_texts(count: usize, seed: u64) -> Vec<String> {
    let mut random = Random(seed);
    let word = |random: &mut Random| match random.rank() {
        0 => "the".to_owned(),
        number => format!("w{number}"),
    };
    (0..count)
        .map(|_| {
            let length = 1 + random.below(30);
            (0..length)
                .map(|_| word(&mut random))
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect()
}

const METHODS: [Method; 5] = [
    Method::Lucene,
    Method::Robertson,
    Method::Atire,
    Method::Plus,
    Method::Long,
];

fn settings(method: Method) -> Settings {
    Settings {
        method,
        k1: 1.2,
        b: 0.75,
        delta: 0.5,
    }
}

#[test]
fn the_best_are_those_of_a_search_of_all_documents() {
    let texts = write_texts(9_000, 1);
    let bytes = build(&texts, usize::MAX, None, 2);
    let mut random = Random(2);
    for method in METHODS {
        let query = |random: &mut Random, size: u64| -> Vec<String> {
            (0..size).map(|_| format!("w{}", random.rank())).collect()
        };
        let sizes = [1, 2, 3, 4, 9, 60];
        let queries: Vec<Vec<String>> =
            sizes.iter().map(|size| query(&mut random, *size)).collect();
        let expected: Vec<_> = queries
            .iter()
            .map(|query| search_slowly(&texts, query, settings(method)))
            .collect();
        for depth in [1, 10, 100, 10_000] {
            let found = search(&bytes, &queries, settings(method), depth);
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(
                    found[..],
                    expected[..expected.len().min(depth)],
                    "{method:?}"
                );
            }
        }
    }
}

#[test]
fn a_lower_depth_gives_the_beginning_of_the_same_ranking() {
    let bytes = build(&write_texts(40_000, 5), usize::MAX, None, 2);
    let mut random = Random(6);
    let queries: Vec<Vec<String>> = (0..60)
        .map(|number| {
            (0..2 + number % 9)
                .map(|_| format!("w{}", random.rank()))
                .collect()
        })
        .collect();
    let whole = search(&bytes, &queries, settings(Method::Lucene), usize::MAX);
    for depth in [1, 20, 300] {
        let found = search(&bytes, &queries, settings(Method::Lucene), depth);
        for (found, whole) in found.iter().zip(&whole) {
            assert_eq!(found[..], whole[..whole.len().min(depth)]);
        }
    }
}

#[test]
fn spilled_runs_and_threads_do_not_change_a_byte() {
    let texts = write_texts(9_000, 3);
    let folder = std::env::temp_dir().join(format!("rageval-bm25-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let whole = build(&texts, usize::MAX, None, 1);
    for (run, threads) in [(1, 1), (5_000, 3), (50_000, 2)] {
        assert!(
            build(&texts, run, Some(&folder), threads) == whole,
            "{run} {threads}"
        );
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    std::fs::remove_dir(&folder).unwrap();
}

#[test]
fn a_changed_or_cut_file_is_an_error_or_changes_nothing() {
    let texts = write_texts(600, 4);
    let bytes = build(&texts, usize::MAX, None, 1);
    let queries = vec![vec!["w1".to_owned(), "w2".into(), "w77".into()]];
    let right = search(&bytes, &queries, settings(Method::Lucene), 600);
    let run = |bytes: &[u8]| -> crate::error::Result<Vec<Vec<Hit>>> {
        let index = Index::read(bytes, Path::new("index"))?;
        let view = index.with(bytes);
        view.note()?;
        let found = Searcher::new(view, settings(Method::Lucene))?.search(&queries, 600, None)?;
        view.ids()?;
        Ok(found)
    };
    assert!(run(&bytes).is_ok());
    for size in (0..bytes.len()).step_by(997).chain([bytes.len() - 1]) {
        assert!(run(&bytes[..size]).is_err());
    }
    for place in (0..bytes.len()).step_by(331) {
        let mut changed = bytes.clone();
        changed[place] ^= 0x10;
        if let Ok(found) = run(&changed) {
            assert_eq!(found[0].len(), right[0].len(), "{place}");
            assert!(
                found[0]
                    .iter()
                    .zip(&right[0])
                    .all(|(hit, (_, score))| hit.score() == *score),
                "{place}"
            );
        }
    }
}

#[test]
fn words_are_pythons() {
    let alphabet = Alphabet::new(&[(0xE0, 0xF7)], &[(0xC9, 0xE9)]);
    let split = |splitter: Splitter, text: &str| {
        let mut pieces = Vec::new();
        splitter.split(text, &alphabet, &mut Vec::new(), |piece| {
            pieces.push(String::from_utf8(piece.to_vec()).unwrap())
        });
        pieces
    };
    assert_eq!(
        split(Splitter::Words, "A cat's É_t\u{00D7}ÉÉ x1 "),
        ["cat", "é_t", "éé", "x1"]
    );
    assert_eq!(
        split(Splitter::Pieces, "A cat's É_t\u{00D7}ÉÉ x1 "),
        ["cat", "É_t\u{00D7}ÉÉ", "x1"]
    );
}

#[test]
fn pieces_become_the_words_that_they_stand_for() {
    let mut builder = Builder::new(Splitter::Pieces, &["the".to_owned()], true, None, None);
    let mut asked = Vec::new();
    let texts = ["the foxes 東京都", "fox 東京都"];
    let add = builder.add(
        ["a", "b"].into_iter(),
        &texts,
        &Alphabet::default(),
        &mut |pieces| {
            asked.extend(pieces.iter().map(|piece| (*piece).to_owned()));
            let expand = |piece: &&str| match *piece {
                "東京都" => vec!["東京".to_owned(), "京都".into()],
                piece => vec![piece.trim_end_matches("es").to_owned()],
            };
            Ok(pieces.iter().map(expand).collect())
        },
    );
    add.unwrap();
    assert_eq!(asked, ["foxes", "東京都", "fox"]);
    let mut bytes = Vec::new();
    builder
        .finish(Output::Memory(&mut bytes), b"", &mut |_, _| Ok(()))
        .unwrap();
    let queries = ["fox", "foxes", "京都"].map(|word| vec![word.to_owned()]);
    let found = search(&bytes, &queries, settings(Method::Lucene), 9);
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [2, 0, 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn blocks_keep_postings(
        gaps in prop::collection::vec((1_u32..2_000_000, prop_oneof![Just(1_u32), 1..5_u32, Just(70_000)]), 1..400),
    ) {
        let mut doc = 0;
        let docs: Vec<u32> = gaps.iter().map(|(gap, _)| { doc += gap; doc - 1 }).collect();
        let frequencies: Vec<u32> = gaps.iter().map(|(_, frequency)| *frequency).collect();
        let mut bytes = Vec::new();
        let lengths: Vec<u32> = (0..=docs[docs.len() - 1].min(999_999)).map(|doc| doc % 1000).collect();
        blocks::encode(&docs, &frequencies, &lengths, &mut bytes).unwrap();
        let list = blocks::Postings::new(&bytes, docs.len() as u32).unwrap();
        let (mut block, mut found) = (blocks::Block::default(), (Vec::new(), Vec::new(), Vec::new()));
        for number in 0..list.blocks() {
            list.decode(number, &mut block).unwrap();
            found.0.extend_from_slice(&block.docs[..block.len]);
            found.1.extend(block.more[..block.len].iter().map(|more| more + 1));
            found.2.extend_from_slice(&block.lengths[..block.len]);
        }
        let lengths = docs.iter().map(|doc| lengths.get(*doc as usize).copied().unwrap_or(0)).collect();
        prop_assert_eq!(found, (docs, frequencies, lengths));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = Index::read(&bytes, Path::new("index"));
        for df in [1, 128, 129, 500] {
            if let Some(list) = blocks::Postings::new(&bytes, df) {
                for number in 0..=list.blocks() {
                    let _ = list.decode(number, &mut blocks::Block::default());
                }
            }
        }
    }
}
