//! The two things that take longest in a run line, blanks and decimals, with the instructions that a processor has.

/// How many bytes [`Processor::marks`] looks at.
pub(super) const WINDOW: usize = 64;

/// A set of instructions.
pub(super) trait Processor: Copy {
    /// One bit per byte: which bytes are blanks or tabs, and which are control characters other than tabs. After the
    /// first of the latter, which ends the line, the bits can be anything.
    fn marks(self, bytes: &[u8; WINDOW]) -> (u64, u64);

    /// The last `length` bytes as a whole number and how many of its digits stand behind a point. `None` unless they
    /// are 1 to 15 digits, with or without a point.
    fn decimal(self, bytes: &[u8; 16], length: usize) -> Option<(u64, usize)>;
}

/// Any processor.
#[derive(Clone, Copy)]
pub(super) struct Plain;

impl Processor for Plain {
    /// The second half of the bytes is looked at only if the line goes on there.
    #[inline(always)]
    fn marks(self, bytes: &[u8; WINDOW]) -> (u64, u64) {
        let [low, high]: [[u8; WINDOW / 2]; 2] = pulp::cast(*bytes);
        let (gaps, ends) = half_marks(&low);
        if ends != 0 {
            return (gaps, ends);
        }
        let (high_gaps, high_ends) = half_marks(&high);
        (gaps | high_gaps << (WINDOW / 2), high_ends << (WINDOW / 2))
    }

    #[inline(always)]
    fn decimal(self, bytes: &[u8; 16], length: usize) -> Option<(u64, usize)> {
        let text = &bytes[16usize.checked_sub(length)?..];
        let (mut mantissa, mut digits, mut point) = (0, 0, None);
        for (place, byte) in text.iter().enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit < 10 {
                mantissa = mantissa * 10 + u64::from(digit);
                digits += 1;
            } else if *byte == b'.' && point.is_none() {
                point = Some(place);
            } else {
                return None;
            }
        }
        let fraction = point.map_or(0, |place| length - place - 1);
        (1..=15).contains(&digits).then_some((mantissa, fraction))
    }
}

/// The marks of half a window.
#[inline]
fn half_marks(bytes: &[u8; WINDOW / 2]) -> (u64, u64) {
    #[cfg(target_arch = "x86_64")]
    if let Some(sse2) = pulp::core_arch::x86::Sse2::try_new() {
        let half = |from: usize| {
            let word = |at: usize| {
                bytes[at..]
                    .first_chunk()
                    .map_or(0, |word| i64::from_le_bytes(*word))
            };
            let bytes = sse2._mm_set_epi64x(word(from + 8), word(from));
            let equal = |byte: i8| sse2._mm_cmpeq_epi8(bytes, sse2._mm_set1_epi8(byte));
            let gaps = sse2._mm_or_si128(equal(0x20), equal(0x09));
            let least = sse2._mm_min_epu8(bytes, sse2._mm_set1_epi8(0x20));
            let small = sse2._mm_cmpeq_epi8(least, bytes);
            let mask = |vector| u64::from(sse2._mm_movemask_epi8(vector).cast_unsigned());
            (mask(gaps), mask(small))
        };
        let (low, high) = (half(0), half(16));
        let (gaps, small) = (low.0 | high.0 << 16, low.1 | high.1 << 16);
        return (gaps, small & !gaps);
    }
    marks_one_by_one(bytes)
}

fn marks_one_by_one(bytes: &[u8; WINDOW / 2]) -> (u64, u64) {
    let mask = |is: fn(u8) -> bool| {
        let marked = (0..).zip(bytes).filter(|(_, byte)| is(**byte));
        marked.fold(0, |mask, (at, _)| mask | 1 << at)
    };
    let gap = |byte| byte == b' ' || byte == b'\t';
    (mask(gap), mask(|byte| byte < 0x20 && byte != b'\t'))
}

#[cfg(target_arch = "x86_64")]
impl Processor for pulp::x86::V3 {
    #[inline(always)]
    fn marks(self, bytes: &[u8; WINDOW]) -> (u64, u64) {
        let [low, high]: [[u8; WINDOW / 2]; 2] = pulp::cast(*bytes);
        let half = |bytes: [u8; WINDOW / 2]| {
            let bytes = pulp::cast(bytes);
            let all = |byte| self.avx._mm256_set1_epi8(byte);
            let equal = |byte| self.avx2._mm256_cmpeq_epi8(bytes, all(byte));
            let gaps = self.avx2._mm256_or_si256(equal(0x20), equal(0x09));
            let least = self.avx2._mm256_min_epu8(bytes, all(0x20));
            let small = self.avx2._mm256_cmpeq_epi8(least, bytes);
            let mask = |vector| u64::from(self.avx2._mm256_movemask_epi8(vector).cast_unsigned());
            (mask(gaps), mask(small))
        };
        let (low, high) = (half(low), half(high));
        let (gaps, small) = (low.0 | high.0 << 32, low.1 | high.1 << 32);
        (gaps, small & !gaps)
    }

    /// Multiplies and adds neighbours: digits to pairs, pairs to fours, fours to eights.
    #[inline(always)]
    fn decimal(self, bytes: &[u8; 16], length: usize) -> Option<(u64, usize)> {
        let all = |byte: u8| self.sse2._mm_set1_epi8(byte.cast_signed());
        let digits = self.sse2._mm_sub_epi8(pulp::cast(*bytes), all(b'0'));
        let mut digits = self
            .sse2
            ._mm_and_si128(digits, pulp::cast(*KEPT.get(length)?));
        let least = self.sse2._mm_min_epu8(digits, all(9));
        let equal = self.sse2._mm_cmpeq_epi8(least, digits);
        let others = self.sse2._mm_movemask_epi8(equal) ^ 0xFFFF;
        let mut fraction = 0;
        if others != 0 {
            let place = others.trailing_zeros() as usize & 15;
            if others & (others - 1) != 0 || bytes[place] != b'.' || length < 2 {
                return None;
            }
            digits = self
                .ssse3
                ._mm_shuffle_epi8(digits, pulp::cast(WITHOUT[place]));
            fraction = 15 - place;
        } else if length > 15 || length == 0 {
            return None;
        }
        let tens: [i8; 16] = [10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1];
        let hundreds: [i16; 8] = [100, 1, 100, 1, 100, 1, 100, 1];
        let thousands: [i16; 8] = [10_000, 1, 10_000, 1, 10_000, 1, 10_000, 1];
        let pairs = self.ssse3._mm_maddubs_epi16(digits, pulp::cast(tens));
        let fours = self.sse2._mm_madd_epi16(pairs, pulp::cast(hundreds));
        let fours = self.sse4_1._mm_packus_epi32(fours, fours);
        let eights = self.sse2._mm_madd_epi16(fours, pulp::cast(thousands));
        let [eights, _]: [u64; 2] = pulp::cast(eights);
        let mantissa = (eights & 0xFFFF_FFFF) * 100_000_000 + (eights >> 32);
        Some((mantissa, fraction))
    }
}

/// Masks that keep the last so many of 16 bytes.
#[cfg(target_arch = "x86_64")]
static KEPT: [[u8; 16]; 17] = {
    let mut masks = [[0; 16]; 17];
    let mut length = 0;
    while length <= 16 {
        let mut place = 16 - length;
        while place < 16 {
            masks[length][place] = 0xFF;
            place += 1;
        }
        length += 1;
    }
    masks
};

/// Shuffles of 16 bytes that take one of them out; those before it move up, and a zero comes first.
#[cfg(target_arch = "x86_64")]
static WITHOUT: [[u8; 16]; 16] = {
    let mut shuffles = [[0x80; 16]; 16];
    let mut out = 0;
    while out < 16 {
        let mut place = 1;
        while place < 16 {
            shuffles[out][place] = if place > out { place } else { place - 1 } as u8;
            place += 1;
        }
        out += 1;
    }
    shuffles
};

/// Does the same with every set of instructions that this processor has.
#[cfg(test)]
macro_rules! for_each_processor {
    ($processor:ident => $check:expr) => {{
        let $processor = $crate::readers::processor::Plain;
        $check;
        #[cfg(target_arch = "x86_64")]
        if let Some($processor) = pulp::x86::V3::try_new() {
            $check;
        }
    }};
}
#[cfg(test)]
pub(super) use for_each_processor;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn marks_are_those_of_each_byte(bytes in any::<[u8; WINDOW]>(), small in any::<bool>()) {
            let bytes = bytes.map(|byte| if small { byte % 40 } else { byte });
            let gap = |byte| byte == b' ' || byte == b'\t';
            let end = |byte| byte < 0x20 && byte != b'\t';
            let length = bytes.iter().position(|byte| end(*byte)).unwrap_or(WINDOW);
            let mask = |is: &dyn Fn(u8) -> bool, upto: usize| {
                let marked = (0..).zip(&bytes[..upto]).filter(|(_, byte)| is(**byte));
                marked.fold(0u64, |mask, (at, _)| mask | 1 << at)
            };
            let below = |length| u64::MAX.checked_shr(64 - length as u32).unwrap_or(0);
            for_each_processor!(processor => {
                let (gaps, ends) = processor.marks(&bytes);
                prop_assert_eq!(gaps & below(length), mask(&gap, length));
                let first = (length + 1).min(WINDOW);
                prop_assert_eq!(ends & below(first), mask(&end, first));
            });
        }

        #[test]
        fn decimals_are_the_standard_librarys(
            before in prop::collection::vec(any::<u8>(), 16),
            number in prop_oneof!["[0-9]{0,17}", "[0-9]{0,9}[.][0-9]{0,9}", "[-+0-9.e,/:\u{0}\u{e9}]{0,16}"],
        ) {
            let text = [&before[..], number.as_bytes()].concat();
            let bytes = text.last_chunk().unwrap();
            let digits: String = number.chars().filter(char::is_ascii_digit).collect();
            let point = number.chars().filter(|c| *c == '.').count();
            let plain = (1..=15).contains(&digits.len()) && point < 2 && digits.len() + point == number.len();
            let fraction = number.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            let expected = plain.then(|| (digits.parse().unwrap(), fraction));
            for_each_processor!(processor => prop_assert_eq!(processor.decimal(bytes, number.len()), expected));
        }
    }
}
