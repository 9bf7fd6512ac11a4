//! A tokenizer of the unigram family (Kudo 2018): of all ways to write a word as pieces, it takes the likeliest.
//!
//! Tokens are those of Hugging Face's `tokenizers` with the steps NFC, `Precompiled` (rules that replace single
//! characters), `WhitespaceSplit`, `Metaspace` and `Unigram`, as XLM-RoBERTa has them. Scores are added as float64, and
//! of two equally likely ways the one whose last piece is longest counts, as there.
//!
//! Any string is accepted: nothing here panics, and the time is linear in the length of the text.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};
use unicode_segmentation::UnicodeSegmentation;

use crate::error::{Error, Result};
use crate::hash::{IndexTable, hash};
use crate::threads;

/// What stands for the space before a word.
const SPACE: char = '\u{2581}';
/// How much less likely a character without a piece is than the least likely piece.
const UNKNOWN_PENALTY: f64 = 10.0;
/// `tokenizers` applies a rule for the first character to a whole cluster of fewer bytes than this.
const LONG_CLUSTER: usize = 6;

/// The pieces, which are also the tokens, and how a text is normalised.
#[derive(Debug)]
pub struct Unigram {
    pieces: Vec<u8>,
    offsets: Vec<u32>,
    scores: Vec<f32>,
    table: IndexTable,
    longest: usize,
    unknown: u32,
    unknown_score: f64,
    special: Vec<u32>,
    rules: HashMap<char, String>,
}

/// The best way to write the beginning of a word: its score, and where its last piece starts and which one it is.
#[derive(Clone, Copy)]
struct Step {
    score: f64,
    start: usize,
    id: u32,
}

const UNREACHED: Step = Step {
    score: f64::NEG_INFINITY,
    start: 0,
    id: 0,
};

impl Unigram {
    /// Piece `i` is `pieces[offsets[i]..offsets[i + 1]]`, UTF-8, with the logarithm of its probability `scores[i]`.
    ///
    /// The piece `unknown` stands for characters without one. Pieces in `special` are found in a text as it is written.
    ///
    /// # Errors
    /// [`Error::Value`] if a piece is empty, not UTF-8 or there twice, a score is above 0 or not finite, or a number is
    /// out of range.
    pub fn new(
        pieces: Vec<u8>,
        offsets: Vec<u32>,
        scores: Vec<f32>,
        unknown: u32,
        special: Vec<u32>,
        rules: HashMap<char, String>,
    ) -> Result<Self> {
        let refuse = |problem: String| Err(Error::Value(problem));
        let count = scores.len();
        if offsets.len() != count + 1 || offsets.last().copied() != u32::try_from(pieces.len()).ok()
        {
            return refuse("the places of the pieces do not fit them".to_owned());
        }
        if [unknown]
            .iter()
            .chain(&special)
            .any(|id| *id as usize >= count)
        {
            return refuse("a special token is none of the pieces".to_owned());
        }
        let mut table = IndexTable::default();
        table.reset(count);
        let (mut longest, mut lowest) = (0, f64::INFINITY);
        for (index, score) in scores.iter().enumerate() {
            let bytes = pieces.get(offsets[index] as usize..offsets[index + 1] as usize);
            let Some(piece) = bytes
                .and_then(|bytes| str::from_utf8(bytes).ok())
                .filter(|piece| !piece.is_empty())
            else {
                return refuse(format!("piece {index} is empty or not UTF-8"));
            };
            if !score.is_finite() || *score > 0.0 {
                return refuse(format!(
                    "piece {index} has the score {score}, which is no logarithm of a probability"
                ));
            }
            let bytes_of =
                |other: usize| &pieces[offsets[other] as usize..offsets[other + 1] as usize];
            let is_it = |other: usize| bytes_of(other) == piece.as_bytes();
            let key = hash(piece.as_bytes());
            if let Some(other) =
                table.find_or_insert(key, index, is_it, |other| hash(bytes_of(other)))
            {
                return refuse(format!("pieces {other} and {index} are the same"));
            }
            longest = longest.max(piece.chars().count());
            lowest = lowest.min(f64::from(*score));
        }
        let unknown_score = lowest - UNKNOWN_PENALTY;
        Ok(Self {
            pieces,
            offsets,
            scores,
            table,
            longest,
            unknown,
            unknown_score,
            special,
            rules,
        })
    }

    /// The tokens of each text, at least `most` of a text that has so many, computed by at most `threads` threads.
    pub fn read_all<T: AsRef<str> + Sync>(
        &self,
        texts: &[T],
        most: usize,
        threads: Option<NonZeroUsize>,
    ) -> Vec<Vec<u32>> {
        threads::map(texts.len(), threads::resolve(threads), |number| {
            let mut found = Vec::new();
            self.read(texts[number].as_ref(), most, |id, _| found.push(id));
            found
        })
    }

    /// Passes the tokens of a text to `take`, in order, each with what it stands for in the normalised text.
    ///
    /// Stops after the word that has token number `most`.
    pub fn read(&self, text: &str, most: usize, mut take: impl FnMut(u32, &str)) {
        let (mut start, mut place, mut found) = (0, 0, 0);
        let (mut steps, mut path) = (Vec::new(), Vec::new());
        while found < most {
            let special = self.find_special(&text[place..]);
            if special.is_none() && place < text.len() {
                place += text[place..].chars().next().map_or(1, char::len_utf8);
                continue;
            }
            for word in self.normalize(&text[start..place]).split_whitespace() {
                let spaced = if word.starts_with(SPACE) {
                    word.to_owned()
                } else {
                    format!("{SPACE}{word}")
                };
                let mut rest = spaced.as_str();
                while !rest.is_empty() && found < most {
                    let first = rest.chars().next().map_or(0, char::len_utf8);
                    let end = rest[first..]
                        .find(SPACE)
                        .map_or(rest.len(), |next| first + next);
                    self.write(&rest[..end], &mut steps, &mut path);
                    path.iter()
                        .rev()
                        .for_each(|(id, from, to)| take(*id, &rest[*from..*to]));
                    found += path.len();
                    rest = &rest[end..];
                }
            }
            let Some(id) = special else { return };
            start = place + self.piece(id).len();
            take(id, &text[place..start]);
            (place, found) = (start, found + 1);
        }
    }

    fn piece(&self, id: u32) -> &[u8] {
        &self.pieces[self.offsets[id as usize] as usize..self.offsets[id as usize + 1] as usize]
    }

    /// The longest special token that the text begins with.
    fn find_special(&self, text: &str) -> Option<u32> {
        let begins = self
            .special
            .iter()
            .filter(|id| text.as_bytes().starts_with(self.piece(**id)));
        begins.max_by_key(|id| self.piece(**id).len()).copied()
    }

    fn normalize(&self, text: &str) -> String {
        let composed: String = match is_nfc_quick(text.chars()) {
            IsNormalized::Yes => text.to_owned(),
            _ => text.nfc().collect(),
        };
        let mut found = String::with_capacity(composed.len());
        for cluster in composed.graphemes(true) {
            let whole = cluster
                .chars()
                .next()
                .and_then(|first| self.rules.get(&first));
            match whole.filter(|_| cluster.len() < LONG_CLUSTER) {
                Some(replacement) => found.push_str(replacement),
                None => {
                    for character in cluster.chars() {
                        match self.rules.get(&character) {
                            Some(replacement) => found.push_str(replacement),
                            None => found.push(character),
                        }
                    }
                }
            }
        }
        found
    }

    /// Finds the likeliest way to write a word, last token first: the pieces, and where they start and end in it.
    ///
    /// Neighbouring characters without a piece are one token.
    fn write(&self, word: &str, steps: &mut Vec<Step>, path: &mut Vec<(u32, usize, usize)>) {
        steps.clear();
        steps.resize(word.len() + 1, UNREACHED);
        steps[0].score = 0.0;
        for (start, character) in word.char_indices() {
            let here = steps[start].score;
            let single = start + character.len_utf8();
            let mut reach = |end: usize, id: u32, score: f64| {
                if steps[end].score < here + score {
                    steps[end] = Step {
                        score: here + score,
                        start,
                        id,
                    };
                }
            };
            for (place, last) in word[start..].char_indices().take(self.longest) {
                let end = start + place + last.len_utf8();
                let bytes = &word.as_bytes()[start..end];
                match self
                    .table
                    .find(hash(bytes), |index| self.piece(index as u32) == bytes)
                {
                    Some(index) => reach(end, index as u32, f64::from(self.scores[index])),
                    None if end == single => reach(end, self.unknown, self.unknown_score),
                    None => {}
                }
            }
        }
        path.clear();
        let mut end = word.len();
        while end > 0 {
            let Step { start, id, .. } = steps[end];
            match path.last_mut() {
                Some((last, from, _)) if *last == self.unknown && id == self.unknown => {
                    *from = start
                }
                _ => path.push((id, start, end)),
            }
            end = start;
        }
    }
}
