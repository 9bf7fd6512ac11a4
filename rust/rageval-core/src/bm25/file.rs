//! The index as a file: sections one after another, the checksums of its pages, and a footer that says where what is.
//!
//! All numbers are little-endian. The footer is the last thing that is written, so a file that was cut has none.

use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::hash::hash;

/// Raise the last byte when the format changes.
const MAGIC: [u8; 8] = *b"rageBM\0\x02";
const PAGE: usize = 1 << 16;
/// What the footer holds: numbers, then the ends of the sections, then checksums.
const NUMBERS: usize = 3;
const SECTIONS: usize = 9;
const FOOTER: usize = 8 * (NUMBERS + SECTIONS + 4);

/// The parts of the file, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// The lists of the words, as in `blocks`.
    Postings,
    /// u64 for each word and one more: where its list starts.
    Starts,
    /// u32 for each word: how many documents have it.
    Frequencies,
    /// u64 for each word and one more, in the order of their bytes: where its text starts.
    WordEnds,
    /// The texts of the words, in the order of their bytes.
    Words,
    /// u32 for each word, in the order of their bytes: its number.
    Numbers,
    /// u32 for each document: its place among all ids in descending order.
    Ranks,
    /// u64 for each document and one more: where its id starts.
    IdEnds,
    /// The ids, and behind them what the caller keeps with the index.
    Ids,
}

/// Writes sections and adds up checksums.
pub(super) struct Writer<'a> {
    target: &'a mut dyn Write,
    path: &'a Path,
    page: Vec<u8>,
    hashes: Vec<u64>,
    written: u64,
    ends: Vec<u64>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(target: &'a mut dyn Write, path: &'a Path) -> Self {
        Self {
            target,
            path,
            page: Vec::with_capacity(PAGE),
            hashes: Vec::new(),
            written: 0,
            ends: Vec::new(),
        }
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.written += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PAGE - self.page.len()));
            self.page.extend_from_slice(now);
            bytes = later;
            if self.page.len() == PAGE {
                self.end_page()?;
            }
        }
        Ok(())
    }

    pub(super) fn write_u32s(&mut self, numbers: impl Iterator<Item = u32>) -> Result<()> {
        numbers
            .into_iter()
            .try_for_each(|number| self.write(&number.to_le_bytes()))
    }

    pub(super) fn write_u64s(&mut self, numbers: impl Iterator<Item = u64>) -> Result<()> {
        numbers
            .into_iter()
            .try_for_each(|number| self.write(&number.to_le_bytes()))
    }

    /// Ends a section; they come in the order of `Section`.
    pub(super) fn end_section(&mut self) {
        self.ends.push(self.written);
    }

    pub(super) fn finish(mut self, numbers: [u64; NUMBERS]) -> Result<()> {
        if !self.page.is_empty() {
            self.end_page()?;
        }
        let hashes: Vec<u8> = self
            .hashes
            .iter()
            .flat_map(|hash| hash.to_le_bytes())
            .collect();
        let mut footer = Vec::with_capacity(FOOTER);
        let known = numbers.into_iter().chain(self.ends.iter().copied());
        for number in known.chain([self.written, hash(&hashes)]) {
            footer.extend_from_slice(&number.to_le_bytes());
        }
        footer.extend_from_slice(&hash(&footer).to_le_bytes());
        footer.extend_from_slice(&MAGIC);
        self.put(&hashes)?;
        self.put(&footer)?;
        self.target
            .flush()
            .map_err(|error| failed(self.path, error))
    }

    fn end_page(&mut self) -> Result<()> {
        self.hashes.push(hash(&self.page));
        let page = std::mem::take(&mut self.page);
        self.put(&page)?;
        self.page = page;
        self.page.clear();
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.target
            .write_all(bytes)
            .map_err(|error| failed(self.path, error))
    }
}

pub(super) fn failed(path: &Path, source: io::Error) -> Error {
    Error::Io {
        path: path.to_owned(),
        source,
    }
}

/// Where the sections of a file are, and which of its pages were checked.
#[derive(Debug)]
pub(super) struct Layout {
    path: PathBuf,
    pub(super) numbers: [u64; NUMBERS],
    ends: [usize; SECTIONS],
    checked: Vec<AtomicBool>,
}

impl Layout {
    /// Reads the footer of a file, whose bytes are given.
    pub(super) fn read(bytes: &[u8], path: &Path) -> Result<Self> {
        let damaged = || damaged(path);
        let (rest, footer) = bytes
            .split_at_checked(bytes.len().wrapping_sub(FOOTER))
            .ok_or_else(damaged)?;
        let (signed, end) = footer.split_at(FOOTER - 16);
        let numbers: Vec<u64> = footer
            .chunks_exact(8)
            .map(|word| word.try_into().map_or(0, u64::from_le_bytes))
            .collect();
        let [.., content, hashed, sealed, _] = numbers[..] else {
            return Err(damaged());
        };
        if end[8..] != MAGIC || hash(signed) != sealed {
            return Err(damaged());
        }
        let content = usize::try_from(content).map_err(|_| damaged())?;
        let pages = content.div_ceil(PAGE);
        let hashes = rest.get(content..).ok_or_else(damaged)?;
        if hashes.len() != 8 * pages || hash(hashes) != hashed {
            return Err(damaged());
        }
        let mut ends = [0; SECTIONS];
        for (end, number) in ends.iter_mut().zip(&numbers[NUMBERS..]) {
            *end = usize::try_from(*number).map_err(|_| damaged())?;
        }
        if !ends.is_sorted() || ends[SECTIONS - 1] > content {
            return Err(damaged());
        }
        Ok(Self {
            path: path.to_owned(),
            numbers: [numbers[0], numbers[1], numbers[2]],
            ends,
            checked: (0..pages).map(|_| AtomicBool::new(false)).collect(),
        })
    }

    /// The bytes of a section from one place to another, after a check of their pages.
    pub(super) fn part<'a>(
        &self,
        bytes: &'a [u8],
        section: Section,
        range: Range<usize>,
    ) -> Result<&'a [u8]> {
        let place = section as usize;
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        let end = self.ends[place];
        let range = start.saturating_add(range.start)..start.saturating_add(range.end);
        if range.end > end {
            return Err(self.damaged());
        }
        let part = bytes.get(range.clone()).ok_or_else(|| self.damaged())?;
        self.check(bytes, range)?;
        Ok(part)
    }

    /// What follows the last section: what the caller keeps with the index.
    pub(super) fn rest<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let start = self.ends[SECTIONS - 1];
        let end = bytes.len().saturating_sub(FOOTER + 8 * self.checked.len());
        let rest = bytes.get(start..end).ok_or_else(|| self.damaged())?;
        self.check(bytes, start..end)?;
        Ok(rest)
    }

    pub(super) fn damaged(&self) -> Error {
        damaged(&self.path)
    }

    fn check(&self, bytes: &[u8], range: Range<usize>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let content = bytes.len().saturating_sub(FOOTER + 8 * self.checked.len());
        for page in range.start / PAGE..range.end.div_ceil(PAGE) {
            let checked = self.checked.get(page).ok_or_else(|| self.damaged())?;
            if checked.load(Ordering::Relaxed) {
                continue;
            }
            let found = bytes.get(page * PAGE..content.min((page + 1) * PAGE));
            let expected = bytes.get(content + 8 * page..content + 8 * page + 8);
            let expected = expected
                .and_then(|word| word.try_into().ok())
                .map(u64::from_le_bytes);
            if found.map(hash) != expected || expected.is_none() {
                return Err(self.damaged());
            }
            checked.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn damaged(path: &Path) -> Error {
    Error::Malformed {
        path: path.to_owned(),
        line: 0,
        message: "this is not a whole BM25 index of this version".into(),
    }
}
