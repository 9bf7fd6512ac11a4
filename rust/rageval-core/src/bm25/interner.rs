//! Distinct texts, numbered in the order in which they come.

use crate::hash::{IndexTable, hash};

/// Numbers texts from 0. It holds fewer than 2^32 - 1.
#[derive(Clone, Debug)]
pub(super) struct Interner {
    bytes: Vec<u8>,
    /// Where each text ends; the first entry is the start of the first.
    ends: Vec<usize>,
    table: IndexTable,
}

impl Default for Interner {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            ends: vec![0],
            table: IndexTable::default(),
        }
    }
}

impl Interner {
    pub(super) fn len(&self) -> usize {
        self.ends.len() - 1
    }

    pub(super) fn get(&self, number: usize) -> &[u8] {
        &self.bytes[self.ends[number]..self.ends[number + 1]]
    }

    /// The number of a text, and whether it is new.
    pub(super) fn add(&mut self, text: &[u8]) -> (u32, bool) {
        let Self { bytes, ends, table } = self;
        let of = |number: usize| &bytes[ends[number]..ends[number + 1]];
        let next = ends.len() - 1;
        let found = table.find_or_insert(hash(text), next, |n| of(n) == text, |n| hash(of(n)));
        match found {
            Some(number) => (number as u32, false),
            None => {
                bytes.extend_from_slice(text);
                ends.push(bytes.len());
                (next as u32, true)
            }
        }
    }
}
