//! Tokens of a unigram vocabulary (Kudo 2018): of all ways to write a word as pieces, the likeliest.
//!
//! They are those of Hugging Face's `tokenizers` with NFC, `Precompiled` (rules that replace single characters),
//! `WhitespaceSplit`, `Metaspace` and `Unigram`, as XLM-RoBERTa has them. Of two equally likely ways, the one whose last
//! piece is longest counts. Any text is accepted, in time linear in its length.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

use crate::hash::{IndexTable, hash};
use crate::threads;

/// What stands for the space before a word.
const SPACE: char = '\u{2581}';
/// How much less likely a character without a piece is than the least likely piece.
const UNKNOWN_PENALTY: f64 = 10.0;
/// `tokenizers` applies the rule for the first character of a cluster of fewer bytes to all of it.
const LONG_CLUSTER: usize = 6;

/// The vocabulary, and the rules by which a text is normalised.
#[derive(Debug)]
pub struct Unigram {
    pieces: Vec<u8>,
    offsets: Vec<u32>,
    scores: Vec<f32>,
    unknown: u32,
    special: Vec<u32>,
    rules: HashMap<char, String>,
    table: IndexTable,
    longest: usize,
}

impl Unigram {
    /// Piece `i`, which is the token `i`, has the text `pieces[offsets[i]..offsets[i + 1]]` and the logarithm of its
    /// probability `scores[i]`. Neighbouring characters without a piece are one token, `unknown`. Those in `special`
    /// are found in a text before `rules` replace its characters.
    #[must_use]
    pub fn new(
        pieces: Vec<u8>,
        offsets: Vec<u32>,
        scores: Vec<f32>,
        unknown: u32,
        special: Vec<u32>,
        rules: HashMap<char, String>,
    ) -> Self {
        let (mut table, longest) = (IndexTable::default(), 1);
        table.reset(scores.len());
        let mut new = Self {
            pieces,
            offsets,
            scores,
            unknown,
            special,
            rules,
            table,
            longest,
        };
        for index in 0..new.scores.len() {
            let key = hash(new.piece(index));
            new.longest = new.longest.max(new.piece(index).len());
            new.table.insert(key, index, |_| 0); // never grows, as it has room for all
        }
        new
    }

    /// The tokens of each text, computed by at most `threads` threads.
    pub fn read<T>(&self, texts: &[T], threads: Option<NonZeroUsize>) -> Vec<Vec<u32>>
    where
        T: AsRef<str> + Sync,
    {
        let lowest = self.scores.iter().copied().fold(f32::INFINITY, f32::min);
        let unknown_score = f64::from(lowest) - UNKNOWN_PENALTY;
        threads::map(texts.len(), threads::resolve(threads), |number| {
            let (text, mut found, mut start) = (texts[number].as_ref(), Vec::new(), 0);
            for (place, _) in text.char_indices() {
                let special = self.find_special(&text[place..]);
                if let Some(id) = special.filter(|_| place >= start) {
                    self.read_plain(&text[start..place], unknown_score, &mut found);
                    found.push(id);
                    start = place + self.piece(id as usize).len();
                }
            }
            self.read_plain(&text[start..], unknown_score, &mut found);
            found
        })
    }

    fn piece(&self, index: usize) -> &[u8] {
        let place = |at| self.offsets.get(at).map_or(0, |place| *place as usize);
        let range = place(index)..place(index + 1);
        self.pieces.get(range).unwrap_or_default()
    }

    /// The longest special token that the text begins with.
    fn find_special(&self, text: &str) -> Option<u32> {
        let size = |id: &&u32| self.piece(**id as usize).len();
        let begins = |id: &&u32| text.as_bytes().starts_with(self.piece(**id as usize));
        let found = self.special.iter().filter(begins).max_by_key(size);
        found.filter(|id| size(id) > 0).copied()
    }

    fn read_plain(&self, text: &str, unknown_score: f64, found: &mut Vec<u32>) {
        for word in self.normalize(text).split_whitespace() {
            for part in word.strip_prefix(SPACE).unwrap_or(word).split(SPACE) {
                self.write(&format!("{SPACE}{part}"), unknown_score, found);
            }
        }
    }

    fn normalize(&self, text: &str) -> String {
        let composed: String = text.nfc().collect();
        let mut found = String::with_capacity(composed.len());
        for cluster in composed.graphemes(true) {
            let has_rule = |first| self.rules.contains_key(&first);
            let at_once = cluster.len() < LONG_CLUSTER && cluster.chars().take(1).any(has_rule);
            for character in cluster.chars().take(if at_once { 1 } else { usize::MAX }) {
                match self.rules.get(&character) {
                    Some(replacement) => found.push_str(replacement),
                    None => found.push(character),
                }
            }
        }
        found
    }

    /// Adds the tokens of the likeliest way to write a word.
    fn write(&self, word: &str, unknown_score: f64, found: &mut Vec<u32>) {
        // For the word up to each byte, the best score, and the start and the number of the last piece.
        let mut best = vec![(f64::NEG_INFINITY, 0, 0); word.len() + 1];
        best[0].0 = 0.0;
        for (start, _) in word.char_indices() {
            let before = best[start].0;
            for (place, last) in word[start..].char_indices() {
                if place >= self.longest {
                    break;
                }
                let end = start + place + last.len_utf8();
                let bytes = &word.as_bytes()[start..end];
                let piece = (self.table).find(hash(bytes), |index| self.piece(index) == bytes);
                let (id, score) = match piece {
                    Some(index) => (index as u32, f64::from(self.scores[index])),
                    None if place == 0 => (self.unknown, unknown_score),
                    None => continue,
                };
                if best[end].0 < before + score {
                    best[end] = (before + score, start, id);
                }
            }
        }
        let (first, mut end) = (found.len(), word.len());
        while end > 0 {
            let (_, start, id) = best[end];
            if id != self.unknown || found[first..].last() != Some(&id) {
                found.push(id);
            }
            end = start;
        }
        found[first..].reverse();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn make(pieces: &[(&str, f32)], special: &[u32], rules: &[(char, &str)]) -> Unigram {
        let texts: Vec<&[u8]> = pieces.iter().map(|(piece, _)| piece.as_bytes()).collect();
        let mut offsets = vec![0];
        for text in &texts {
            offsets.push(offsets.last().copied().unwrap_or(0) + text.len() as u32);
        }
        let scores = pieces.iter().map(|(_, score)| *score).collect();
        let rules = rules.iter().map(|(one, text)| (*one, (*text).to_owned()));
        Unigram::new(
            texts.concat(),
            offsets,
            scores,
            0,
            special.to_vec(),
            rules.collect(),
        )
    }

    fn read(unigram: &Unigram, text: &str) -> Vec<u32> {
        unigram.read(&[text], NonZeroUsize::new(1)).concat()
    }

    #[test]
    fn the_likeliest_way_is_taken() {
        let pieces = [
            ("?", -9.0),
            ("\u{2581}", -1.0),
            ("a", -2.0),
            ("b", -2.0),
            ("ab", -3.5),
        ];
        let unigram = make(&pieces, &[], &[]);
        // -1 - 3.5 is more than -1 - 2 - 2.
        assert_eq!(read(&unigram, "ab"), [1, 4]);
        assert_eq!(read(&unigram, " ba\nb "), [1, 3, 2, 1, 3]);
        assert_eq!(read(&unigram, "xyazz"), [1, 0, 2, 0]);
        assert_eq!(read(&unigram, ""), []);
    }

    #[test]
    fn of_equal_ways_the_one_with_the_longest_last_piece_is_taken() {
        let pieces = [
            ("?", -9.0),
            ("\u{2581}", -1.0),
            ("a", -2.0),
            ("b", -2.0),
            ("ab", -4.0),
        ];
        assert_eq!(read(&make(&pieces, &[], &[]), "ab"), [1, 4]);
    }

    #[test]
    fn special_tokens_are_found_before_characters_are_replaced() {
        let pieces = [
            ("?", -9.0),
            ("\u{2581}", -1.0),
            ("a", -2.0),
            ("<", -2.0),
            ("<a>", -2.0),
            ("<a", -9.0),
        ];
        let unigram = make(&pieces, &[4, 5], &[('\u{ff1c}', "<"), ('>', "")]);
        assert_eq!(read(&unigram, "a<a>a"), [1, 2, 4, 1, 2]);
        assert_eq!(read(&unigram, "<a a"), [5, 1, 2]);
        assert_eq!(read(&unigram, "\u{ff1c}a>"), [1, 3, 2]);
    }

    #[test]
    fn a_short_cluster_is_replaced_as_a_whole() {
        let pieces = [
            ("?", -9.0),
            ("\u{2581}", -1.0),
            ("a", -2.0),
            ("\u{301}", -2.0),
        ];
        let unigram = make(
            &pieces,
            &[],
            &[('\u{ff41}', "a"), ('\u{1d41a}', "a"), ('\u{302}', "a")],
        );
        assert_eq!(read(&unigram, "\u{ff41}\u{301}"), [1, 2]);
        assert_eq!(
            read(&unigram, "\u{1d41a}\u{301}"),
            [1, 2, 3],
            "it has six bytes"
        );
        assert_eq!(
            read(&unigram, "q\u{302}\u{301}"),
            [1, 0, 2, 3],
            "its first character has no rule"
        );
    }

    proptest! {
        #[test]
        fn any_vocabulary_reads_any_text(
            pieces in prop::collection::vec(any::<u8>(), 0..30),
            offsets in prop::collection::vec(0u32..40, 0..8),
            scores in prop::collection::vec(any::<f32>(), 0..10),
            special in prop::collection::vec(0u32..12, 0..3),
            texts in prop::collection::vec(".{0,20}", 0..4),
        ) {
            let unigram = Unigram::new(pieces, offsets, scores, 7, special, HashMap::new());
            let one = unigram.read(&texts, NonZeroUsize::new(1));
            prop_assert_eq!(one.len(), texts.len());
            prop_assert_eq!(one, unigram.read(&texts, NonZeroUsize::new(3)));
        }
    }
}
