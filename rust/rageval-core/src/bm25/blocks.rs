//! Postings in blocks of 128: document numbers as differences, frequencies less 1, both packed in bits.
//!
//! A list of more than one block begins with a directory: for each block its last document, where its data end, and
//! three pairs of a frequency and a length. No document of the block exceeds all pairs: each has a pair with at least
//! its frequency and at most its length.

use std::cmp::Reverse;

use crate::error::{Error, Result};

pub(super) const BLOCK: usize = 128;
const PAIRS: usize = 3;
const RECORD: usize = 8 + 4 * PAIRS;
const MOST_FREQUENCY: u32 = 0xFF;
const MOST_LENGTH: u32 = 0xFF_FFFF;

/// Appends the list of a word to `out`. `lengths` are those of all documents.
pub(super) fn encode(
    docs: &[u32],
    frequencies: &[u32],
    lengths: &[u32],
    out: &mut Vec<u8>,
) -> Result<()> {
    let blocks = docs.len().div_ceil(BLOCK);
    let directory = out.len();
    let start = directory + if blocks > 1 { blocks * RECORD } else { 0 };
    out.resize(start, 0);
    let mut before = u32::MAX;
    let parts = docs.chunks(BLOCK).zip(frequencies.chunks(BLOCK));
    for (number, (docs, frequencies)) in parts.enumerate() {
        let last = docs.last().copied().unwrap_or(0);
        encode_block(docs, frequencies, before, out);
        before = last;
        if blocks > 1 {
            let end = u32::try_from(out.len() - start)
                .map_err(|_| Error::Memory("the postings of a word exceed 4 GiB".into()))?;
            let mut record = Vec::with_capacity(RECORD);
            record.extend_from_slice(&last.to_le_bytes());
            record.extend_from_slice(&end.to_le_bytes());
            for pair in choose_pairs(docs, frequencies, lengths) {
                record.extend_from_slice(&pair.to_le_bytes());
            }
            let place = directory + number * RECORD;
            out[place..place + RECORD].copy_from_slice(&record);
        }
    }
    Ok(())
}

fn encode_block(docs: &[u32], frequencies: &[u32], mut before: u32, out: &mut Vec<u8>) {
    let (mut gaps, mut more) = ([0; BLOCK], [0; BLOCK]);
    for (place, (&doc, &frequency)) in docs.iter().zip(frequencies).enumerate() {
        gaps[place] = doc.wrapping_sub(before).wrapping_sub(1);
        more[place] = frequency - 1;
        before = doc;
    }
    let width = |values: &[u32]| {
        32 - values
            .iter()
            .fold(0, |all, value| all | value)
            .leading_zeros()
    };
    let widths = [width(&gaps), width(&more)];
    out.extend(widths.map(|width| width as u8));
    pack(&gaps[..docs.len()], widths[0], out);
    pack(&more[..docs.len()], widths[1], out);
}

fn pack(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let (mut waiting, mut bits) = (0_u64, 0);
    for &value in values {
        waiting |= u64::from(value) << bits;
        bits += width;
        while bits >= 8 {
            out.push(waiting as u8);
            waiting >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out.push(waiting as u8);
    }
}

/// The pairs of a frequency (rounded up) and a length (rounded down) that no other exceeds, at most three: of more, the
/// least frequent ones become one that covers them.
fn choose_pairs(docs: &[u32], frequencies: &[u32], lengths: &[u32]) -> [u32; PAIRS] {
    let mut all = [(0, 0); BLOCK];
    let some = &mut all[..docs.len().min(BLOCK)];
    for ((pair, &doc), &frequency) in some.iter_mut().zip(docs).zip(frequencies) {
        let length = lengths.get(doc as usize).copied().unwrap_or(0);
        *pair = (frequency.min(MOST_FREQUENCY), length.min(MOST_LENGTH));
    }
    some.sort_unstable_by_key(|&(frequency, length)| (Reverse(frequency), length));
    let mut shortest = u32::MAX;
    let kept = some.iter().filter(|&&(_, length)| {
        let is_shorter = length < shortest;
        shortest = shortest.min(length);
        is_shorter
    });
    let mut pairs = [0; PAIRS];
    for (place, &(frequency, length)) in kept.enumerate() {
        let at = place.min(PAIRS - 1);
        // The frequency of the first that falls into a place is the largest, the length of the last the smallest.
        let frequency = if place >= PAIRS {
            pairs[at] >> 24
        } else {
            frequency
        };
        pairs[at] = frequency << 24 | length;
    }
    pairs
}

/// The list of a word, read in place.
#[derive(Clone, Copy)]
pub(super) struct Postings<'a> {
    directory: &'a [u8],
    data: &'a [u8],
    pub(super) df: u32,
}

/// A decoded block.
#[derive(Clone)]
pub(super) struct Block {
    pub(super) docs: [u32; BLOCK],
    pub(super) frequencies: [u32; BLOCK],
    pub(super) len: usize,
}

impl Default for Block {
    fn default() -> Self {
        Self {
            docs: [0; BLOCK],
            frequencies: [0; BLOCK],
            len: 0,
        }
    }
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}

impl<'a> Postings<'a> {
    pub(super) fn new(bytes: &'a [u8], df: u32) -> Option<Self> {
        let blocks = (df as usize).div_ceil(BLOCK);
        let (directory, data) =
            bytes.split_at_checked(if blocks > 1 { blocks * RECORD } else { 0 })?;
        Some(Self {
            directory,
            data,
            df,
        })
    }

    pub(super) fn blocks(&self) -> usize {
        (self.df as usize).div_ceil(BLOCK)
    }

    /// The last document of a block; `None` if there is no directory, or no such block.
    #[inline]
    pub(super) fn last(&self, block: usize) -> Option<u32> {
        read_u32(self.directory, block * RECORD)
    }

    /// Pairs of a frequency and a length that bound a block. `u32::MAX` is a frequency that did not fit.
    #[inline]
    pub(super) fn pairs(&self, block: usize) -> impl Iterator<Item = (u32, u32)> + use<'_> {
        let start = block * RECORD + 8;
        (0..PAIRS)
            .filter_map(move |place| read_u32(self.directory, start + 4 * place))
            .filter(|&pair| pair != 0)
            .map(|pair| match pair >> 24 {
                MOST_FREQUENCY => (u32::MAX, pair & MOST_LENGTH),
                frequency => (frequency, pair & MOST_LENGTH),
            })
    }

    /// Decodes a block; `None` if it is damaged.
    pub(super) fn decode(&self, block: usize, into: &mut Block) -> Option<()> {
        let (mut start, mut before) = (0, u32::MAX);
        if block > 0 {
            start = read_u32(self.directory, (block - 1) * RECORD + 4)? as usize;
            before = self.last(block - 1)?;
        }
        let len = (self.df as usize).checked_sub(block * BLOCK)?.min(BLOCK);
        let data = self.data.get(start..)?;
        let (&[gap_width, more_width], data) = data.split_first_chunk::<2>()?;
        let size = |width: u8| (usize::from(width) * len).div_ceil(8);
        let (gaps, data) = data.split_at_checked(size(gap_width))?;
        unpack(gaps, gap_width, &mut into.docs)?;
        unpack(
            data.get(..size(more_width))?,
            more_width,
            &mut into.frequencies,
        )?;
        for (doc, frequency) in into.docs.iter_mut().zip(&mut into.frequencies) {
            before = before.wrapping_add(*doc).wrapping_add(1);
            *doc = before;
            *frequency = frequency.wrapping_add(1);
        }
        into.len = len;
        Some(())
    }
}

const PADDED: usize = 4 * BLOCK + 8;

/// Unpacks 128 numbers; those behind the end of `bytes` are 0. `None` if numbers are wider than 32 bits.
fn unpack(bytes: &[u8], width: u8, out: &mut [u32; BLOCK]) -> Option<()> {
    let mut padded = [0; PADDED];
    padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
    macro_rules! widths {
        ($($width:literal)*) => {
            match width {
                0 => out.fill(0),
                $($width => unpack_width::<$width>(&padded, out),)*
                _ => return None,
            }
        };
    }
    widths!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
    Some(())
}

#[inline]
fn unpack_width<const WIDTH: usize>(padded: &[u8; PADDED], out: &mut [u32; BLOCK]) {
    let mask = (1_u64 << WIDTH) - 1;
    for (group, values) in out.chunks_exact_mut(8).enumerate() {
        let bytes = &padded[group * WIDTH..group * WIDTH + WIDTH + 8];
        for (place, value) in values.iter_mut().enumerate() {
            let bit = place * WIDTH;
            let word = bytes[bit / 8..bit / 8 + 8]
                .try_into()
                .map_or(0, u64::from_le_bytes);
            *value = (word >> (bit % 8) & mask) as u32;
        }
    }
}
