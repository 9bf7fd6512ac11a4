//! Fields of a line, found many bytes at a time.

use super::processor::{Processor, WINDOW};

/// How many bytes after the text a buffer must have, all of them `\n`.
pub(super) const PADDING: usize = WINDOW;

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The first position at or after `at` whose byte is a space or a control character (`<= 0x20`).
/// The buffer's padding stops every search.
#[inline]
pub(super) fn find_blank(buffer: &[u8], mut at: usize) -> usize {
    while let Some(word) = buffer.get(at..at + 8) {
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        // The lowest marked byte is exact: borrows only move upwards.
        let marks = word.wrapping_sub(LOW * 0x21) & !word & HIGH;
        if marks != 0 {
            return at + marks.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    buffer[at..]
        .iter()
        .position(|byte| *byte <= 0x20)
        .map_or(buffer.len(), |found| at + found)
}

/// White space within a line, as C's `isspace` defines it.
#[inline]
pub(super) fn is_gap(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0B | 0x0C)
}

/// The next field as (start, end), or `None` at the end of the line. Moves `at` past it.
#[inline]
pub(super) fn next_field(buffer: &[u8], at: &mut usize) -> Option<(usize, usize)> {
    while is_gap(buffer[*at]) {
        *at += 1;
    }
    let start = *at;
    *at = find_blank(buffer, start);
    (start < *at).then_some((start, *at))
}

/// Where the five fields after the query id of a run line end, counted from `at`, the gap before the first field.
/// `None` if the line is not plain: more than one blank between fields, too few fields, or four that exceed 60 bytes.
#[inline(always)]
pub(super) fn split(processor: impl Processor, buffer: &[u8], at: usize) -> Option<[usize; 5]> {
    let window: &[u8; WINDOW] = buffer.get(at..)?.first_chunk()?;
    let (mut gaps, ends) = processor.marks(window);
    // All ones below the end of the line; the end is a gap too.
    let line = (ends & ends.wrapping_neg()).wrapping_sub(1);
    gaps = (gaps & line) | line.wrapping_add(1);
    if gaps & 1 == 0 || gaps & (gaps << 1) != 0 {
        return None;
    }
    let mut stops = [0; 5];
    for stop in &mut stops[..4] {
        gaps &= gaps.wrapping_sub(1);
        *stop = gaps.trailing_zeros() as usize;
    }
    gaps &= gaps.wrapping_sub(1);
    if gaps & line == 0 && gaps != 0 {
        // The sixth column is the last one. Its end does not wait for the other fields' ends.
        stops[4] = ends.trailing_zeros() as usize;
        return Some(stops);
    }
    if gaps != 0 {
        stops[4] = gaps.trailing_zeros() as usize;
        return Some(stops);
    }
    // The last field can extend past the window.
    let goes_on = ends == 0 && stops[3] + 1 < WINDOW;
    stops[4] = find_blank(buffer, at + WINDOW) - at;
    goes_on.then_some(stops)
}

/// How many fields the line that starts at `at` has.
pub(super) fn count_fields(buffer: &[u8], mut at: usize) -> usize {
    std::iter::from_fn(|| next_field(buffer, &mut at)).count()
}

/// What is wrong with the byte that ended a field, if anything: it must be white space.
#[inline]
pub(super) fn control_character(buffer: &[u8], at: usize) -> Option<String> {
    let byte = *buffer.get(at)?;
    (byte < 0x20 && byte != b'\n' && !is_gap(byte))
        .then(|| format!("contains the control character 0x{byte:02X}; is this a text file?"))
}

/// What is wrong with an id that must be UTF-8, if anything.
pub(super) fn invalid_utf8(id: &[u8]) -> Option<String> {
    std::str::from_utf8(id).err().map(|_| {
        format!(
            "the id {} is not UTF-8; convert the file (iconv -f LATIN1 -t UTF-8)",
            crate::error::quote(id)
        )
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::readers::processor::for_each_processor;

    #[test]
    fn fields_end_at_blanks_and_never_at_letters() {
        let mut buffer = "q1\tQ0  d\u{e9}\u{4e2d}0123456789abcdef 1 \n"
            .as_bytes()
            .to_vec();
        buffer.extend([b'\n'; PADDING]);
        let mut at = 0;
        let fields: Vec<_> = std::iter::from_fn(|| next_field(&buffer, &mut at))
            .map(|(start, end)| String::from_utf8(buffer[start..end].to_vec()).unwrap())
            .collect();
        assert_eq!(fields, ["q1", "Q0", "d\u{e9}\u{4e2d}0123456789abcdef", "1"]);
    }

    /// Splits as [`super::split`] is documented to, by looking at each byte.
    fn split_slowly(buffer: &[u8], at: usize) -> Option<[usize; 5]> {
        let gap = |byte: &u8| matches!(byte, b' ' | b'\t');
        let length = buffer[at..]
            .iter()
            .position(|byte| *byte < 0x20 && *byte != b'\t')?;
        let line = &buffer[at..at + length];
        let mut stops = vec![0];
        stops.extend((1..length).filter(|place| gap(&line[*place])));
        stops.push(length);
        let seen = |stop: &&usize| **stop < WINDOW;
        let doubled = stops
            .windows(2)
            .any(|pair| pair[1] - pair[0] == 1 && pair[1] < WINDOW);
        let fields = stops.len() > 5
            && stops[1..5].iter().filter(seen).count() == 4
            && stops[4] + 1 < WINDOW;
        (gap(&line.first().copied().unwrap_or_default()) && !doubled && fields)
            .then(|| [stops[1], stops[2], stops[3], stops[4], stops[5]])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn split_finds_five_fields_or_leaves_the_line(
            fields in prop::collection::vec("[!a-z0-9\u{e9}]{0,20}", 4..8),
            blanks in prop::collection::vec(prop::sample::select(b" \t          \r\0".to_vec()), 8),
            end in prop::sample::select(vec!["\n", "\r\n", " \n", "\u{1f}"]),
        ) {
            let mut buffer = Vec::new();
            for (field, blank) in fields.iter().zip(blanks) {
                buffer.push(blank);
                buffer.extend(field.as_bytes());
            }
            buffer.extend(end.as_bytes());
            buffer.extend([b'\n'; PADDING]);
            for_each_processor!(processor => prop_assert_eq!(split(processor, &buffer, 0), split_slowly(&buffer, 0)));
        }
    }

    #[test]
    fn split_sees_every_byte_at_every_place() {
        // Around the window's end, and after it.
        for tag in [3, 30, 31, 32, 33, 60] {
            let plain = format!(" Q0 doc-1234567890 1 12.3456789 {}\n", "t".repeat(tag));
            for (place, byte) in
                (0..plain.len()).flat_map(|place| (0..=255).map(move |byte| (place, byte)))
            {
                let mut buffer = plain.clone().into_bytes();
                buffer[place] = byte;
                buffer.extend([b'\n'; PADDING]);
                let expected = split_slowly(&buffer, 0);
                for_each_processor!(processor => assert_eq!(split(processor, &buffer, 0), expected, "{byte} at {place}"));
            }
        }
    }

    #[test]
    fn find_blank_is_exact_for_every_byte_and_place() {
        for place in 0..17 {
            for byte in 0..=255u8 {
                let mut buffer = vec![b'x'; 24];
                buffer[place] = byte;
                buffer.extend([b'\n'; PADDING]);
                let expected = if byte <= 0x20 { place } else { 24 };
                assert_eq!(find_blank(&buffer, 0), expected, "{byte} at {place}");
            }
        }
    }
}
