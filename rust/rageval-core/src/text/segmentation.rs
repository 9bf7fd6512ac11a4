//! Sentences of a text, by rules: no model, and no word lists except abbreviations and sentence starters.

use std::ops::Range;

use super::abbreviations::{BEFORE_NUMBERS, BOUND, EITHER, LONGEST_WORD, MONTHS, STARTERS};
use super::characters::{
    is_closer, is_hiragana, is_line_break, is_mark, is_opener, is_space, is_terminator,
    is_wide_terminator,
};
use super::wrapping::find_wrapped;

/// The sentences of a text: `(start, end)` in code points, in order, without surrounding white space.
///
/// Together they cover every character that is not white space. A piece without a letter or digit (a lone quotation
/// mark, a line of dashes) belongs to the sentence before it. A text of only white space has no sentences.
///
/// A sentence ends
/// - at a blank line, before a line that begins with a bullet or a number, and at the end of a line unless the next
///   line continues in lower case or the lines look wrapped;
/// - at a full stop of a script without spaces (`。`), and at marks of some other scripts (`।`, `؟`);
/// - at `.`, `!`, `?` and `…` before a space, including the quotation marks, brackets and citations (`[1]`) after them,
///   unless it is an abbreviation, an initial or a list number, or a lower-case letter follows;
/// - at a full stop whose space is missing: `the end.Then`.
pub fn split_sentences(text: &str) -> Vec<(usize, usize)> {
    let chars: Vec<char> = text.chars().collect();
    let scanner = Scanner {
        wrapped: find_wrapped(&chars),
        cased: chars.iter().any(|c| c.is_uppercase()),
        chars: &chars,
    };
    scanner.sentences()
}

/// The parts of a text at these places, which count code points.
pub(super) fn cut<'a>(text: &'a str, places: &[(usize, usize)]) -> Vec<&'a str> {
    if text.is_ascii() {
        return places
            .iter()
            .map(|&(start, end)| &text[start..end])
            .collect();
    }
    let mut offsets: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    offsets.push(text.len());
    let part = |&(start, end): &(usize, usize)| &text[offsets[start]..offsets[end]];
    places.iter().map(part).collect()
}

struct Scanner<'a> {
    chars: &'a [char],
    /// Whether the text has capitals: only then does a lower-case letter show that a sentence continues.
    cased: bool,
    /// Paragraphs whose lines are wrapped.
    wrapped: Vec<Range<usize>>,
}

impl Scanner<'_> {
    fn sentences(&self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let (mut start, mut at) = (0, 0);
        while let Some(offset) = self.chars[at..].iter().position(|c| is_mark(*c)) {
            let (next, ends) = self.step(start, at + offset);
            if ends {
                self.add(&mut found, start, next);
                start = next;
            }
            at = next;
        }
        self.add(&mut found, start, self.chars.len());
        found
    }

    /// Where to continue after the mark at `at`, and whether the sentence that began at `start` ends there.
    fn step(&self, start: usize, at: usize) -> (usize, bool) {
        if is_line_break(self.chars[at]) {
            let next = self.skip(at, is_space);
            (next, self.line_ends_sentence(start, at, next))
        } else {
            let behind = self.skip(at, is_terminator);
            self.end_of_sentence(start, at, behind)
                .map_or((behind, false), |end| (end, true))
        }
    }

    /// Adds the trimmed piece. A piece without a letter or digit is added to its neighbour.
    fn add(&self, found: &mut Vec<(usize, usize)>, start: usize, end: usize) {
        let piece = &self.chars[start..end];
        let Some(first) = piece.iter().position(|c| !is_space(*c)) else {
            return;
        };
        let last = piece.iter().rposition(|c| !is_space(*c)).unwrap_or(first);
        let (first, last) = (start + first, start + last + 1);
        match found.last_mut() {
            Some(previous) if !self.says(first, last) => previous.1 = last,
            Some(previous) if !self.says(previous.0, previous.1) => previous.1 = last,
            _ => found.push((first, last)),
        }
    }

    fn says(&self, start: usize, end: usize) -> bool {
        self.chars[start..end].iter().any(|c| c.is_alphanumeric())
    }

    // --- Lines ---

    /// Whether the line end at `at` ends the sentence. The next word is at `next`.
    fn line_ends_sentence(&self, start: usize, at: usize, next: usize) -> bool {
        let Some(&first) = self.chars.get(next) else {
            return false;
        };
        if self.is_blank_between(at, next) || self.begins_item(next) {
            return true;
        }
        let last = self.chars[start..at].iter().rfind(|c| !is_space(**c));
        let is_open = last.is_none_or(|c| matches!(c, ',' | '(' | '[' | '-' | '–' | '—'));
        let goes_on = self.cased && first.is_lowercase();
        !(is_open || goes_on || self.is_wrapped(at))
    }

    fn is_wrapped(&self, at: usize) -> bool {
        let paragraph = self.wrapped.partition_point(|range| range.end <= at);
        self.wrapped
            .get(paragraph)
            .is_some_and(|range| range.start <= at)
    }

    /// Whether there is more than one line end between two places; `\r\n` counts as one.
    fn is_blank_between(&self, from: usize, to: usize) -> bool {
        let gap = &self.chars[from..to];
        let breaks = gap.iter().filter(|c| is_line_break(**c)).count();
        let pairs = gap.windows(2).filter(|pair| pair == &['\r', '\n']).count();
        breaks - pairs > 1
    }

    /// Whether there is a bullet (`- `, `• `) or a number (`1. `, `2) `, `(a) `) at `at`.
    fn begins_item(&self, at: usize) -> bool {
        let is_followed_by_space = |at: usize| self.chars.get(at).is_some_and(|c| is_space(*c));
        match self.chars[at] {
            '-' | '*' | '+' | '–' | '—' => is_followed_by_space(at + 1),
            '•' | '◦' | '‣' | '▪' | '●' | '○' | '·' | '■' | '#' | '|' => true,
            c => {
                let inner = at + usize::from(c == '(');
                let behind = self.skip_at_most(inner, 3, |c| c.is_ascii_alphanumeric());
                let closed = self.chars.get(behind);
                let is_number = behind > inner
                    && (behind == inner + 1
                        || self.chars[inner..behind].iter().all(char::is_ascii_digit));
                is_number
                    && (closed == Some(&')') || (closed == Some(&'.') && c != '('))
                    && is_followed_by_space(behind + 1)
            }
        }
    }

    // --- Full stops ---

    /// The end of the sentence whose marks are `run..behind`, or `None` if it continues.
    fn end_of_sentence(&self, start: usize, run: usize, behind: usize) -> Option<usize> {
        let closed = self.skip(behind, is_closer);
        let end = self.skip_citations(closed, false);
        let Some(&next) = self.chars.get(end) else {
            return Some(end);
        };
        if self.chars[run..behind]
            .iter()
            .any(|c| is_wide_terminator(*c))
        {
            return self.ends_wide(run, behind, closed, next).then_some(end);
        }
        if !is_space(next) {
            return self.lacks_space(run, end).then_some(end);
        }
        let end = self.skip_citations(end, true);
        let first = self.skip(end, is_space);
        let quoted = closed > behind;
        self.ends_narrow(start, run, behind, quoted, first)
            .then_some(end)
    }

    fn ends_wide(&self, run: usize, behind: usize, closed: usize, next: char) -> bool {
        let digit = |at: Option<usize>| {
            at.and_then(|at| self.chars.get(at))
                .is_some_and(|c| c.is_numeric())
        };
        let decimal = self.chars[run] == '．' && digit(run.checked_sub(1)) && digit(Some(behind));
        // 「はい。」と言った: what is quoted is part of a longer sentence.
        let quoted = closed > behind && (is_hiragana(next) || matches!(next, '、' | '，'));
        !decimal && !quoted
    }

    /// Whether a space is missing here: a lower-case word before the mark, a capitalised one after it.
    fn lacks_space(&self, run: usize, end: usize) -> bool {
        let is_lower = |at: Option<usize>| {
            at.and_then(|at| self.chars.get(at))
                .is_some_and(|c| c.is_lowercase())
        };
        let capitalised = self.chars[end].is_uppercase()
            && (is_lower(Some(end + 1)) || self.word_is(end, STARTERS));
        let lower = is_lower(run.checked_sub(1)) && is_lower(run.checked_sub(2))
            || self.ends_in_closer(run);
        capitalised && lower && !self.is_address(run, end)
    }

    fn ends_in_closer(&self, at: usize) -> bool {
        at > 0 && matches!(self.chars[at - 1], ')' | ']' | '"' | '”' | '%' | '0'..='9')
    }

    /// Whether the token around a mark looks like a URL, an e-mail address or a path.
    fn is_address(&self, run: usize, end: usize) -> bool {
        let before = self.chars[..run]
            .iter()
            .rev()
            .take_while(|c| !is_space(**c))
            .take(64);
        let after = self.chars[end..]
            .iter()
            .take_while(|c| !is_space(**c))
            .take(64);
        before
            .chain(after)
            .any(|c| matches!(c, '/' | '@' | '\\' | '_' | '='))
    }

    /// Whether marks before a space end a sentence. The next word is at `first`.
    fn ends_narrow(
        &self,
        start: usize,
        run: usize,
        behind: usize,
        quoted: bool,
        first: usize,
    ) -> bool {
        let Some(&next) = self.chars.get(first) else {
            return true;
        };
        if is_terminator(next) || matches!(next, ',' | ';' | ':' | ')' | ']' | '}') {
            return false;
        }
        let word = self.skip(first, is_opener);
        let goes_on = self.cased && self.is_small(word);
        match self.chars[run..behind] {
            ['.'] => self.ends_at_period(start, run, quoted, word, goes_on),
            ['?', ..] => !(goes_on && quoted),
            ['.' | '…', ..] => !self.chars.get(word).is_some_and(|c| c.is_lowercase()),
            _ => !goes_on,
        }
    }

    /// Whether a lower-case word begins at `at`; `iPhone` and `mRNA` do not count, because they can begin sentences.
    fn is_small(&self, at: usize) -> bool {
        let first = self.chars.get(at).is_some_and(|c| c.is_lowercase());
        first && !self.chars.get(at + 1).is_some_and(|c| c.is_uppercase())
    }

    fn ends_at_period(
        &self,
        start: usize,
        run: usize,
        quoted: bool,
        word: usize,
        goes_on: bool,
    ) -> bool {
        let (from, to) = self.token_before(start, run);
        if quoted || from == to {
            return !goes_on;
        }
        let letters = to - from;
        if self.is_item_number(start, from, to) || self.is_german_date(from, to, word) {
            return false;
        }
        let abbreviated = self.lowered(from, to);
        let is_in = |list: &[&str]| {
            abbreviated
                .as_deref()
                .is_some_and(|token| list.contains(&token))
        };
        let digit_follows = self.chars.get(word).is_some_and(|c| c.is_ascii_digit());
        if is_in(BOUND) || (is_in(BEFORE_NUMBERS) && digit_follows) {
            return false;
        }
        if is_in(EITHER) || self.is_acronym(from, to) {
            return !goes_on && self.word_is(word, STARTERS);
        }
        // "approx. five", but "the weather. it rained": only short words are abbreviations.
        !(goes_on && letters <= 5)
    }

    /// The token before a mark, without opening signs. Texts with a space before the full stop have one too.
    fn token_before(&self, start: usize, run: usize) -> (usize, usize) {
        let before = &self.chars[start..run];
        let to = before
            .iter()
            .rposition(|c| !is_space(*c))
            .map_or(0, |last| last + 1);
        let is_inside = |c: &char| !is_space(*c) && (!is_opener(*c) || matches!(c, '-' | '–'));
        let length = before[..to]
            .iter()
            .rev()
            .take_while(|c| is_inside(c))
            .count();
        (start + to - length, start + to)
    }

    /// `1.` at the beginning of a sentence.
    fn is_item_number(&self, start: usize, from: usize, to: usize) -> bool {
        to - from <= 3
            && self.chars[from..to].iter().all(char::is_ascii_digit)
            && !self.says(start, from)
    }

    /// `3. Oktober`.
    fn is_german_date(&self, from: usize, to: usize, word: usize) -> bool {
        to - from <= 2
            && self.chars[from..to].iter().all(char::is_ascii_digit)
            && self.word_is(word, MONTHS)
    }

    /// `J`, `U.S`, `a.m`: single letters, separated by full stops.
    fn is_acronym(&self, from: usize, to: usize) -> bool {
        let mut parts = self.chars[from..to].split(|c| *c == '.');
        parts.all(|part| part.len() == 1 && part[0].is_alphabetic())
    }

    fn word_is(&self, at: usize, list: &[&str]) -> bool {
        let to = self.skip_at_most(at, LONGEST_WORD + 1, char::is_alphabetic);
        self.lowered(at, to)
            .is_some_and(|word| list.contains(&word.as_str()))
    }

    fn lowered(&self, from: usize, to: usize) -> Option<String> {
        let short = from < to && to - from <= LONGEST_WORD;
        short.then(|| {
            self.chars[from..to]
                .iter()
                .flat_map(|c| c.to_lowercase())
                .collect()
        })
    }

    /// The position after citations such as `[1]` and `[2, 3]`. If `spaced`, a space on the same line comes before
    /// them.
    fn skip_citations(&self, mut at: usize, spaced: bool) -> usize {
        loop {
            let from = if spaced {
                self.skip(at, |c| c == ' ')
            } else {
                at
            };
            let inner = from + 1;
            let to = self.skip(inner, |c| {
                c.is_ascii_digit() || matches!(c, ',' | ' ' | '-' | '–')
            });
            let is_citation = self.chars.get(from) == Some(&'[')
                && to > inner
                && self.chars.get(to) == Some(&']');
            let is_apart = !spaced
                || self
                    .chars
                    .get(to + 1)
                    .is_none_or(|c| is_space(*c) || *c == '[');
            if !is_citation || !is_apart {
                return at;
            }
            at = to + 1;
        }
    }

    fn skip(&self, from: usize, is: impl Fn(char) -> bool) -> usize {
        self.skip_at_most(from, usize::MAX, is)
    }

    fn skip_at_most(&self, from: usize, most: usize, is: impl Fn(char) -> bool) -> usize {
        let rest = self.chars.get(from..).unwrap_or_default();
        from + rest.iter().take(most).take_while(|c| is(**c)).count()
    }
}

#[cfg(test)]
mod tests;
