//! Columns of ids, in every form that a table can have.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, LargeStringArray, StringArray, StringViewArray};
use arrow_schema::DataType;

/// Texts in place, or whole numbers converted to text.
pub(crate) enum Ids {
    Utf8(StringArray),
    LargeUtf8(LargeStringArray),
    Utf8View(StringViewArray),
    Dictionary(Vec<u32>, Box<Ids>),
    Whole(Decimals),
}

impl Ids {
    /// Whether two rows have the same id. Short ids are stored in their views, which compare as numbers.
    #[inline]
    pub(crate) fn same(&self, a: usize, b: usize) -> bool {
        const INLINE: u32 = 12;
        match self {
            Self::Utf8View(ids) => {
                let (first, second) = (ids.views()[a], ids.views()[b]);
                first == second || (first as u32 > INLINE && ids.value(a) == ids.value(b))
            }
            Self::Dictionary(keys, _) if keys[a] == keys[b] => true,
            _ => self.get(a) == self.get(b),
        }
    }

    #[inline]
    pub(crate) fn get(&self, row: usize) -> &[u8] {
        match self {
            Self::Utf8(ids) => ids.value(row).as_bytes(),
            Self::LargeUtf8(ids) => ids.value(row).as_bytes(),
            Self::Utf8View(ids) => ids.value(row).as_bytes(),
            Self::Dictionary(keys, ids) => ids.get(keys[row] as usize),
            Self::Whole(ids) => ids.get(row),
        }
    }

    /// The ids of a column without nulls; `None` if it holds anything other than text or whole numbers.
    pub(crate) fn read(column: &ArrayRef) -> Option<Self> {
        if column.is_empty() {
            // A column without rows often has no type.
            return Some(Self::Whole(Decimals::default()));
        }
        macro_rules! whole {
            ($($type:ident => $arrow:ty),*) => {
                match column.data_type() {
                    DataType::Utf8 => Some(Self::Utf8(column.as_string::<i32>().clone())),
                    DataType::LargeUtf8 => Some(Self::LargeUtf8(column.as_string::<i64>().clone())),
                    DataType::Utf8View => Some(Self::Utf8View(column.as_string_view().clone())),
                    DataType::Dictionary(_, _) => {
                        let dictionary = column.as_any_dictionary();
                        let values = Self::read(dictionary.values())?;
                        let keys = dictionary.normalized_keys().into_iter().map(|key| key as u32).collect();
                        Some(Self::Dictionary(keys, Box::new(values)))
                    }
                    $(DataType::$type => Some(Self::write(column.as_primitive::<$arrow>().values())),)*
                    _ => None,
                }
            };
        }
        whole!(Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
               UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type)
    }

    /// Converts whole numbers to text. Equal neighbours, such as the rows of a query, are converted once.
    fn write<T: Whole>(numbers: &[T]) -> Self {
        let changes = numbers.windows(2).filter(|pair| pair[0] != pair[1]).count();
        if changes > numbers.len() / 4 || u32::try_from(changes).is_err() {
            return Self::Whole(Decimals::write(numbers));
        }
        let mut firsts = Vec::with_capacity(changes + 1);
        let mut keys = Vec::with_capacity(numbers.len());
        for stretch in numbers.chunk_by(|a, b| a == b) {
            keys.resize(keys.len() + stretch.len(), firsts.len() as u32);
            firsts.push(stretch[0]);
        }
        Self::Dictionary(keys, Box::new(Self::Whole(Decimals::write(&firsts))))
    }
}

/// Whole numbers in decimal. Allocating a `String` for each would take longer than the evaluation, so each number gets
/// a cell of fixed width with its digits at the right end.
#[derive(Default)]
pub(crate) struct Decimals {
    /// The last byte of a cell is the position at which its text starts.
    cells: Vec<u8>,
    width: usize,
}

impl Decimals {
    fn write<T: Whole>(numbers: &[T]) -> Self {
        let parts = numbers.iter().map(|number| number.parts());
        let (negative, largest) = parts.fold((false, 0), |(negative, largest), (sign, number)| {
            (negative | sign, number.max(largest))
        });
        let digits = largest.checked_ilog10().unwrap_or(0) as usize + 1;
        let width = usize::from(negative) + digits + 1;
        let mut cells = vec![0; numbers.len() * width];
        for (cell, &number) in cells.chunks_exact_mut(width).zip(numbers) {
            write_cell(cell, number);
        }
        Self { cells, width }
    }

    #[inline]
    fn get(&self, row: usize) -> &[u8] {
        let cell = &self.cells[row * self.width..][..self.width];
        let last = self.width - 1;
        &cell[usize::from(cell[last])..last]
    }
}

/// A type of whole numbers.
trait Whole: Copy + PartialEq {
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

/// `00`, `01`, ..., `99`.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    pairs
};

/// Writes a number's text to the right end of a cell with enough room, two digits at a time.
#[inline]
fn write_cell(cell: &mut [u8], number: impl Whole) {
    let (negative, mut rest) = number.parts();
    let last = cell.len() - 1;
    let mut at = last;
    while rest >= 10 {
        at -= 2;
        cell[at..at + 2].copy_from_slice(&PAIRS[(rest % 100) as usize]);
        rest /= 100;
    }
    if rest > 0 || at == last {
        at -= 1;
        cell[at] = b'0' + rest as u8;
    }
    if negative {
        at -= 1;
        cell[at] = b'-';
    }
    cell[last] = at as u8;
}
