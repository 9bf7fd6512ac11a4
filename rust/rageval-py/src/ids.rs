//! Columns of ids, in every form that a table can have.

use std::sync::OnceLock;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, LargeStringArray, StringArray, StringViewArray};
use arrow_schema::DataType;
use rageval_core::evaluation::{Decimals, Whole};

/// Texts in place, or whole numbers converted to text.
pub(crate) enum Ids {
    Utf8(StringArray),
    LargeUtf8(LargeStringArray),
    Utf8View(StringViewArray),
    Dictionary(Vec<u32>, Box<Ids>),
    Decimals(Decimals),
    /// Whole numbers, and their text once it is needed: an evaluation writes the numbers of a query at a time instead.
    Whole(ArrayRef, OnceLock<Decimals>),
}

/// Matches the type of a column of whole numbers: `$numbers` is a slice of them in `$then`.
macro_rules! match_whole {
    ($column:expr, $numbers:ident => $then:expr, _ => $otherwise:expr) => {
        match_whole!(@ $column, $numbers => $then, _ => $otherwise;
            Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
            UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type)
    };
    (@ $column:expr, $numbers:ident => $then:expr, _ => $otherwise:expr; $($type:ident => $arrow:ty),*) => {
        match $column.data_type() {
            $(DataType::$type => {
                let $numbers = &**$column.as_primitive::<$arrow>().values();
                $then
            })*
            _ => $otherwise,
        }
    };
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
            Self::Decimals(ids) => ids.get(row),
            Self::Whole(numbers, text) => text.get_or_init(|| write_all(numbers)).get(row),
        }
    }

    /// The ids of a column without nulls; `None` if it holds anything other than text or whole numbers.
    pub(crate) fn read(column: &ArrayRef) -> Option<Self> {
        if column.is_empty() {
            // A column without rows often has no type.
            return Some(Self::Decimals(Decimals::default()));
        }
        match column.data_type() {
            DataType::Utf8 => Some(Self::Utf8(column.as_string::<i32>().clone())),
            DataType::LargeUtf8 => Some(Self::LargeUtf8(column.as_string::<i64>().clone())),
            DataType::Utf8View => Some(Self::Utf8View(column.as_string_view().clone())),
            DataType::Dictionary(_, _) => {
                let dictionary = column.as_any_dictionary();
                let values = Self::read(dictionary.values())?;
                let keys = dictionary.normalized_keys();
                let keys = keys.into_iter().map(|key| key as u32).collect();
                Some(Self::Dictionary(keys, Box::new(values)))
            }
            _ => {
                match_whole!(column, numbers => Some(Self::of_numbers(column, numbers)), _ => None)
            }
        }
    }

    /// Writes the ids of the rows `row(0), ..., row(n - 1)` if they are whole numbers.
    pub(crate) fn write(&self, n: usize, row: impl Fn(usize) -> usize, ids: &mut Decimals) -> bool {
        let Self::Whole(column, _) = self else {
            return false;
        };
        match_whole!(column, numbers => ids.write((0..n).map(|i| numbers[row(i)])), _ => return false);
        true
    }

    /// Whole numbers. Equal neighbours, such as the rows of a query, are converted once.
    fn of_numbers<T: Whole>(column: &ArrayRef, numbers: &[T]) -> Self {
        let Some(starts) = find_starts(numbers) else {
            return Self::Whole(column.clone(), OnceLock::new());
        };
        let mut keys = Vec::with_capacity(numbers.len());
        let ends = starts.iter().skip(1).copied().chain([numbers.len()]);
        for (key, end) in (0..).zip(ends) {
            keys.resize(end, key);
        }
        let firsts = starts.iter().map(|start| numbers[*start]);
        let mut ids = Decimals::default();
        ids.write(firsts);
        Self::Dictionary(keys, Box::new(Self::Decimals(ids)))
    }
}

/// Where stretches of equal numbers start; `None` if they are short. Most blocks lie within a stretch, and comparing one
/// with the number before it takes a few instructions.
fn find_starts<T: Whole>(numbers: &[T]) -> Option<Vec<usize>> {
    const BLOCK: usize = 64;
    let most = (numbers.len() / 4).min(u32::MAX as usize);
    let (mut starts, mut last) = (vec![0], numbers[0]);
    for (number, block) in numbers.chunks(BLOCK).enumerate() {
        if block.iter().fold(true, |same, next| same & (*next == last)) {
            continue;
        }
        for (at, next) in (number * BLOCK..).zip(block) {
            if *next != last {
                starts.push(at);
                last = *next;
            }
        }
        if starts.len() > most.max(1) {
            return None;
        }
    }
    Some(starts)
}

fn write_all(column: &ArrayRef) -> Decimals {
    let mut ids = Decimals::default();
    match_whole!(column, numbers => ids.write(numbers.iter().copied()), _ => ());
    ids
}
