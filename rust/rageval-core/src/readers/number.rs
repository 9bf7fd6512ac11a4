//! Numbers in run and qrels files.

use super::processor::Processor;

const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Reads a decimal number, correctly rounded; `None` if it is not a number. `nan` is accepted here; callers reject it.
#[inline]
pub(super) fn parse_score(text: &[u8]) -> Option<f64> {
    parse_plain(text).or_else(|| parse_any(text))
}

/// The number in `start..end` of a buffer if it has up to 15 digits and no exponent; it is what [`parse_score`] reads.
#[inline(always)]
pub(super) fn parse_short(
    processor: impl Processor,
    buffer: &[u8],
    (start, end): (usize, usize),
) -> Option<f64> {
    let negative = buffer[start] == b'-';
    let length = end - start - usize::from(negative);
    let (mantissa, fraction) = processor.decimal(buffer[..end].last_chunk()?, length)?;
    // Both are exact, so their ratio is correctly rounded.
    let value = mantissa as i64 as f64 / EXACT_POWERS[fraction & 15];
    Some(if negative { -value } else { value })
}

/// Up to 15 digits with an optional sign and point: mantissa and power of ten are exact, so their ratio is correctly
/// rounded (Clinger 1990).
#[inline]
fn parse_plain(text: &[u8]) -> Option<f64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let (mut mantissa, mut at) = (0i64, 0);
    take_digits(digits, &mut at, &mut mantissa);
    let integer = at;
    if digits.get(at) == Some(&b'.') {
        at += 1;
        take_digits(digits, &mut at, &mut mantissa);
    }
    let fraction = at.saturating_sub(integer + 1);
    if at < digits.len() || !(1..=15).contains(&(integer + fraction)) {
        return None;
    }
    let value = mantissa as f64 / EXACT_POWERS[fraction];
    Some(if digits.len() < text.len() {
        -value
    } else {
        value
    })
}

/// Appends the digits that start at `at` to a number, which wraps around if it cannot hold them all.
#[inline]
fn take_digits(text: &[u8], at: &mut usize, number: &mut i64) {
    while let Some(byte) = text.get(*at) {
        let digit = byte.wrapping_sub(b'0');
        if digit >= 10 {
            break;
        }
        *number = number.wrapping_mul(10).wrapping_add(i64::from(digit));
        *at += 1;
    }
}

#[cold]
fn parse_any(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Reads a relevance: a whole number, or a decimal with a whole value (`1.0`).
pub(super) fn parse_relevance(text: &[u8]) -> Option<i32> {
    if let [digit @ b'0'..=b'9'] = text {
        return Some(i32::from(digit - b'0'));
    }
    let text = std::str::from_utf8(text).ok()?;
    text.parse::<i32>().ok().or_else(|| {
        let value = text.parse::<f64>().ok()?;
        let whole =
            value.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value);
        whole.then_some(value as i32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn relevance_is_whole() {
        for (text, expected) in [
            ("1", Some(1)),
            ("-1", Some(-1)),
            ("2.0", Some(2)),
            ("0.5", None),
            ("x", None),
            ("9999999999", None),
        ] {
            assert_eq!(parse_relevance(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn text_that_is_not_a_number_gives_none() {
        for text in ["", "-", ".", "1.2.3", "1,5", "0x10", "--1", "1e", "abc"] {
            assert_eq!(parse_score(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_score(b"-0.5e-3"), Some(-0.0005));
        assert_eq!(parse_score(b"inf"), Some(f64::INFINITY));
    }

    proptest! {
        #[test]
        fn agrees_with_the_standard_library(value in any::<f64>(), digits in 0usize..12) {
            for text in [format!("{value}"), format!("{value:e}"), format!("{:.digits$}", value % 1e6)] {
                let expected: f64 = text.parse().unwrap();
                let found = parse_score(text.as_bytes()).unwrap();
                prop_assert!(found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan()), "{text}");
            }
        }
    }
}
