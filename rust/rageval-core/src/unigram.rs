//! Tokens of a unigram vocabulary (Kudo 2018): of all ways to write a word as pieces, the likeliest.
//!
//! They are those of SentencePiece, and of Hugging Face's `tokenizers` with `WhitespaceSplit`, `Metaspace` and
//! `Unigram`. Of two equally likely ways, the one whose last piece is longest counts. Any text is accepted, in time
//! linear in its length.

use std::num::NonZeroUsize;

use crate::hash::{IndexTable, hash};
use crate::threads;

/// What stands for the space before a word.
const SPACE: char = '\u{2581}';
/// How much less likely a character without a piece is than the least likely piece.
const UNKNOWN_PENALTY: f64 = 10.0;

/// The vocabulary.
#[derive(Debug)]
pub struct Unigram {
    pieces: Vec<u8>,
    offsets: Vec<u32>,
    scores: Vec<f32>,
    unknown: u32,
    unknown_score: f64,
    table: IndexTable,
    longest: usize,
}

impl Unigram {
    /// Piece `i`, which is the token `i`, has the text `pieces[offsets[i]..offsets[i + 1]]` and the logarithm of its
    /// probability `scores[i]`; one whose score is NaN is found in no text. Neighbouring characters without a piece are
    /// one token, `unknown`.
    #[must_use]
    pub fn new(pieces: Vec<u8>, offsets: Vec<u32>, scores: Vec<f32>, unknown: u32) -> Self {
        let lowest = scores.iter().copied().fold(f32::INFINITY, f32::min);
        let mut new = Self {
            pieces,
            offsets,
            scores,
            unknown,
            unknown_score: f64::from(lowest) - UNKNOWN_PENALTY,
            table: IndexTable::default(),
            longest: 1,
        };
        new.table.reset(new.scores.len());
        for index in 0..new.scores.len() {
            if !new.scores[index].is_nan() {
                let key = hash(new.piece(index));
                new.longest = new.longest.max(new.piece(index).len());
                new.table.insert(key, index, |_| 0); // never grows, as it has room for all
            }
        }
        new
    }

    /// The tokens of each text, computed by at most `threads` threads. A text is read to its end, or up to the word
    /// with which it has more than `most` tokens.
    pub fn read<T>(&self, texts: &[T], most: usize, threads: Option<NonZeroUsize>) -> Vec<Vec<u32>>
    where
        T: AsRef<str> + Sync,
    {
        threads::map(texts.len(), threads::resolve(threads), |number| {
            let mut found = Vec::new();
            for word in texts[number].as_ref().split_whitespace() {
                for part in word.strip_prefix(SPACE).unwrap_or(word).split(SPACE) {
                    self.write(&format!("{SPACE}{part}"), &mut found);
                }
                if found.len() > most {
                    break;
                }
            }
            found
        })
    }

    fn piece(&self, index: usize) -> &[u8] {
        let place = |at| self.offsets.get(at).map_or(0, |place| *place as usize);
        let range = place(index)..place(index + 1);
        self.pieces.get(range).unwrap_or_default()
    }

    /// Adds the tokens of the likeliest way to write a word.
    fn write(&self, word: &str, found: &mut Vec<u32>) {
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
                    None if place == 0 => (self.unknown, self.unknown_score),
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

    fn make(pieces: &[(&str, f32)]) -> Unigram {
        let texts: Vec<&[u8]> = pieces.iter().map(|(piece, _)| piece.as_bytes()).collect();
        let mut offsets = vec![0];
        for text in &texts {
            offsets.push(offsets.last().copied().unwrap_or(0) + text.len() as u32);
        }
        let scores = pieces.iter().map(|(_, score)| *score).collect();
        Unigram::new(texts.concat(), offsets, scores, 0)
    }

    fn read(unigram: &Unigram, text: &str) -> Vec<u32> {
        unigram
            .read(&[text], usize::MAX, NonZeroUsize::new(1))
            .concat()
    }

    #[test]
    fn the_likeliest_way_is_taken() {
        let pieces = [
            ("?", f32::NAN),
            ("\u{2581}", -1.0),
            ("a", -2.0),
            ("b", -2.0),
            ("ab", -3.5),
        ];
        let unigram = make(&pieces);
        // -1 - 3.5 is more than -1 - 2 - 2.
        assert_eq!(read(&unigram, "ab"), [1, 4]);
        assert_eq!(read(&unigram, " ba\nb "), [1, 3, 2, 1, 3]);
        assert_eq!(read(&unigram, "xyazz"), [1, 0, 2, 0]);
        assert_eq!(read(&unigram, ""), []);
    }

    #[test]
    fn of_equal_ways_the_one_with_the_longest_last_piece_is_taken() {
        let pieces = [
            ("?", f32::NAN),
            ("\u{2581}", -1.0),
            ("a", -2.0),
            ("b", -2.0),
            ("ab", -4.0),
        ];
        assert_eq!(read(&make(&pieces), "ab"), [1, 4]);
    }

    #[test]
    fn a_piece_without_a_score_is_in_no_text() {
        let pieces = [
            ("?", f32::NAN),
            ("\u{2581}", -1.0),
            ("a", -2.0),
            ("<", -2.0),
            (">", -2.0),
            ("<a>", f32::NAN),
        ];
        assert_eq!(read(&make(&pieces), "<a>"), [1, 3, 2, 4]);
    }

    #[test]
    fn reading_stops_after_the_word_that_has_too_many_tokens() {
        let unigram = make(&[("?", f32::NAN), ("\u{2581}", -1.0), ("a", -2.0)]);
        let found = unigram.read(&["aa aa aa", "a"], 3, None);
        assert_eq!(found, [vec![1, 2, 2, 1, 2, 2], vec![1, 2]]);
    }

    proptest! {
        #[test]
        fn any_vocabulary_reads_any_text(
            pieces in prop::collection::vec(any::<u8>(), 0..30),
            offsets in prop::collection::vec(0u32..40, 0..8),
            scores in prop::collection::vec(any::<f32>(), 0..10),
            most in 0usize..9,
            texts in prop::collection::vec(".{0,20}", 0..4),
        ) {
            let unigram = Unigram::new(pieces, offsets, scores, 7);
            let one = unigram.read(&texts, most, NonZeroUsize::new(1));
            prop_assert_eq!(one.len(), texts.len());
            prop_assert_eq!(one, unigram.read(&texts, most, NonZeroUsize::new(3)));
        }
    }
}
