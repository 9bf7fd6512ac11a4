//! A finished index, read in place.

use std::ops::Range;
use std::path::Path;

use super::blocks::Postings;
use super::file::{Layout, Section};
use crate::error::Result;

/// Where the parts of an index are in its bytes, which the caller keeps: a mapped file, or memory.
#[derive(Debug)]
pub struct Index {
    layout: Layout,
    documents: usize,
    words: usize,
    total: u64,
}

impl Index {
    /// Reads where everything is. `path` is for messages.
    ///
    /// # Errors
    /// The bytes are not a whole index of this version. That a page is damaged shows when it is first used.
    pub fn read(bytes: &[u8], path: &Path) -> Result<Self> {
        let layout = Layout::read(bytes, path)?;
        let [documents, words, total] = layout.numbers;
        Ok(Self {
            documents: u32::try_from(documents).map_err(|_| layout.damaged())? as usize,
            words: u32::try_from(words).map_err(|_| layout.damaged())? as usize,
            total,
            layout,
        })
    }

    /// The index together with its bytes, which must be those that it was read from.
    #[must_use]
    pub fn with<'a>(&'a self, bytes: &'a [u8]) -> View<'a> {
        View { index: self, bytes }
    }
}

/// An index and its bytes.
#[derive(Clone, Copy)]
pub struct View<'a> {
    index: &'a Index,
    bytes: &'a [u8],
}

impl<'a> View<'a> {
    /// How many documents there are.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.index.documents
    }

    /// How many words all documents have together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.index.total
    }

    /// What the builder's caller kept with the index.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn note(&self) -> Result<&'a [u8]> {
        self.index.layout.rest(self.bytes)
    }

    /// The ids of all documents.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn ids(&self) -> Result<Ids<'a>> {
        let ends = self
            .part(Section::IdEnds, 0, 8 * (self.index.documents + 1))?
            .as_chunks::<8>()
            .0;
        let end = ends.last().map_or(0, |end| u64::from_le_bytes(*end));
        let end = usize::try_from(end).map_err(|_| self.damaged())?;
        let text =
            std::str::from_utf8(self.part(Section::Ids, 0, end)?).map_err(|_| self.damaged())?;
        Ok(Ids { ends, text })
    }

    /// The place of each document among all ids in descending order, four bytes each.
    pub(super) fn ranks(&self) -> Result<&'a [[u8; 4]]> {
        Ok(self
            .part(Section::Ranks, 0, 4 * self.index.documents)?
            .as_chunks::<4>()
            .0)
    }

    /// The list of a word; `None` if no document has it.
    pub(super) fn find(&self, word: &[u8]) -> Result<Option<Postings<'a>>> {
        let (mut low, mut high) = (0, self.index.words);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.word(middle)?.cmp(word) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    return self.postings(self.read_u32(Section::Numbers, middle)?);
                }
            }
        }
        Ok(None)
    }

    /// The text of a word, which is given by its place among all words in the order of their bytes.
    fn word(&self, place: usize) -> Result<&'a [u8]> {
        let (start, end) = (
            self.read_u64(Section::WordEnds, place)?,
            self.read_u64(Section::WordEnds, place + 1)?,
        );
        self.part(Section::Words, start, end)
    }

    fn postings(&self, number: u32) -> Result<Option<Postings<'a>>> {
        let number = number as usize;
        let df = self.read_u32(Section::Frequencies, number)?;
        if df == 0 {
            return Ok(None); // a stop word
        }
        let (start, end) = (
            self.read_u64(Section::Starts, number)?,
            self.read_u64(Section::Starts, number + 1)?,
        );
        let list = Postings::new(self.part(Section::Postings, start, end)?, df);
        list.map(Some).ok_or_else(|| self.damaged())
    }

    pub(super) fn damaged(&self) -> crate::error::Error {
        self.index.layout.damaged()
    }

    fn part(&self, section: Section, start: usize, end: usize) -> Result<&'a [u8]> {
        if start > end {
            return Err(self.damaged());
        }
        self.index.layout.part(self.bytes, section, start..end)
    }

    fn read_u32(&self, section: Section, place: usize) -> Result<u32> {
        let bytes = self.part(section, 4 * place, 4 * place + 4)?;
        Ok(bytes.try_into().map_or(0, u32::from_le_bytes))
    }

    fn read_u64(&self, section: Section, place: usize) -> Result<usize> {
        let bytes = self.part(section, 8 * place, 8 * place + 8)?;
        let number = bytes.try_into().map_or(0, u64::from_le_bytes);
        usize::try_from(number).map_err(|_| self.damaged())
    }
}

/// The ids of documents.
#[derive(Clone, Copy)]
pub struct Ids<'a> {
    ends: &'a [[u8; 8]],
    text: &'a str,
}

impl<'a> Ids<'a> {
    /// The id of a document; empty if there is no such document.
    #[inline]
    #[must_use]
    pub fn get(&self, document: u32) -> &'a str {
        self.text.get(self.range(document)).unwrap_or("")
    }

    /// The ids of many documents. All places are looked up before the first text, so that memory is not waited for
    /// twice for each document.
    pub fn get_all(&self, documents: impl Iterator<Item = u32>) -> impl Iterator<Item = &'a str> {
        let ranges: Vec<Range<usize>> = documents.map(|document| self.range(document)).collect();
        let text = self.text;
        ranges
            .into_iter()
            .map(move |range| text.get(range).unwrap_or(""))
    }

    #[inline]
    fn range(&self, document: u32) -> Range<usize> {
        let end = |place: usize| {
            let end = self.ends.get(place);
            end.map_or(0, |end| u64::from_le_bytes(*end) as usize)
        };
        end(document as usize)..end((document as usize).saturating_add(1))
    }
}
