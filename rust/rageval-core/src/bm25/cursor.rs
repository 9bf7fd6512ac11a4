//! A place in the list of a word, which moves on with the windows of a search.

use super::blocks::{BLOCK, Block, Postings};
use super::scoring::Weight;
use super::search::Searcher;
use crate::error::Result;

/// Documents `start..start + size`.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) start: u32,
    pub(super) size: usize,
}

impl Window {
    pub(super) fn end(self) -> u32 {
        self.start.saturating_add(self.size as u32)
    }
}

/// A place in the list of a word.
pub(super) struct Cursor<'a> {
    pub(super) number: u32,
    pub(super) list: Postings<'a>,
    pub(super) weight: Weight,
    /// How often the query has the word.
    pub(super) times: f64,
    /// The block, and whether `decoded` is it.
    block: usize,
    is_decoded: bool,
    decoded: Block,
    /// The place in the decoded block.
    at: usize,
    /// Documents before this one are done.
    from: u32,
    /// What the word contributes at most to any document, if its list is one block.
    most: f32,
    /// What the word contributes at most in the current window, as often as the query has it.
    pub(super) bound: f64,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(number: u32, list: Postings<'a>, weight: Weight) -> Self {
        Self {
            number,
            list,
            weight,
            times: 0.0,
            block: 0,
            is_decoded: false,
            decoded: Block::default(),
            at: 0,
            from: 0,
            most: 0.0,
            bound: 0.0,
        }
    }

    /// Decodes a list of one block, which has no directory, and finds out what the word contributes at most.
    pub(super) fn open(&mut self, searcher: &Searcher) -> Result<()> {
        if self.list.blocks() > 1 {
            return Ok(());
        }
        self.load(searcher)?;
        let (docs, frequencies) = self.rest();
        let bounds = docs.iter().zip(frequencies).map(|(doc, frequency)| {
            searcher
                .formula
                .bound(self.weight, *frequency, searcher.length(*doc))
        });
        self.most = bounds.fold(0.0, f32::max);
        Ok(())
    }

    /// The next document, or one before it if its block was not decoded; `None` at the end.
    pub(super) fn next(&self) -> Option<u32> {
        if self.is_decoded {
            return self.decoded.docs[..self.decoded.len].get(self.at).copied();
        }
        if self.block >= self.list.blocks() {
            return None;
        }
        let before = self
            .block
            .checked_sub(1)
            .and_then(|block| self.list.last(block));
        Some(
            before
                .map_or(0, |last| last.saturating_add(1))
                .max(self.from),
        )
    }

    /// Finds out what the word contributes at most in a window.
    pub(super) fn bound(&mut self, window: Window, searcher: &Searcher) {
        let mut most = 0.0_f32;
        let mut first = self.next().unwrap_or(u32::MAX);
        let mut block = self.block;
        while first < window.end() && block < self.list.blocks() {
            let Some(last) = self.list.last(block) else {
                most = self.most;
                break;
            };
            if last >= window.start {
                for (frequency, length) in self.list.pairs(block) {
                    most = most.max(searcher.formula.bound(self.weight, frequency, length));
                }
            }
            first = last.saturating_add(1);
            block += 1;
        }
        self.bound = f64::from(most) * self.times;
    }

    /// Goes on to the first document from `start` on, without decoding a block.
    pub(super) fn skip(&mut self, start: u32) {
        self.from = self.from.max(start);
        let before = self.block;
        while self.block < self.list.blocks()
            && self.list.last(self.block).is_some_and(|last| last < start)
        {
            self.block += 1;
        }
        if self.block != before {
            self.is_decoded = false;
            self.at = 0;
        }
        if self.is_decoded && self.decoded.docs[self.at.min(BLOCK - 1)] < start {
            self.at += self.rest().0.partition_point(|doc| *doc < start);
            self.end_block();
        }
    }

    /// Decodes the current block; false if there is none, or all of its documents come later than the window.
    pub(super) fn decode(&mut self, end: u32, searcher: &Searcher) -> Result<bool> {
        if self.block >= self.list.blocks() || self.next().is_none_or(|next| next >= end) {
            return Ok(false);
        }
        if !self.is_decoded {
            self.load(searcher)?;
        }
        Ok(true)
    }

    fn load(&mut self, searcher: &Searcher) -> Result<()> {
        let decoded = self.list.decode(self.block, &mut self.decoded);
        decoded.ok_or_else(|| searcher.view.damaged())?;
        self.is_decoded = true;
        let docs = &self.decoded.docs[..self.decoded.len];
        self.at = docs.partition_point(|doc| *doc < self.from);
        Ok(())
    }

    /// The documents and frequencies of the decoded block that are left.
    #[inline]
    pub(super) fn rest(&self) -> (&[u32], &[u32]) {
        let range = self.at.min(self.decoded.len)..self.decoded.len;
        (
            &self.decoded.docs[range.clone()],
            &self.decoded.frequencies[range],
        )
    }

    /// Goes on by some documents. Whether that was the end of the block.
    pub(super) fn take(&mut self, count: usize) -> bool {
        self.at += count;
        self.end_block()
    }

    fn end_block(&mut self) -> bool {
        let is_end = self.at >= self.decoded.len;
        if is_end {
            self.block += 1;
            self.is_decoded = false;
            self.at = 0;
        }
        is_end
    }

    /// How often a document has the word; `None` if it does not. Documents must be asked about in order.
    pub(super) fn seek(&mut self, doc: u32, searcher: &Searcher) -> Result<Option<u32>> {
        self.skip(doc);
        if !self.decode(doc.saturating_add(1), searcher)? {
            return Ok(None);
        }
        self.at += self.rest().0.partition_point(|other| *other < doc);
        let (docs, frequencies) = self.rest();
        Ok(match (docs.first(), frequencies.first()) {
            (Some(first), Some(frequency)) if *first == doc => Some(*frequency),
            _ => None,
        })
    }
}
