//! Paragraphs whose lines are wrapped at a fixed width, so that a line end does not end a sentence.

use std::ops::Range;

use super::characters::{is_line_break, is_space};

/// The widths to which lines are wrapped.
const WRAPPED_WIDTHS: Range<usize> = 40..121;

/// The paragraphs of at least three lines in which no line except the last had room for the next line's first word.
#[inline]
pub(super) fn find_wrapped(chars: &[char]) -> Vec<Range<usize>> {
    let mut wrapped = Vec::new();
    let mut paragraph: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    while start < chars.len() {
        let line = &chars[start..];
        let length = line
            .iter()
            .position(|c| is_line_break(*c))
            .unwrap_or(line.len());
        let end = start + length;
        if line[..length].iter().all(|c| is_space(*c)) {
            wrapped.extend(wrapped_range(chars, &paragraph));
            paragraph.clear();
        } else {
            paragraph.push(start..end);
        }
        let pair = matches!(chars.get(end..end + 2), Some(['\r', '\n']));
        start = end + 1 + usize::from(pair);
    }
    wrapped.extend(wrapped_range(chars, &paragraph));
    wrapped
}

fn wrapped_range(chars: &[char], lines: &[Range<usize>]) -> Option<Range<usize>> {
    let width = lines.iter().map(Range::len).max().unwrap_or_default();
    let is_full = |pair: &[Range<usize>]| {
        let next = &chars[pair[1].clone()];
        let word = next.iter().take_while(|c| !is_space(**c)).count();
        pair[0].len() + 1 + word > width
    };
    let is_wrapped =
        lines.len() > 2 && WRAPPED_WIDTHS.contains(&width) && lines.windows(2).all(is_full);
    is_wrapped.then(|| lines[0].start..lines[lines.len() - 1].end)
}
