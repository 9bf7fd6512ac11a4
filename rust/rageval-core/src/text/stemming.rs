//! English endings, lightly: plurals, `-ed`, `-ing` and a silent `e`.

/// Removes the endings of a lower-case word. Words with letters other than `a` to `z` do not change.
///
/// The plural rule is Harman's S stemmer (1991). `-ied`, `-ed` and `-ing` are removed if a vowel remains before them,
/// and a doubled consonant becomes single (`stopped`, not `called`). A final `e` is removed last, so that `making`,
/// `makes` and `make` are one word.
#[inline]
pub(super) fn stem(word: &mut String) {
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return;
    }
    cut_plural(word);
    cut_participle(word);
    if word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
}

fn cut_plural(word: &mut String) {
    let length = word.len();
    if length > 4 && word.ends_with("ies") {
        replace_ending(word, 3, "y");
    } else if length > 4
        && ["sses", "shes", "ches", "xes", "zes"]
            .iter()
            .any(|end| word.ends_with(end))
    {
        word.truncate(length - 2);
    } else if length > 3
        && word.ends_with('s')
        && !["ss", "us", "is"].iter().any(|end| word.ends_with(end))
    {
        word.pop();
    }
}

fn cut_participle(word: &mut String) {
    let length = word.len();
    if length > 4 && word.ends_with("ied") {
        replace_ending(word, 3, "y");
        return;
    }
    let ending = if length > 5 && word.ends_with("ing") {
        3
    } else if length > 4 && word.ends_with("ed") {
        2
    } else {
        return;
    };
    if word.bytes().take(length - ending).any(is_vowel) {
        word.truncate(length - ending);
        cut_double_consonant(word);
    }
}

fn cut_double_consonant(word: &mut String) {
    if let [.., before, last] = *word.as_bytes()
        && word.len() > 3
        && before == last
        && !is_vowel(last)
        && !matches!(last, b'l' | b's' | b'z')
    {
        word.pop();
    }
}

fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

fn replace_ending(word: &mut String, length: usize, ending: &str) {
    word.truncate(word.len() - length);
    word.push_str(ending);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(words: &[&str], expected: &str) {
        for word in words {
            let mut stemmed = (*word).to_owned();
            stem(&mut stemmed);
            assert_eq!(stemmed, expected, "{word}");
        }
    }

    #[test]
    fn forms_of_one_word_have_one_stem() {
        check(&["city", "cities"], "city");
        check(&["study", "studies", "studied"], "study");
        check(&["box", "boxes"], "box");
        check(&["stop", "stops", "stopped", "stopping"], "stop");
        check(&["call", "called", "calling", "calls"], "call");
        check(&["make", "makes", "making"], "mak");
        check(&["found", "founds", "founded", "founding"], "found");
    }

    #[test]
    fn endings_that_are_none_stay() {
        check(&["glass"], "glass");
        check(&["virus"], "virus");
        check(&["basis"], "basis");
        check(&["king"], "king");
        check(&["red"], "red");
        check(&["string"], "string");
        check(&["gas"], "gas");
    }

    #[test]
    fn other_letters_stay() {
        check(&["häuser"], "häuser");
        check(&["b12s"], "b12s");
        check(&[""], "");
    }
}
