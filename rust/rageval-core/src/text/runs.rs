//! Runs of characters that make up words.

use unicode_normalization::char::is_combining_mark;

use super::characters::{is_apostrophe, is_joiner, is_unspaced};

/// A piece of a text: a word, a number, or characters of a script without spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run<'a> {
    pub(super) text: &'a str,
    /// Where it begins, in bytes.
    pub(super) start: usize,
    pub(super) script: Script,
}

impl Run<'_> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    /// Words are separated by spaces.
    Spaced,
    /// Words are not separated: Chinese, Japanese, Thai and others. Also Korean, which attaches particles to its words.
    Unspaced,
    /// `U.S.A`, without the final full stop.
    Acronym,
}

/// The runs of a text, in order. `don't`, `1,200.5` and `U.S.A` are each one run.
#[inline]
pub(super) fn runs(text: &str) -> impl Iterator<Item = Run<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let start = at + rest.find(is_word)?;
        let run = read_run(text, start);
        at = run.end();
        Some(run)
    })
}

fn read_run(text: &str, start: usize) -> Run<'_> {
    let rest = &text[start..];
    let first = rest.chars().next().unwrap_or_default();
    let (length, script) = if is_unspaced(first) {
        (unspaced_length(rest), Script::Unspaced)
    } else if let Some(length) = acronym_length(rest) {
        (length, Script::Acronym)
    } else {
        (spaced_length(rest), Script::Spaced)
    };
    Run {
        text: &rest[..length],
        start,
        script,
    }
}

fn is_word(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphanumeric()
    } else {
        c.is_alphanumeric() || is_combining_mark(c) || is_joiner(c)
    }
}

fn unspaced_length(text: &str) -> usize {
    text.find(|c| !(is_unspaced(c) || is_combining_mark(c) || is_joiner(c)))
        .unwrap_or(text.len())
}

fn spaced_length(text: &str) -> usize {
    let mut before = '\0';
    for (at, c) in text.char_indices() {
        let inside = if is_word(c) {
            !is_unspaced(c)
        } else {
            joins(before, c, text[at + c.len_utf8()..].chars().next())
        };
        if !inside {
            return at;
        }
        before = c;
    }
    text.len()
}

/// Whether a sign between two characters is part of their word: `don't`, `1,200.5`.
fn joins(before: char, c: char, after: Option<char>) -> bool {
    let Some(after) = after else { return false };
    match c {
        '.' | ',' => before.is_ascii_digit() && after.is_ascii_digit(),
        c => {
            is_apostrophe(c)
                && before.is_alphabetic()
                && after.is_alphabetic()
                && !is_unspaced(after)
        }
    }
}

/// The length of a sequence of single letters with full stops between them; the last must not begin a longer word.
fn acronym_length(text: &str) -> Option<usize> {
    let mut length = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, letter)) = chars.next() {
        let single = letter.is_alphabetic() && !is_unspaced(letter);
        let next = chars.peek().map(|(_, c)| *c);
        if !single || next.is_some_and(is_word) {
            break;
        }
        length = Some((at > 0, at + letter.len_utf8()));
        if next != Some('.') {
            break;
        }
        chars.next();
    }
    length.and_then(|(several, length)| several.then_some(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        runs(text).map(|run| run.text).collect()
    }

    #[test]
    fn words_keep_apostrophes_and_numbers_their_signs() {
        assert_eq!(
            texts("Don't pay $1,200.50, O’Brien: 'no'."),
            ["Don't", "pay", "1,200.50", "O’Brien", "no"]
        );
    }

    #[test]
    fn acronyms_are_one_run() {
        assert_eq!(
            texts("the U.S. and U.S.A. in e.g. A.Word"),
            ["the", "U.S", "and", "U.S.A", "in", "e.g", "A", "Word"]
        );
    }

    #[test]
    fn scripts_are_parted() {
        assert_eq!(texts("東京はTokyoです"), ["東京は", "Tokyo", "です"]);
        let scripts: Vec<Script> = runs("東京 U.S x").map(|run| run.script).collect();
        assert_eq!(scripts, [Script::Unspaced, Script::Acronym, Script::Spaced]);
    }

    #[test]
    fn marks_belong_to_their_letter() {
        assert_eq!(
            texts("e\u{301}te\u{301} हिन्दी"),
            ["e\u{301}te\u{301}", "हिन्दी"]
        );
    }
}
