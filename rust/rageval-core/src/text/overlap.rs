//! How many of a text's words occur in other texts.

use std::num::NonZeroUsize;

use super::segmentation::{cut, split_sentences};
use super::words::{Kind, Word, visit_words};
use crate::hash::hash;
use crate::threads;

/// The points for a word that is found: a function word or a pair of neighbours 1, a content word 5, a number 10.
const fn points(kind: Kind) -> u32 {
    match kind {
        Kind::Function => 1,
        Kind::Content => 5,
        Kind::Number => 10,
    }
}
const POINTS_OF_PAIR: u32 = 1;
/// Longer chains of hyphenated words do not count as one word.
const MOST_PARTS: usize = 8;

/// The points of a text's words that a source contains, and of all its words. `total` is 0 if the text has no content
/// words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordShare {
    /// Points found.
    pub found: u32,
    /// Points in total.
    pub total: u32,
}

/// Texts to look up in the same sources.
#[derive(Clone, Debug, Default)]
pub struct Search<T> {
    /// The texts whose words are looked up.
    pub texts: Vec<T>,
    /// The texts in which they are looked up.
    pub sources: Vec<T>,
}

/// For each search and each of its texts: the share that each source contains, then that of all sources together.
///
/// Each distinct word of a text counts once: a number 10 points, any other content word 5, a function word 1. Two
/// adjacent words are worth 1 more if they are adjacent in a source too. Words are compared in lower case, without
/// accents and English endings; `e-mail` and `email` are the same.
pub fn word_support<T: AsRef<str> + Sync>(
    searches: &[Search<T>],
    threads: Option<NonZeroUsize>,
) -> Vec<Vec<Vec<WordShare>>> {
    threads::map(searches.len(), threads::resolve(threads), |number| {
        let search = &searches[number];
        let sources: Vec<Source> = search
            .sources
            .iter()
            .map(|text| Source::read(text.as_ref()))
            .collect();
        let support = |text: &T| Wanted::read(text.as_ref()).support(&sources);
        search.texts.iter().map(support).collect()
    })
}

/// A sentence of a text, what its sources contain of it, and where its evidence is. Offsets count code points.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentenceSupport {
    /// Where the sentence begins and ends.
    pub place: (usize, usize),
    /// The share that the best source contains.
    pub alone: WordShare,
    /// The share that all sources together contain.
    pub together: WordShare,
    /// The first of the best sources, and the first of its best sentences; `None` if nothing is found there.
    pub evidence: Option<(usize, Option<(usize, usize)>)>,
}

/// For each text and its sources: the support of each of the text's sentences, as `word_support` measures it.
pub fn sentence_support<T: AsRef<str> + Sync>(
    searches: &[(T, Vec<T>)],
    threads: Option<NonZeroUsize>,
) -> Vec<Vec<SentenceSupport>> {
    threads::map(searches.len(), threads::resolve(threads), |number| {
        let (text, sources) = &searches[number];
        let read: Vec<Source> = sources
            .iter()
            .map(|source| Source::read(source.as_ref()))
            .collect();
        let mut parts = vec![None; sources.len()];
        let places = split_sentences(text.as_ref());
        let said = cut(text.as_ref(), &places);
        places
            .into_iter()
            .zip(said)
            .map(|(place, said)| {
                let wanted = Wanted::read(said);
                let mut shares = wanted.support(&read);
                let together = shares.pop().unwrap_or_default();
                let evidence = first_best(&shares).map(|source| {
                    let (places, sentences) = parts[source]
                        .get_or_insert_with(|| read_sentences(sources[source].as_ref()));
                    let found = first_best(&wanted.shares(sentences));
                    (source, found.map(|found| places[found]))
                });
                SentenceSupport {
                    place,
                    alone: evidence.map_or_else(WordShare::default, |(best, _)| shares[best]),
                    together,
                    evidence,
                }
            })
            .collect()
    })
}

type Sentences = (Vec<(usize, usize)>, Vec<Source>);

fn read_sentences(text: &str) -> Sentences {
    let places = split_sentences(text);
    let read = cut(text, &places).into_iter().map(Source::read).collect();
    (places, read)
}

/// The first of the largest shares; `None` if nothing was found.
fn first_best(shares: &[WordShare]) -> Option<usize> {
    let most = shares.iter().map(|share| share.found).max()?;
    let first = shares.iter().position(|share| share.found == most);
    first.filter(|_| most > 0)
}

/// Reads words together with those before them: pairs of neighbours, and words that hyphens link.
#[derive(Default)]
struct Reading {
    last: Option<u64>,
    compound: String,
    parts: Vec<u64>,
}

impl Reading {
    /// The key of the word, and the key of its pair with the word before.
    fn read(&mut self, word: Word<'_>) -> (u64, Option<u64>) {
        let key = hash(word.text.as_bytes());
        let pair = self.last.map(|last| hash_pair(last, key));
        self.last = Some(key);
        if !word.linked || self.parts.len() == MOST_PARTS {
            self.compound.clear();
            self.parts.clear();
        }
        self.compound.push_str(word.text);
        self.parts.push(key);
        (key, pair)
    }

    /// The key of all words that hyphens link, written as one, if there is more than one.
    fn compound(&self) -> Option<u64> {
        (self.parts.len() > 1).then(|| hash(self.compound.as_bytes()))
    }
}

fn hash_pair(first: u64, second: u64) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    hash(&bytes)
}

/// The words and pairs of neighbours of a source, as sorted hashes.
#[derive(Clone)]
struct Source {
    words: Vec<u64>,
    pairs: Vec<u64>,
}

impl Source {
    fn read(text: &str) -> Self {
        let mut source = Self {
            words: Vec::new(),
            pairs: Vec::new(),
        };
        let mut reading = Reading::default();
        visit_words(text, |word| {
            let (key, pair) = reading.read(word);
            source.words.push(key);
            source.words.extend(reading.compound());
            source.pairs.extend(pair);
        });
        source.words.sort_unstable();
        source.pairs.sort_unstable();
        source
    }

    fn has_word(&self, word: u64) -> bool {
        self.words.binary_search(&word).is_ok()
    }

    fn has_pair(&self, pair: u64) -> bool {
        self.pairs.binary_search(&pair).is_ok()
    }
}

/// The distinct words and pairs of neighbours of a text.
#[derive(Default)]
struct Wanted {
    words: Vec<(u64, u32)>,
    pairs: Vec<u64>,
    /// The parts of hyphenated words, and the same word without hyphens.
    compounds: Vec<(Vec<u64>, u64)>,
    means_something: bool,
}

impl Wanted {
    fn read(text: &str) -> Self {
        let mut wanted = Self::default();
        let mut reading = Reading::default();
        visit_words(text, |word| {
            let (key, pair) = reading.read(word);
            wanted.words.push((key, points(word.kind)));
            wanted.pairs.extend(pair);
            wanted.means_something |= word.kind != Kind::Function;
            if let Some(compound) = reading.compound() {
                wanted.compounds.push((reading.parts.clone(), compound));
            }
        });
        // If a word has two kinds (`us`, `US`), the one worth more is kept.
        wanted
            .words
            .sort_unstable_by_key(|(key, points)| (*key, u32::MAX - points));
        wanted.words.dedup_by_key(|(key, _)| *key);
        wanted.pairs.sort_unstable();
        wanted.pairs.dedup();
        wanted
    }

    fn support(&self, sources: &[Source]) -> Vec<WordShare> {
        let mut shares = self.shares(sources);
        let together = match shares[..] {
            [only] => only,
            _ if !self.means_something => WordShare::default(),
            _ => self.share(sources),
        };
        shares.push(together);
        shares
    }

    /// The share that each source contains.
    fn shares(&self, sources: &[Source]) -> Vec<WordShare> {
        if !self.means_something {
            return vec![WordShare::default(); sources.len()];
        }
        sources
            .iter()
            .map(|source| self.share(std::slice::from_ref(source)))
            .collect()
    }

    /// The share that at least one of the sources contains.
    fn share(&self, sources: &[Source]) -> WordShare {
        let has_word = |word: u64| sources.iter().any(|source| source.has_word(word));
        let has_pair = |pair: u64| sources.iter().any(|source| source.has_pair(pair));
        let mut written_as_one: Vec<u64> = self
            .compounds
            .iter()
            .filter(|(_, compound)| has_word(*compound))
            .flat_map(|(parts, _)| parts.iter().copied())
            .collect();
        written_as_one.sort_unstable();
        let mut share = WordShare::default();
        for &(word, points) in &self.words {
            share.total += points;
            if has_word(word) || written_as_one.binary_search(&word).is_ok() {
                share.found += points;
            }
        }
        share.total += self.pairs.len() as u32 * POINTS_OF_PAIR;
        share.found +=
            self.pairs.iter().filter(|pair| has_pair(**pair)).count() as u32 * POINTS_OF_PAIR;
        share
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn support(text: &str, sources: &[&str]) -> Vec<(u32, u32)> {
        let search = Search {
            texts: vec![text],
            sources: sources.to_vec(),
        };
        let shares = word_support(&[search], None).remove(0).remove(0);
        shares
            .into_iter()
            .map(|share| (share.found, share.total))
            .collect()
    }

    #[test]
    fn words_numbers_and_neighbours_count() {
        // the 1, tower 5, opened 5, in 1, 1889 10, and four pairs of neighbours.
        let text = "The tower opened in 1889.";
        assert_eq!(support(text, &[text]), [(26, 26), (26, 26)]);
        // tower, opening and "the tower".
        assert_eq!(
            support(text, &["opening of the tower"])[0],
            (1 + 5 + 5 + 1, 26)
        );
        assert_eq!(support(text, &["1,889 towers"])[0], (10 + 5, 26));
    }

    #[test]
    fn sources_count_apart_and_together() {
        // cats 5, chase 5, mice 5, two pairs; no source has "chase mice".
        let shares = support("Cats chase mice.", &["cats chase dogs", "mice", "birds"]);
        assert_eq!(shares, [(11, 17), (5, 17), (0, 17), (16, 17)]);
    }

    #[test]
    fn a_repeated_word_counts_once() {
        assert_eq!(support("dog dog dog", &["dog"])[0], (5, 6));
    }

    #[test]
    fn without_content_words_there_is_no_total() {
        assert_eq!(support("It is what it is.", &["what"]), [(0, 0), (0, 0)]);
        assert_eq!(support("", &[]), [(0, 0)]);
        assert_eq!(support("words", &[]), [(0, 5)]);
    }

    #[test]
    fn hyphens_do_not_matter() {
        assert_eq!(support("e-mails", &["email"])[0], (10, 11));
        assert_eq!(support("email", &["an e-mail"])[0], (5, 5));
        assert_eq!(
            support("state-of-the-art", &["state of the art"])[0].0,
            10 + 2 + 3
        );
    }

    #[test]
    fn a_sentence_has_its_best_source_and_its_best_sentence() {
        let sources = vec!["Dogs bark.", "Mice hide. Cats chase mice."];
        let found = sentence_support(&[("Yes. Cats chase mice. It is.", sources)], None).remove(0);
        let places: Vec<_> = found.iter().map(|one| one.place).collect();
        assert_eq!(places, [(0, 4), (5, 21), (22, 28)]);
        assert_eq!(found[1].evidence, Some((1, Some((11, 27)))));
        assert_eq!((found[1].alone.found, found[1].together.total), (17, 17));
        assert_eq!((found[2].evidence, found[2].together.total), (None, 0));
    }

    proptest! {
        #[test]
        fn sentences_have_the_shares_of_their_words(
            text in "[aAb0é. -]{0,40}",
            sources in prop::collection::vec("[aAb0é. -]{0,40}", 0..4),
        ) {
            let refs: Vec<&str> = sources.iter().map(String::as_str).collect();
            let found = sentence_support(&[(text.as_str(), refs.clone())], None).remove(0);
            let places = split_sentences(&text);
            prop_assert_eq!(found.iter().map(|one| one.place).collect::<Vec<_>>(), places.clone());
            let search = Search { texts: cut(&text, &places), sources: refs };
            for (one, shares) in found.iter().zip(word_support(&[search], None).remove(0)) {
                let most = shares[..sources.len()].iter().map(|share| share.found).max();
                prop_assert_eq!(one.alone.found, most.unwrap_or(0));
                prop_assert_eq!(one.together, shares[sources.len()]);
            }
        }

        #[test]
        fn a_text_supports_itself(text in prop_oneof![".{0,60}", "[aAé中서ก0-9 .,'-]{0,60}"], other in ".{0,60}") {
            let shares = support(&text, &[&text, &other]);
            prop_assert_eq!(shares[0].0, shares[0].1);
            prop_assert_eq!(shares[2], shares[0]);
            prop_assert!(shares.iter().all(|share| share.0 <= share.1 && share.1 == shares[0].1));
            let says_nothing = crate::text::words::content_words(&text).is_empty();
            prop_assert_eq!(shares[0].1 == 0, says_nothing);
        }

        #[test]
        fn threads_change_nothing(texts in prop::collection::vec("[ab0 -]{0,9}", 0..9)) {
            let search = |text: &String| Search { texts: vec![text.clone()], sources: texts.clone() };
            let searches: Vec<_> = texts.iter().map(search).collect();
            let one = word_support(&searches, NonZeroUsize::new(1));
            prop_assert_eq!(word_support(&searches, NonZeroUsize::new(3)), one);
        }
    }
}
