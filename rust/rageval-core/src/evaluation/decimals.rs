//! Ids that are whole numbers, written as text.

/// Whole numbers in decimal. Allocating a `String` for each would take longer than the evaluation, so each number gets
/// a cell of fixed width with its digits at the right end.
#[derive(Default)]
pub struct Decimals {
    /// The last byte of a cell is the position at which its text starts.
    cells: Vec<u8>,
    width: usize,
}

impl Decimals {
    /// Replaces the numbers. Reuses the memory.
    pub fn write<T: Whole>(&mut self, numbers: impl Iterator<Item = T> + Clone) {
        let (mut count, mut negative, mut largest) = (0, false, 0);
        for (sign, number) in numbers.clone().map(Whole::parts) {
            (count, negative, largest) = (count + 1, negative | sign, largest.max(number));
        }
        let digits = largest.checked_ilog10().unwrap_or(0) as usize + 1;
        self.width = usize::from(negative) + digits.next_multiple_of(8) + 1;
        self.cells.resize(count * self.width, 0);
        if self.width == SHORT {
            let (cells, _) = self.cells.as_chunks_mut::<SHORT>();
            for (cell, number) in cells.iter_mut().zip(numbers) {
                write_short_cell(cell, number.parts().1);
            }
            return;
        }
        for (cell, number) in self.cells.chunks_exact_mut(self.width).zip(numbers) {
            write_cell(cell, number);
        }
    }

    /// The text of a number.
    #[inline]
    #[must_use]
    pub fn get(&self, row: usize) -> &[u8] {
        let cell = &self.cells[row * self.width..][..self.width];
        let last = self.width - 1;
        &cell[usize::from(cell[last])..last]
    }
}

/// A type of whole numbers.
pub trait Whole: Copy + PartialEq {
    /// Whether it is below 0, and its absolute value.
    fn parts(self) -> (bool, u64);
}

macro_rules! whole {
    ($($signed:ty, $unsigned:ty);*) => {$(
        impl Whole for $signed {
            #[inline]
            fn parts(self) -> (bool, u64) {
                (self < 0, u64::from(self.unsigned_abs()))
            }
        }
        impl Whole for $unsigned {
            #[inline]
            fn parts(self) -> (bool, u64) {
                (false, u64::from(self))
            }
        }
    )*};
}
whole!(i8, u8; i16, u16; i32, u32; i64, u64);

/// The width of a cell for numbers from 0 to 99,999,999.
const SHORT: usize = 9;

const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);

/// The same as [`write_cell`] for the numbers that most collections have.
#[inline]
fn write_short_cell(cell: &mut [u8; SHORT], number: u64) {
    let digits = eight_digits(number);
    let [a, b, c, d, e, f, g, h] = (digits | ZEROS).to_le_bytes();
    *cell = [a, b, c, d, e, f, g, h, first_digit(digits) as u8];
}

/// The place of the first digit that counts: in the lowest byte that is not 0. The number 0 has one digit too.
#[inline]
fn first_digit(digits: u64) -> usize {
    (digits.trailing_zeros() as usize / 8).min(7)
}

/// Writes a number's text to the right end of a cell with enough room, eight digits at a time.
#[inline]
fn write_cell(cell: &mut [u8], number: impl Whole) {
    let (negative, mut rest) = number.parts();
    let last = cell.len() - 1;
    let mut end = last;
    let mut digits = eight_digits(rest % 100_000_000);
    loop {
        cell[end - 8..end].copy_from_slice(&(digits | ZEROS).to_le_bytes());
        rest /= 100_000_000;
        if rest == 0 {
            break;
        }
        end -= 8;
        digits = eight_digits(rest % 100_000_000);
    }
    let mut start = end - 8 + first_digit(digits);
    if negative {
        start -= 1;
        cell[start] = b'-';
    }
    cell[last] = start as u8;
}

/// The digits of a number below 100 million, the first in the lowest byte: halves, then quarters, then digits, each by
/// a multiplication that divides by a power of ten.
#[inline]
fn eight_digits(number: u64) -> u64 {
    let fours = (number / 10_000) | (number % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let pairs = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000F_000F_000F_000F;
    tens | (pairs - 10 * tens) << 8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts<T: Whole>(numbers: &[T]) -> Vec<String> {
        let mut decimals = Decimals::default();
        decimals.write([7u8; 40].into_iter());
        decimals.write(numbers.iter().copied());
        let text = |row| String::from_utf8(decimals.get(row).to_vec()).unwrap();
        (0..numbers.len()).map(text).collect()
    }

    #[test]
    fn numbers_at_every_power_of_ten_are_written_in_full() {
        let mut numbers = vec![0, u64::MAX, 1 << 63];
        numbers.extend((0..20).flat_map(|power| [10u64.pow(power), 10u64.pow(power) - 1]));
        let expected: Vec<String> = numbers.iter().map(u64::to_string).collect();
        assert_eq!(texts(&numbers), expected);
        for number in numbers {
            assert_eq!(texts(&[number]), [number.to_string()]);
        }
        assert_eq!(
            texts(&[i64::MIN, 5, -10]),
            ["-9223372036854775808", "5", "-10"]
        );
    }

    #[test]
    fn every_number_of_four_digits_is_divided_exactly() {
        for number in 0..10_000u64 {
            assert_eq!(
                texts(&[number, number * 10_000]),
                [number.to_string(), (number * 10_000).to_string()]
            );
        }
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_the_standard_library_does(
            wide in prop::collection::vec(any::<i64>(), 0..20),
            narrow in prop::collection::vec(any::<i16>(), 0..20),
        ) {
            prop_assert_eq!(texts(&wide), wide.iter().map(i64::to_string).collect::<Vec<_>>());
            prop_assert_eq!(texts(&narrow), narrow.iter().map(i16::to_string).collect::<Vec<_>>());
        }
    }
}
