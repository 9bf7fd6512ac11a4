//! Hashes of identifiers, and open-addressing tables of indexes into a list that the caller keeps.

/// A 64-bit hash of an identifier; equal on every machine and in every process.
#[inline]
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    let mut state =
        0x9E37_79B9_7F4A_7C15 ^ (bytes.len() as u64).wrapping_mul(0xA24B_AED4_963E_E407);
    if bytes.len() > 8 {
        for word in bytes[..bytes.len() - 1].chunks_exact(8) {
            state = fold(state ^ word.try_into().map_or(0, u64::from_le_bytes));
        }
    }
    fold(state ^ last_word(bytes))
}

/// The last eight bytes, or all of them if there are fewer, as a number. Loads overlap instead of looping over bytes.
#[inline]
fn last_word(bytes: &[u8]) -> u64 {
    if let Some(word) = bytes.last_chunk::<8>() {
        return u64::from_le_bytes(*word);
    }
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
        _ => bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[inline]
fn fold(x: u64) -> u64 {
    let product = u128::from(x) * 0xD6E8_FEB8_6659_FD93_u128;
    (product as u64) ^ ((product >> 64) as u64)
}

/// Maps hashes to indexes into a list that the caller keeps. It holds no keys.
#[derive(Clone, Debug, Default)]
pub struct IndexTable {
    slots: Vec<u32>,
    used: usize,
}

impl IndexTable {
    /// Removes all entries and makes room for `expected` ones. The table stays sparse: a probe that hits a taken slot
    /// costs a mispredicted branch, which is more expensive than the memory. A larger table from an earlier use shrinks
    /// by half each time, so that one large use does not slow down all later ones.
    pub fn reset(&mut self, expected: usize) {
        let wanted = (expected * 4).next_power_of_two().max(16);
        let room = wanted.max(self.slots.len() / 2);
        self.slots.clear();
        self.slots.resize(room, 0);
        self.used = 0;
    }

    /// The entry of this hash that `is_it` accepts.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(usize) -> bool) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut slot = hash as usize & mask;
        loop {
            match self.slots[slot] {
                0 => return None,
                entry if is_it(entry as usize - 1) => return Some(entry as usize - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// The entry of this hash that `is_it` accepts. If there is none, inserts `index` and returns `None`.
    #[inline]
    pub fn find_or_insert(
        &mut self,
        hash: u64,
        index: usize,
        mut is_it: impl FnMut(usize) -> bool,
        hash_of: impl Fn(usize) -> u64,
    ) -> Option<usize> {
        if (self.used + 1) * 2 > self.slots.len() {
            self.grow(hash_of);
        }
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match self.slots[slot] {
                0 => {
                    self.slots[slot] = index as u32 + 1;
                    self.used += 1;
                    return None;
                }
                entry if is_it(entry as usize - 1) => return Some(entry as usize - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Inserts `index`. The table grows as needed and asks `hash_of` for the hashes of earlier entries.
    #[inline]
    pub fn insert(&mut self, hash: u64, index: usize, hash_of: impl Fn(usize) -> u64) {
        if (self.used + 1) * 2 > self.slots.len() {
            self.grow(hash_of);
        }
        self.place(hash, index);
        self.used += 1;
    }

    #[inline]
    fn place(&mut self, hash: u64, index: usize) {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while self.slots[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = index as u32 + 1;
    }

    #[cold]
    fn grow(&mut self, hash_of: impl Fn(usize) -> u64) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![0; (old.len() * 2).max(16)];
        for entry in old.into_iter().filter(|entry| *entry != 0) {
            self.place(hash_of(entry as usize - 1), entry as usize - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_hashes_are_told_apart_by_the_owner() {
        let list = ["a", "b", "c"];
        let mut table = IndexTable::default();
        for index in 0..list.len() {
            table.insert(7, index, |_| 7);
        }
        assert_eq!(table.find(7, |i| list[i] == "c"), Some(2));
        assert_eq!(table.find(7, |i| list[i] == "d"), None);
        table.reset(1);
        assert_eq!(table.find(7, |_| true), None);
    }

    #[test]
    fn one_large_use_does_not_make_all_later_ones_slow() {
        let mut table = IndexTable::default();
        for index in 0..10_000 {
            table.insert(index as u64, index, |i| i as u64);
        }
        for _ in 0..20 {
            table.reset(3);
        }
        assert_eq!(table.slots.len(), 16);
    }

    proptest! {
        #[test]
        fn tables_find_what_maps_find(
            uses in prop::collection::vec((prop::collection::vec("[a-c]{0,3}", 0..40), 0usize..40), 1..4),
            bits in 0u32..4,
        ) {
            // With few distinct hash bits, every probe meets other entries.
            let short = |key: &str| hash(key.as_bytes()) & ((1 << bits) - 1);
            let mut table = IndexTable::default();
            for (keys, expected) in uses {
                table.reset(expected);
                let mut known: Vec<&str> = Vec::new();
                for key in &keys {
                    let earlier = known.iter().position(|other| other == key);
                    prop_assert_eq!(table.find(short(key), |i| known[i] == key), earlier);
                    let list = known.clone();
                    let found =
                        table.find_or_insert(short(key), list.len(), |i| list[i] == key, |i| short(list[i]));
                    prop_assert_eq!(found, earlier);
                    if found.is_none() {
                        known.push(key);
                    }
                }
            }
        }
    }

    #[test]
    fn zero_padding_and_length_change_the_hash() {
        assert_ne!(hash(b"a"), hash(b"a\0"));
        assert_ne!(hash(b"12345678"), hash(b"123456780"));
        assert_ne!(hash(b""), hash(b"\0"));
    }
}
