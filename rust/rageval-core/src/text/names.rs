//! Named things, recognised by their form: numbers, dates, capitalised words.

use std::collections::HashSet;

use super::characters::is_apostrophe;
use super::function_words::is_function_word;
use super::runs::{Run, Script, runs};
use super::segmentation::{cut, split_sentences};
use super::words::normalize_number;

const MONTHS: &[&str] = &[
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Lower-case words within names: `University of California`, `Ludwig van Beethoven`.
const CONNECTORS: &[&str] = &[
    "al", "bin", "da", "de", "del", "den", "der", "di", "do", "dos", "du", "ibn", "la", "le", "of",
    "the", "van", "von",
];
const MOST_CONNECTORS: usize = 2;

/// Words that multiply a number: `3.5 million`.
const MAGNITUDES: &[&str] = &["thousand", "million", "billion", "trillion"];

/// Words, besides function words, that begin sentences and are not names; sorted.
const OPENINGS: &[&str] = &[
    "according",
    "additionally",
    "answer",
    "based",
    "consequently",
    "currently",
    "despite",
    "during",
    "finally",
    "first",
    "furthermore",
    "generally",
    "given",
    "hence",
    "however",
    "initially",
    "later",
    "meanwhile",
    "moreover",
    "nevertheless",
    "note",
    "overall",
    "please",
    "previously",
    "recently",
    "second",
    "similarly",
    "specifically",
    "subsequently",
    "therefore",
    "third",
    "thus",
    "today",
    "typically",
    "unfortunately",
    "unlike",
    "using",
    "usually",
    "yesterday",
];

/// The numbers, dates and capitalised names of a text, in order, each once. No model is needed.
///
/// Numbers have one form (`1,200.50` is `1200.5`) and keep their currency or percent sign and words like `million`.
/// Dates become `12 May 1999`, `May 1999` or `12 May`, however they were written. A name is a sequence of capitalised
/// words, with `of`, `van` and similar words between them, without leading articles and without possessives. A
/// capitalised word that begins a sentence counts as a name unless it is a function word or a common opening, or occurs
/// in lower case elsewhere in the text. In texts without lower-case letters, and in scripts without capitals, only
/// numbers are found.
pub fn names(text: &str) -> Vec<String> {
    let small = small_words(text);
    let mut found = Found::default();
    for sentence in sentences(text) {
        let reader = Sentence {
            text: sentence,
            runs: runs(sentence).collect(),
            small: &small,
        };
        reader.read(&mut found);
    }
    found.names
}

#[derive(Default)]
struct Found {
    names: Vec<String>,
    known: HashSet<String>,
}

impl Found {
    fn add(&mut self, name: String) {
        if self.known.insert(name.clone()) {
            self.names.push(name);
        }
    }
}

fn sentences(text: &str) -> Vec<&str> {
    cut(text, &split_sentences(text))
}

/// The words of a text that occur in lower case somewhere.
fn small_words(text: &str) -> HashSet<&str> {
    runs(text)
        .map(|run| run.text)
        .filter(|word| word.starts_with(char::is_lowercase))
        .collect()
}

struct Sentence<'a> {
    text: &'a str,
    runs: Vec<Run<'a>>,
    small: &'a HashSet<&'a str>,
}

impl Sentence<'_> {
    fn read(&self, found: &mut Found) {
        let mut at = 0;
        while at < self.runs.len() {
            let (name, behind) = self
                .date(at)
                .or_else(|| self.number(at))
                .or_else(|| self.name(at))
                .unwrap_or((String::new(), at + 1));
            if !name.is_empty() {
                found.add(name);
            }
            at = behind;
        }
    }

    fn word(&self, at: usize) -> &str {
        self.runs.get(at).map_or("", |run| run.text)
    }

    /// The text between a run and the one before it.
    fn gap(&self, at: usize) -> &str {
        let from = at
            .checked_sub(1)
            .and_then(|last| self.runs.get(last))
            .map_or(0, Run::end);
        let to = self.runs.get(at).map_or(self.text.len(), |run| run.start);
        &self.text[from..to]
    }

    fn is_beside(&self, at: usize) -> bool {
        at < self.runs.len() && is_blank(self.gap(at))
    }

    // --- Dates and numbers ---

    fn date(&self, at: usize) -> Option<(String, usize)> {
        self.iso_date(at)
            .or_else(|| self.day_first(at))
            .or_else(|| self.month_first(at))
    }

    /// `1999-05-12`.
    fn iso_date(&self, at: usize) -> Option<(String, usize)> {
        let linked = self.runs.len() > at + 2 && self.gap(at + 1) == "-" && self.gap(at + 2) == "-";
        let year = year(self.word(at)).filter(|_| linked)?;
        let month = self.word(at + 1).parse::<usize>().ok()?.checked_sub(1)?;
        let day = day(self.word(at + 2))?;
        Some((format!("{day} {} {year}", MONTHS.get(month)?), at + 3))
    }

    /// `12 May 1999`, `12th of May`.
    fn day_first(&self, at: usize) -> Option<(String, usize)> {
        let day = day(self.word(at))?;
        let of = usize::from(self.is_beside(at + 1) && self.word(at + 1) == "of");
        let place = at + 1 + of;
        let month = self.month(place).filter(|_| self.is_beside(place))?;
        Some(self.with_year(&format!("{day} {month}"), place + 1))
    }

    /// `May 12, 1999`, `May 1999`.
    fn month_first(&self, at: usize) -> Option<(String, usize)> {
        let month = self.month(at)?;
        let date = if !self.is_beside(at + 1) {
            return None;
        } else if let Some(day) = day(self.word(at + 1)) {
            self.with_year(&format!("{day} {month}"), at + 2)
        } else {
            (format!("{month} {}", year(self.word(at + 1))?), at + 2)
        };
        Some(date)
    }

    fn with_year(&self, date: &str, at: usize) -> (String, usize) {
        let gap = self.gap(at);
        let near = is_blank(gap) || gap.strip_prefix(',').is_some_and(is_blank);
        match year(self.word(at)).filter(|_| near) {
            Some(year) => (format!("{date} {year}"), at + 1),
            None => (date.to_owned(), at),
        }
    }

    /// The month's full name. Abbreviations of three letters and `Sept` are known.
    fn month(&self, at: usize) -> Option<&'static str> {
        let word = self.word(at);
        let is_it = |month: &&&str| {
            word == **month
                || (word.len() == 3 && month.starts_with(word))
                || (word == "Sept" && **month == "September")
        };
        MONTHS.iter().find(is_it).copied()
    }

    fn number(&self, at: usize) -> Option<(String, usize)> {
        let word = self.word(at);
        if !word.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let length = word
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',')))
            .unwrap_or(word.len());
        let mut number = word[..length].to_owned();
        normalize_number(&mut number);
        if let Some(sign) = self
            .gap(at)
            .chars()
            .next_back()
            .filter(|c| matches!(c, '$' | '€' | '£' | '¥'))
        {
            number.insert(0, sign);
        }
        let magnitude = self.word(at + 1).to_lowercase();
        if self.is_beside(at + 1) && MAGNITUDES.contains(&magnitude.as_str()) {
            return Some((format!("{number} {magnitude}"), at + 2));
        }
        if self.gap(at + 1).starts_with('%') || (self.is_beside(at + 1) && magnitude == "percent") {
            number.push('%');
        }
        Some((number, at + 1))
    }

    // --- Names ---

    fn name(&self, at: usize) -> Option<(String, usize)> {
        if !self.is_capitalised(at) {
            return None;
        }
        if is_article(self.word(at)) {
            return Some((String::new(), at + 1));
        }
        let behind = self.end_of_name(at);
        let last = (at..behind)
            .rfind(|place| !is_article(self.word(*place)))
            .map_or(at, |last| last + 1);
        let names_something = last > at + 1 || (last == at + 1 && !self.is_no_name(at));
        let name = if names_something {
            self.written(at, last)
        } else {
            String::new()
        };
        Some((name, behind))
    }

    fn is_capitalised(&self, at: usize) -> bool {
        let Some(run) = self
            .runs
            .get(at)
            .filter(|run| run.script != Script::Unspaced)
        else {
            return false;
        };
        // iPhone, eBay
        let inner = run.text.starts_with(char::is_lowercase)
            && run.text.chars().nth(1).is_some_and(char::is_uppercase);
        (run.text.starts_with(char::is_uppercase) || inner) && !self.small.is_empty()
    }

    fn end_of_name(&self, at: usize) -> usize {
        let mut behind = at + 1;
        loop {
            let mut next = behind;
            while next - behind < MOST_CONNECTORS
                && self.links(next)
                && CONNECTORS.contains(&self.word(next))
            {
                next += 1;
            }
            let numbered = next == behind
                && self.gap(next) == "-"
                && self.word(next).starts_with(|c: char| c.is_ascii_digit());
            let named = self.links(next) && self.is_capitalised(next) && self.date(next).is_none();
            if !named && !numbered {
                return behind;
            }
            behind = next + 1;
        }
    }

    /// Whether a run can continue the name that the run before it is part of.
    fn links(&self, at: usize) -> bool {
        let before = self.word(at.saturating_sub(1));
        if at >= self.runs.len() || before.contains(is_apostrophe) && possessive(before) != before {
            return false;
        }
        let gap = self.gap(at);
        is_blank(gap)
            || matches!(gap, "-" | "‐" | "‑" | " & " | "&")
            || gap.strip_prefix('.').is_some_and(is_blank)
    }

    /// Whether a capitalised word is on its own and is capitalised for another reason.
    fn is_no_name(&self, at: usize) -> bool {
        let word = possessive(self.word(at));
        let lowered = word.to_lowercase();
        let alone = word.chars().nth(1).is_none();
        let begins = at == 0
            && (OPENINGS.binary_search(&lowered.as_str()).is_ok()
                || self.small.contains(lowered.as_str()));
        alone || begins
    }

    /// The words from one run to another as written, with single spaces, without a possessive or the full stops of
    /// acronyms.
    fn written(&self, first: usize, last: usize) -> String {
        let mut name = String::new();
        for at in first..last {
            let run = self.runs[at];
            if at > first {
                let gap = self.gap(at);
                let behind_acronym = self.runs[at - 1].script == Script::Acronym;
                let stop = usize::from(behind_acronym && gap.starts_with('.'));
                name.push_str(&gap[stop..]);
            }
            match run.script {
                Script::Acronym => name.extend(run.text.chars().filter(|c| *c != '.')),
                _ => name.push_str(possessive(run.text)),
            }
        }
        name.split_whitespace().collect::<Vec<&str>>().join(" ")
    }
}

fn is_blank(gap: &str) -> bool {
    !gap.is_empty() && gap.chars().all(|c| c == ' ' || c == '\u{a0}' || c == '\n')
}

/// Whether the word is a function word: no name begins or ends with one, unless it is written in capitals, like `US`.
fn is_article(word: &str) -> bool {
    is_function_word(&word.to_lowercase()) && !is_acronym(word)
}

fn is_acronym(word: &str) -> bool {
    !matches!(word, "A" | "I") && !word.contains(char::is_lowercase)
}

/// The word without a final `'s`.
fn possessive(word: &str) -> &str {
    match word.strip_suffix('s') {
        Some(head) if head.ends_with(is_apostrophe) => head.trim_end_matches(is_apostrophe),
        _ => word,
    }
}

fn year(word: &str) -> Option<&str> {
    let is_year = word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    is_year.then_some(word)
}

/// The day of a month, written as `12` or `12th`.
fn day(word: &str) -> Option<u8> {
    let digits = ["st", "nd", "rd", "th"]
        .iter()
        .find_map(|ending| word.strip_suffix(ending))
        .unwrap_or(word);
    digits
        .parse()
        .ok()
        .filter(|day| (1..=31).contains(day) && digits.len() <= 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(names(text), expected, "{text}");
    }

    #[test]
    fn openings_are_sorted_so_that_they_are_found() {
        assert!(OPENINGS.is_sorted());
    }

    #[test]
    fn capitalised_words_are_names() {
        check("Paris is the capital of France.", &["Paris", "France"]);
        check(
            "The Oberoi Group's head office is in New Delhi.",
            &["Oberoi Group", "New Delhi"],
        );
        check(
            "She met Ludwig van Beethoven at the University of California.",
            &["Ludwig van Beethoven", "University of California"],
        );
        check(
            "J. K. Rowling and Jean-Luc use an iPhone in the U.S. with COVID-19.",
            &["J. K. Rowling", "Jean-Luc", "iPhone", "US", "COVID-19"],
        );
        check(
            "He works for AT&T and Johnson & Johnson.",
            &["AT&T", "Johnson & Johnson"],
        );
    }

    #[test]
    fn acronyms_lose_their_full_stops() {
        check(
            "the U.S. Army, the U.S. and US 60",
            &["US Army", "US", "60"],
        );
    }

    #[test]
    fn beginnings_of_sentences_are_not_names() {
        check("However, it rained. Books are good; he likes books.", &[]);
        check(
            "In London. The end. Rain in Paris",
            &["London", "Rain", "Paris"],
        );
    }

    #[test]
    fn dates_have_one_form() {
        check(
            "12 May 1999, May 12, 1999, the 12th of May 1999, 1999-05-12",
            &["12 May 1999"],
        );
        check(
            "In May 1999 and on Sept 3 it rained.",
            &["May 1999", "3 September"],
        );
    }

    #[test]
    fn numbers_keep_their_units() {
        check(
            "it cost $3.50 million, 15% of 1,200 or 1200 people in 1999",
            &["$3.5 million", "15%", "1200", "1999"],
        );
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        check("", &[]);
        check("THE CAPITAL OF FRANCE", &[]);
        check("これは文です。", &[]);
    }

    proptest! {
        #[test]
        fn names_are_given_once(text in prop_oneof![".{0,60}", "[aAbB'&. \\-159,%$]{0,60}", "((The|May|of|Ab|12|1999|&)[ .,'-]?){0,20}"]) {
            let found = names(&text);
            let distinct: HashSet<&String> = found.iter().collect();
            prop_assert_eq!(distinct.len(), found.len());
            prop_assert!(found.iter().all(|name| !name.trim().is_empty()));
        }
    }
}
