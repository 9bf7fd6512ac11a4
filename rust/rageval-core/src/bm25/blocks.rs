//! Postings in blocks of 128: document numbers as differences, frequencies less 1, and lengths of documents, all packed
//! in bits. That lengths are here too saves a look at a distant place of memory for each posting.
//!
//! The numbers of a full block are dealt to four lanes of 32 numbers, whose words of 32 bits lie beside one another, so
//! that one instruction unpacks a number of each lane. Those of the last block of a list follow one another.
//!
//! A list of more than one block begins with a directory: for each block its last document, and where its data end.

use crate::error::{Error, Result};

pub(super) const BLOCK: usize = 128;
const LANES: usize = 4;
const RECORD: usize = 8;

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
        encode_block(docs, frequencies, lengths, before, out);
        before = last;
        if blocks > 1 {
            let end = u32::try_from(out.len() - start)
                .map_err(|_| Error::Memory("the postings of a word exceed 4 GiB".into()))?;
            let place = directory + number * RECORD;
            out[place..place + 4].copy_from_slice(&last.to_le_bytes());
            out[place + 4..place + RECORD].copy_from_slice(&end.to_le_bytes());
        }
    }
    Ok(())
}

fn encode_block(
    docs: &[u32],
    frequencies: &[u32],
    lengths: &[u32],
    mut before: u32,
    out: &mut Vec<u8>,
) {
    let mut streams = [[0; BLOCK]; 3];
    for (place, (&doc, &frequency)) in docs.iter().zip(frequencies).enumerate() {
        streams[0][place] = doc.wrapping_sub(before).wrapping_sub(1);
        streams[1][place] = frequency - 1;
        streams[2][place] = lengths.get(doc as usize).copied().unwrap_or(0);
        before = doc;
    }
    let widths = streams.map(|values| {
        32 - values
            .iter()
            .fold(0, |all, value| all | value)
            .leading_zeros()
    });
    out.extend(widths.map(|width| width as u8));
    for (values, width) in streams.iter().zip(widths) {
        if docs.len() < BLOCK {
            pack(values[..docs.len()].iter().copied(), width, out);
            continue;
        }
        let lanes: [Vec<u8>; LANES] = std::array::from_fn(|lane| {
            let mut packed = Vec::with_capacity(BLOCK);
            pack(
                values.iter().skip(lane).step_by(LANES).copied(),
                width,
                &mut packed,
            );
            packed
        });
        for word in 0..width as usize {
            for lane in &lanes {
                out.extend_from_slice(&lane[4 * word..4 * word + 4]);
            }
        }
    }
}

fn pack(values: impl Iterator<Item = u32>, width: u32, out: &mut Vec<u8>) {
    let (mut waiting, mut bits) = (0_u64, 0);
    for value in values {
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
    /// Frequencies less 1.
    pub(super) more: [u32; BLOCK],
    /// The lengths of the documents.
    pub(super) lengths: [u32; BLOCK],
    pub(super) len: usize,
    /// How many bits the largest number in `more` and in `lengths` takes at most.
    pub(super) widths: [u8; 2],
}

impl Default for Block {
    fn default() -> Self {
        Self {
            docs: [0; BLOCK],
            more: [0; BLOCK],
            lengths: [0; BLOCK],
            len: 0,
            widths: [0; 2],
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

    /// Decodes a block; `None` if it is damaged.
    #[inline(always)]
    pub(super) fn decode(&self, block: usize, into: &mut Block) -> Option<()> {
        let (mut start, mut next) = (0, 0);
        if block > 0 {
            start = read_u32(self.directory, (block - 1) * RECORD + 4)? as usize;
            next = u64::from(self.last(block - 1)?) + 1;
        }
        let len = (self.df as usize).checked_sub(block * BLOCK)?.min(BLOCK);
        let (&widths, mut data) = self.data.get(start..)?.split_first_chunk::<3>()?;
        let streams = [&mut into.docs, &mut into.more, &mut into.lengths];
        for (width, values) in widths.into_iter().zip(streams) {
            let (packed, rest) = data.split_at_checked((usize::from(width) * len).div_ceil(8))?;
            data = rest;
            match len {
                _ if width > 32 => return None,
                BLOCK => unpack_lanes(packed, width, values),
                _ => unpack(packed, width, &mut values[..len]),
            }
        }
        for doc in &mut into.docs[..len] {
            next += u64::from(*doc);
            *doc = next as u32;
            next += 1;
        }
        (into.len, into.widths) = (len, [widths[1], widths[2]]);
        let fits = self
            .last(block)
            .is_none_or(|last| u64::from(last) + 1 == next);
        (fits && next <= u64::from(u32::MAX)).then_some(())
    }
}

/// Unpacks the numbers of a full block.
#[inline(always)]
fn unpack_lanes(packed: &[u8], width: u8, values: &mut [u32; BLOCK]) {
    // One row of words more than there can be, as the last number looks at the next one.
    let mut rows = [[0_u32; LANES]; 33];
    for (row, bytes) in rows.iter_mut().zip(packed.as_chunks::<{ 4 * LANES }>().0) {
        for (word, bytes) in row.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
    }
    let width = usize::from(width);
    let mask = ((1_u64 << width) - 1) as u32;
    for (place, values) in values.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let (row, shift) = (place * width / 32, place * width % 32);
        let (this, next) = (rows[row], rows[row + 1]);
        for lane in 0..LANES {
            values[lane] = (this[lane] >> shift | next[lane] << (31 - shift) << 1) & mask;
        }
    }
}

/// Unpacks numbers that follow one another.
fn unpack(packed: &[u8], width: u8, values: &mut [u32]) {
    let mut padded = [0; 4 * BLOCK + 8];
    padded[..packed.len()].copy_from_slice(packed);
    let width = usize::from(width);
    for (place, value) in values.iter_mut().enumerate() {
        let bytes = padded[place * width / 8..].first_chunk();
        let word = bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        *value = (word >> (place * width % 8) & ((1 << width) - 1)) as u32;
    }
}
