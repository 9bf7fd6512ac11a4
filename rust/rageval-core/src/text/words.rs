//! The words of a text in the form in which they are compared.

use unicode_normalization::UnicodeNormalization;

use super::characters::{is_accent, is_apostrophe, is_joiner};
use super::function_words::is_function_word;
use super::runs::{Run, Script, runs};
use super::stemming::stem;

/// English words that attach to the word before: `it's`, `we've`.
const CLITICS: &[&str] = &["d", "ll", "m", "re", "s", "ve"];
/// French and Italian words that attach to the word after: `l'homme`, `qu'il`.
const ELISIONS: &[&str] = &["c", "d", "j", "l", "m", "n", "qu", "s", "t"];
/// Letters that can follow a number without being a word: `1990s`, `2nd`.
const NUMBER_ENDINGS: &[&str] = &["s", "st", "nd", "rd", "th"];

/// How much a word counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// An article, a pronoun, an auxiliary verb and similar.
    Function,
    /// A word with a meaning of its own: nouns, verbs, names.
    Content,
    Number,
}

/// A word in the form in which it is compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) kind: Kind,
    /// Whether it follows a hyphen, like the second word of `e-mail`.
    pub(super) linked: bool,
}

/// Calls `see` for each word of a text, in order, including numbers and repeated words.
///
/// Words are in lower case and without accents, possessives and English endings (see `stem`). Hyphenated words are
/// several words; `1,200.50` is `1200.5`, `2nd` is `2`, `5km` is `5` and `km`, `U.S.` is `us`. In scripts without
/// spaces between words, and in Korean, each pair of characters is a word.
pub(super) fn visit_words(text: &str, mut see: impl FnMut(Word<'_>)) {
    // If there are no lower-case letters, capitals carry no information.
    let shouted = !text.chars().any(char::is_lowercase);
    let mut buffer = String::new();
    let mut last: Option<Run<'_>> = None;
    for run in runs(text) {
        let linked = last.is_some_and(|last| is_hyphen(&text[last.end()..run.start]));
        fold(run.text, &mut buffer);
        match run.script {
            Script::Unspaced => visit_pairs(&buffer, &mut see),
            Script::Acronym => visit_acronym(run.text, &mut buffer, &mut see),
            Script::Spaced if buffer.starts_with(|c: char| c.is_ascii_digit()) => {
                visit_number(&mut buffer, linked, &mut see);
            }
            Script::Spaced => {
                let named = !shouted && is_acronym(run.text);
                visit_word(&mut buffer, named, linked, &mut see);
            }
        }
        last = (run.script == Script::Spaced).then_some(run);
    }
}

fn is_hyphen(gap: &str) -> bool {
    matches!(gap, "-" | "\u{2010}" | "\u{2011}")
}

/// Whether it is written in capitals: `US` is not a pronoun, and `D` is not half of `I'd`.
fn is_acronym(word: &str) -> bool {
    !matches!(word, "A" | "I") && word.chars().all(char::is_uppercase)
}

/// Folds to lower case, resolves compatibility forms, removes accents and invisible characters, and unifies
/// apostrophes.
fn fold(run: &str, folded: &mut String) {
    folded.clear();
    if run.is_ascii() {
        folded.push_str(run);
        folded.make_ascii_lowercase();
        return;
    }
    let letters = run
        .nfkd()
        .filter(|c| !is_accent(*c) && !is_joiner(*c))
        .flat_map(char::to_lowercase)
        .nfc();
    for c in letters {
        match c {
            'ß' => folded.push_str("ss"),
            'ς' => folded.push('σ'),
            c if is_apostrophe(c) => folded.push('\''),
            c => folded.push(c),
        }
    }
}

fn visit_pairs(run: &str, see: &mut impl FnMut(Word<'_>)) {
    let mut show = |text| {
        see(Word {
            text,
            kind: Kind::Content,
            linked: false,
        });
    };
    let ends: Vec<usize> = run
        .char_indices()
        .map(|(at, c)| at + c.len_utf8())
        .collect();
    match ends[..] {
        [] => {}
        [end] => show(&run[..end]),
        _ => {
            let mut start = 0;
            for pair in ends.windows(2) {
                show(&run[start..pair[1]]);
                start = pair[0];
            }
        }
    }
}

fn visit_acronym(written: &str, folded: &mut String, see: &mut impl FnMut(Word<'_>)) {
    folded.retain(|c| c != '.');
    let kind = if written.starts_with(char::is_uppercase) {
        Kind::Content
    } else {
        kind_of(folded)
    };
    see(Word {
        text: folded,
        kind,
        linked: false,
    });
}

fn visit_number(folded: &mut String, linked: bool, see: &mut impl FnMut(Word<'_>)) {
    let length = folded
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',')))
        .unwrap_or(folded.len());
    let mut ending = folded.split_off(length);
    normalize_number(folded);
    see(Word {
        text: folded,
        kind: Kind::Number,
        linked,
    });
    if !ending.is_empty() && !NUMBER_ENDINGS.contains(&ending.as_str()) {
        visit_word(&mut ending, false, false, see);
    }
}

/// `1,200.50` becomes `1200.5`, `007` becomes `7`, `3,5` becomes `3.5`; `1.2.3` stays.
pub(super) fn normalize_number(number: &mut String) {
    if has_thousands(number, ',') {
        number.retain(|c| c != ',');
    } else if number.matches('.').count() > 1 && has_thousands(number, '.') {
        number.retain(|c| c != '.');
    } else if !number.contains('.') && number.matches(',').count() == 1 {
        *number = number.replace(',', ".");
    }
    if number.matches('.').count() + number.matches(',').count() <= 1 {
        if number.contains('.') {
            number.truncate(number.trim_end_matches('0').trim_end_matches('.').len());
        }
        let zeros = number.len() - number.trim_start_matches('0').len();
        let digits = &number[zeros..];
        let kept = usize::from(digits.is_empty() || digits.starts_with('.'));
        number.drain(..zeros.saturating_sub(kept));
    }
}

/// Whether the sign separates groups of three digits, as in `1,200,000`, with or without a fraction after them.
fn has_thousands(number: &str, sign: char) -> bool {
    let whole = match number.rsplit_once('.') {
        Some((whole, fraction)) if sign == ',' && !fraction.contains(',') => whole,
        _ => number,
    };
    let mut groups = whole.split(sign);
    let first = groups
        .next()
        .is_some_and(|group| (1..=3).contains(&group.len()));
    let is_group =
        |group: &str| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit());
    first && whole.contains(sign) && groups.all(is_group)
}

fn visit_word(folded: &mut String, named: bool, linked: bool, see: &mut impl FnMut(Word<'_>)) {
    if folded.contains('\'') {
        cut_clitics(folded);
    }
    let kind = if named {
        Kind::Content
    } else {
        kind_of(folded)
    };
    stem(folded);
    if !folded.is_empty() {
        see(Word {
            text: folded,
            kind,
            linked,
        });
    }
}

fn kind_of(folded: &str) -> Kind {
    if is_function_word(folded) {
        Kind::Function
    } else {
        Kind::Content
    }
}

/// `Arthur's` becomes `arthur`, `don't` becomes `do`, `l'homme` becomes `homme`, `o'brien` becomes `obrien`.
fn cut_clitics(word: &mut String) {
    if let Some((head, tail)) = word.split_once('\'')
        && ELISIONS.contains(&head)
        && tail.chars().nth(1).is_some()
    {
        word.drain(..=head.len());
    }
    if word.ends_with("n't") {
        word.truncate(word.len() - 3);
    } else if let Some((head, tail)) = word.rsplit_once('\'')
        && CLITICS.contains(&tail)
    {
        word.truncate(head.len());
    }
    word.retain(|c| c != '\'');
}

/// The words of a text that are not function words.
#[cfg(test)]
pub(super) fn content_words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    visit_words(text, |word| {
        if word.kind != Kind::Function {
            found.push(word.text.to_owned());
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(content_words(text), expected, "{text}");
    }

    #[test]
    fn words_are_folded_and_stemmed() {
        check(
            "The Cities of Beyoncé's GRANDMOTHERS",
            &["city", "beyonc", "grandmother"],
        );
        check(
            "Straße, STRASSE, ΟΔΟΣ οδός",
            &["strass", "strass", "οδοσ", "οδοσ"],
        );
        check(
            "e\u{301}te\u{301} \u{e9}t\u{e9} so\u{ad}ft",
            &["ete", "ete", "soft"],
        );
    }

    #[test]
    fn numbers_have_one_form() {
        check(
            "1,200 1200 1,200.50 1.200.000 3,5 007 0 0.50 2nd 1990s",
            &[
                "1200", "1200", "1200.5", "1200000", "3.5", "7", "0", "0.5", "2", "1990",
            ],
        );
        check(
            "5km 5 km 1.2.3 1,2,3 00.0",
            &["5", "km", "5", "km", "1.2.3", "1,2,3", "0"],
        );
    }

    #[test]
    fn contractions_and_elisions_lose_what_leans() {
        check("don't can't it's we've", &[]);
        check(
            "l'homme d’Artagnan qu'elle O'Brien's",
            &["homm", "artagnan", "ell", "obrien"],
        );
    }

    #[test]
    fn acronyms_are_no_pronouns() {
        check("the US and us, the U.S. and e.g. IT", &["us", "us", "it"]);
        check("THE US AND US", &[]);
        check("A vitamin D I take; it 's I 'd", &["vitamin", "d", "tak"]);
    }

    #[test]
    fn hyphens_part_words() {
        check(
            "a well-known COVID-19 test",
            &["well", "known", "covid", "19", "test"],
        );
    }

    #[test]
    fn scripts_without_spaces_give_pairs() {
        check("東京都 猫", &["東京", "京都", "猫"]);
        check("서울은", &["서울", "울은"]);
        check("ｶﾞｲﾄﾞ ガイド", &["ガイ", "イド", "ガイ", "イド"]);
    }
}
