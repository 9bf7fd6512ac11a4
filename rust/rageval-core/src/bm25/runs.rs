//! Runs: the postings of successive documents, sorted by word, in a file or in memory.
//!
//! For each word that occurs: how far its number is from that of the word before, how many documents have it, and how
//! many bytes follow; then, for each document, how far its number is from that of the document before, doubled, and one
//! more if the word occurs several times, and then how often. All numbers have seven bits in a byte.

use std::io::{self, BufRead};
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use crate::threads;

fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn cut_short() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "a temporary file is cut short",
    )
}

/// The next number of `bytes`, which are shortened by it.
#[inline]
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}

/// Words of documents as numbers below `words`, as a run in parts: the words of document `first + n` are the next
/// `lengths[n]` tokens. Each part is for a range of words, so that threads can make them.
pub(super) fn sort_run(
    tokens: &[u32],
    lengths: &[u32],
    first: u32,
    words: usize,
    threads: NonZeroUsize,
) -> Vec<Vec<u8>> {
    let mut counts = vec![0_u32; words];
    for &token in tokens {
        counts[token as usize] += 1;
    }
    let parts = if tokens.len() < 1 << 16 {
        1
    } else {
        threads.get()
    };
    let mut docs = vec![0_u32; tokens.len()];
    let mut tasks = Vec::with_capacity(parts);
    let (mut rest, mut start) = (&mut docs[..], 0);
    for part in 0..parts {
        let mut size = 0;
        let wanted = rest.len().div_ceil(parts - part);
        let mut end = start;
        while end < words && (size < wanted || part + 1 == parts) {
            size += counts[end] as usize;
            end += 1;
        }
        let (now, later) = rest.split_at_mut(size);
        tasks.push(Mutex::new((start..end, now)));
        (rest, start) = (later, end);
    }
    threads::map(tasks.len(), threads, |number| {
        let mut task = tasks[number].lock().unwrap_or_else(PoisonError::into_inner);
        let (range, docs) = &mut *task;
        let counts = &counts[range.clone()];
        scatter(tokens, lengths, first, range.start as u32, counts, docs);
        encode_part(counts, range.start, docs)
    })
}

/// Puts the documents of each word beside one another, in order.
fn scatter(
    tokens: &[u32],
    lengths: &[u32],
    first: u32,
    start: u32,
    counts: &[u32],
    docs: &mut [u32],
) {
    let mut next: Vec<usize> = Vec::with_capacity(counts.len());
    let mut sum = 0;
    for &count in counts {
        next.push(sum);
        sum += count as usize;
    }
    let mut rest = tokens;
    for (doc, &length) in (first..).zip(lengths) {
        let (now, later) = rest.split_at((length as usize).min(rest.len()));
        for &token in now {
            if let Some(place) = next.get_mut(token.wrapping_sub(start) as usize) {
                docs[*place] = doc;
                *place += 1;
            }
        }
        rest = later;
    }
}

fn encode_part(counts: &[u32], start: usize, docs: &[u32]) -> Vec<u8> {
    let (mut out, mut list) = (Vec::with_capacity(docs.len() * 2), Vec::new());
    let (mut rest, mut before) = (docs, None);
    for (word, &count) in (start..).zip(counts).filter(|(_, count)| **count > 0) {
        let (docs, later) = rest.split_at(count as usize);
        rest = later;
        list.clear();
        let (mut df, mut last) = (0, 0);
        for same in docs.chunk_by(|a, b| a == b) {
            let (doc, more) = (same[0], same.len() > 1);
            write_number(u64::from(doc - last) << 1 | u64::from(more), &mut list);
            if more {
                write_number(same.len() as u64, &mut list);
            }
            last = doc;
            df += 1;
        }
        // The first word of a part is told apart from that of the part before by its own number.
        write_number(before.map_or(0, |before| (word - before) as u64), &mut out);
        if before.is_none() {
            write_number(word as u64, &mut out);
        }
        write_number(df, &mut out);
        write_number(list.len() as u64, &mut out);
        out.extend_from_slice(&list);
        before = Some(word);
    }
    out
}

/// Reads a run from its start.
pub(super) struct RunReader<'a> {
    source: Box<dyn BufRead + Send + 'a>,
    /// The word whose list comes next, and the documents that have it; `None` at the end.
    pub(super) next: Option<(usize, usize)>,
    size: usize,
    list: Vec<u8>,
}

impl<'a> RunReader<'a> {
    pub(super) fn new(source: Box<dyn BufRead + Send + 'a>) -> io::Result<Self> {
        let mut reader = Self {
            source,
            next: None,
            size: 0,
            list: Vec::new(),
        };
        reader.advance()?;
        Ok(reader)
    }

    /// Appends the list that comes next, and goes on to the one after it.
    pub(super) fn take(
        &mut self,
        docs: &mut Vec<u32>,
        frequencies: &mut Vec<u32>,
    ) -> io::Result<()> {
        self.list.resize(self.size, 0);
        self.source.read_exact(&mut self.list)?;
        let (mut rest, mut doc) = (&self.list[..], 0);
        while !rest.is_empty() {
            let step = take_number(&mut rest).ok_or_else(cut_short)?;
            doc += (step >> 1) as u32;
            docs.push(doc);
            let frequency = if step & 1 == 1 {
                take_number(&mut rest).ok_or_else(cut_short)?
            } else {
                1
            };
            frequencies.push(frequency as u32);
        }
        self.advance()
    }

    fn advance(&mut self) -> io::Result<()> {
        if self.source.fill_buf()?.is_empty() {
            self.next = None;
            return Ok(());
        }
        let step = self.read_number()?;
        let before = self.next.map_or(0, |(word, _)| word);
        let word = if step == 0 {
            self.read_number()?
        } else {
            before + step
        };
        self.next = Some((word, self.read_number()?));
        self.size = self.read_number()?;
        Ok(())
    }

    fn read_number(&mut self) -> io::Result<usize> {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let mut byte = [0];
            self.source.read_exact(&mut byte)?;
            number |= u64::from(byte[0] & 0x7F)
                .checked_shl(shift)
                .ok_or_else(cut_short)?;
            if byte[0] < 0x80 {
                return usize::try_from(number).map_err(|_| cut_short());
            }
            shift += 7;
        }
    }
}
