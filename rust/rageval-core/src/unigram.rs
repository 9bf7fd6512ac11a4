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
