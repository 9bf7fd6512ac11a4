//! Classes of characters that Rust's standard library does not define.

/// White space by Unicode, and the separators that Python's `str.strip` also removes.
#[inline]
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

#[inline]
pub(super) fn is_line_break(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\x0b' | '\x0c' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Ends a sentence if a space follows, though often not even then: `3.14`, `Mr. Smith`.
#[inline]
pub(super) fn is_narrow_terminator(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '‼' | '‽' | '⁇' | '⁈' | '⁉')
}

/// Ends a sentence whatever follows: full stops of scripts without spaces, and signs that serve no other purpose.
#[inline]
pub(super) fn is_wide_terminator(c: char) -> bool {
    matches!(
        c,
        '。' | '！'
            | '？'
            | '｡'
            | '．'
            | '।'
            | '॥'
            | '؟'
            | '۔'
            | '։'
            | '።'
            | '፧'
            | '។'
            | '៕'
            | '။'
            | '᠃'
            | '꓿'
    )
}

#[inline]
pub(super) fn is_terminator(c: char) -> bool {
    is_narrow_terminator(c) || is_wide_terminator(c)
}

/// Whether a sentence can end at the character: a line break, or a terminator.
#[inline]
pub(super) fn is_mark(c: char) -> bool {
    // Letters and spaces are most of a text, and two comparisons rule them out.
    let is_plain = c == ' ' || ('@'..='~').contains(&c);
    !is_plain && (is_line_break(c) || is_terminator(c))
}

/// Comes after a full stop and still belongs to the sentence.
#[inline]
pub(super) fn is_closer(c: char) -> bool {
    matches!(
        c,
        '"' | '\''
            | '”'
            | '’'
            | '»'
            | '›'
            | ')'
            | ']'
            | '}'
            | '」'
            | '』'
            | '）'
            | '】'
            | '》'
            | '〉'
            | '〕'
            | '］'
            | '＂'
            | '＇'
            | '*'
            | '_'
            | '`'
    )
}

/// Comes before a sentence's first letter.
#[inline]
pub(super) fn is_opener(c: char) -> bool {
    matches!(
        c,
        '"' | '\''
            | '“'
            | '‘'
            | '„'
            | '‚'
            | '«'
            | '‹'
            | '('
            | '['
            | '{'
            | '¿'
            | '¡'
            | '「'
            | '『'
            | '（'
            | '【'
            | '《'
            | '〈'
            | '〔'
            | '［'
            | '*'
            | '_'
            | '`'
            | '#'
            | '—'
            | '–'
            | '-'
    )
}

#[inline]
pub(super) fn is_hiragana(c: char) -> bool {
    ('\u{3041}'..='\u{309f}').contains(&c)
}

#[inline]
pub(super) fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’' | 'ʼ' | '＇')
}

/// Invisible: soft hyphen, zero-width joiner and non-joiner.
#[inline]
pub(super) fn is_joiner(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{2060}')
}

/// Whether the character's script writes no spaces between words or, like Korean, attaches particles to them.
#[inline]
pub(super) fn is_unspaced(c: char) -> bool {
    // Every such script lies above Latin, Greek, Cyrillic, Arabic and the scripts of India.
    c >= '\u{0e00}' && is_in_unspaced_block(c) && c.is_alphanumeric()
}

#[inline(never)]
fn is_in_unspaced_block(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{17ff}'
            | '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3031}'..='\u{318f}'
            | '\u{31a0}'..='\u{31bf}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
            | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}'
            | '\u{ffa0}'..='\u{ffdc}' | '\u{20000}'..='\u{3ffff}')
}

/// The marks on Latin, Greek and Cyrillic letters that readers can leave out, such as accents.
#[inline]
pub(super) fn is_accent(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortcuts_change_no_answer() {
        for c in '\0'..=char::MAX {
            assert_eq!(is_mark(c), is_line_break(c) || is_terminator(c), "{c:?}");
            let in_block = is_in_unspaced_block(c) && c.is_alphanumeric();
            assert_eq!(is_unspaced(c), in_block, "{c:?}");
        }
    }
}
