//! Splits texts into pieces: words, or what stands between white space.
//!
//! A word is a run of two or more letters, digits or underscores, in lower case. Which characters count and how they
//! are lowered is Python's decision, because its version of Unicode need not be that of Rust.

const IS_WORD: u32 = 1 << 31;
const CHARACTERS: usize = 0x11_0000;

/// The characters that words are made of, and their lower-case forms.
///
/// Only characters whose lower-case form is a single character and does not depend on its neighbours can be lowered; a
/// text with others (`Σ`, `İ`) must be lowered before.
#[derive(Clone, Debug, Default)]
pub struct Alphabet {
    /// For each character its lower-case form, and `IS_WORD` if that belongs to words. Empty if only ASCII is known.
    entries: Vec<u32>,
}

impl Alphabet {
    /// An alphabet from ranges `[start, end)` of characters that belong to words, and pairs of characters and their
    /// lower-case forms. What is not a character is ignored. ASCII is always the same.
    #[must_use]
    pub fn new(words: &[(u32, u32)], lowered: &[(u32, u32)]) -> Self {
        let mut is_word = vec![false; CHARACTERS];
        for &(start, end) in words {
            let range = (start as usize).min(CHARACTERS)..(end as usize).min(CHARACTERS);
            if let Some(some) = is_word.get_mut(range) {
                some.fill(true);
            }
        }
        let mut entries: Vec<u32> = (0..CHARACTERS as u32).collect();
        for &(from, to) in lowered {
            if let (Some(entry), true) =
                (entries.get_mut(from as usize), (to as usize) < CHARACTERS)
            {
                *entry = to;
            }
        }
        for entry in &mut entries {
            *entry |= if is_word[*entry as usize] { IS_WORD } else { 0 };
        }
        Self { entries }
    }

    /// The lower-case form of a character that is not ASCII, if it belongs to words.
    #[inline]
    fn lower(&self, character: char) -> Option<char> {
        let entry = *self.entries.get(character as usize)?;
        (entry & IS_WORD != 0)
            .then(|| char::from_u32(entry & !IS_WORD))
            .flatten()
    }
}

/// ASCII's letters, digits and underscore in lower case; 0 for all other bytes.
static ASCII: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        let one = byte as u8;
        if one.is_ascii_alphanumeric() || one == b'_' {
            table[byte] = one.to_ascii_lowercase();
        }
        byte += 1;
    }
    table
};

/// How texts are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Splitter {
    /// Runs of two or more letters, digits or underscores, in lower case.
    Words,
    /// What stands between ASCII white space, as it is; words where that is ASCII.
    Pieces,
}

impl Splitter {
    /// Calls `each` for each piece of a text, in order. `scratch` is a buffer.
    pub fn split(
        self,
        text: &str,
        alphabet: &Alphabet,
        scratch: &mut Vec<u8>,
        mut each: impl FnMut(&[u8]),
    ) {
        match self {
            Self::Words => split_words(text, alphabet, scratch, &mut each),
            Self::Pieces if text.is_ascii() => split_words(text, alphabet, scratch, &mut each),
            Self::Pieces => {
                for piece in text.split_ascii_whitespace() {
                    if piece.is_ascii() {
                        split_words(piece, alphabet, scratch, &mut each);
                    } else {
                        each(piece.as_bytes());
                    }
                }
            }
        }
    }
}

fn split_words(text: &str, alphabet: &Alphabet, word: &mut Vec<u8>, each: &mut impl FnMut(&[u8])) {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut characters = 0;
    word.clear();
    while let Some(&byte) = bytes.get(at) {
        let lowered = ASCII[byte as usize];
        if lowered != 0 {
            word.push(lowered);
            characters += 1;
            at += 1;
            continue;
        }
        if byte >= 128
            && let Some(character) = text.get(at..).and_then(|rest| rest.chars().next())
        {
            at += character.len_utf8();
            if let Some(lowered) = alphabet.lower(character) {
                word.extend_from_slice(lowered.encode_utf8(&mut [0; 4]).as_bytes());
                characters += 1;
                continue;
            }
        } else {
            at += 1;
        }
        if characters > 1 {
            each(word);
        }
        word.clear();
        characters = 0;
    }
    if characters > 1 {
        each(word);
    }
}
