//! Kinds of characters that Rust's standard library does not name.

/// White space by Unicode, and the separators that Python's `str.strip` takes away too.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

pub(super) fn is_line_break(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\x0b' | '\x0c' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Ends a sentence where a space follows, and often does not even then: `3.14`, `Mr. Smith`.
pub(super) fn is_narrow_terminator(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '‼' | '‽' | '⁇' | '⁈' | '⁉')
}

/// Ends a sentence whatever follows: the full stops of scripts that write no spaces, or use the sign for nothing else.
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

pub(super) fn is_terminator(c: char) -> bool {
    is_narrow_terminator(c) || is_wide_terminator(c)
}

/// Stands behind a full stop and still belongs to the sentence.
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

/// Stands before a sentence's first letter.
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

pub(super) fn is_hiragana(c: char) -> bool {
    ('\u{3041}'..='\u{309f}').contains(&c)
}
