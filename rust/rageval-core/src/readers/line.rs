//! Fields of a line, found eight bytes at a time.

/// How many bytes behind the text a buffer must have, all of them `\n`.
pub(super) const PADDING: usize = 8;

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The first position from `at` on whose byte is a space or a control character (`<= 0x20`).
/// The buffer's padding ends every search.
#[inline]
pub(super) fn find_blank(buffer: &[u8], mut at: usize) -> usize {
    while let Some(word) = buffer.get(at..at + 8) {
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        // The lowest marked byte is exact: borrows run upwards only.
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

/// White space inside a line, as C's `isspace` has it.
#[inline]
pub(super) fn is_gap(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0B | 0x0C)
}

/// The next field as (start, end); None at the end of the line. `at` moves behind it.
#[inline]
pub(super) fn next_field(buffer: &[u8], at: &mut usize) -> Option<(usize, usize)> {
    while is_gap(buffer[*at]) {
        *at += 1;
    }
    let start = *at;
    *at = find_blank(buffer, start);
    (start < *at).then_some((start, *at))
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
        .then(|| format!("holds the control character 0x{byte:02X}; is this a text file?"))
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
    use super::*;

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
