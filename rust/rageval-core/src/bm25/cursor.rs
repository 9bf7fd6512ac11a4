//! A place in the list of a word, which moves on with the windows of a search.

use super::blocks::{BLOCK, Block, Postings};
use super::scoring::Weight;
use super::search::{Searcher, Sums, WINDOW};
use crate::error::Result;

/// A place in the list of a word.
pub(super) struct Cursor<'a> {
    list: Postings<'a>,
    pub(super) weight: Weight,
    /// The block, and whether `decoded` is it.
    block: usize,
    is_decoded: bool,
    decoded: Block,
    /// What the word contributes to the documents of the decoded block.
    contributions: [f32; BLOCK],
    /// The place in the decoded block.
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(list: Postings<'a>, weight: Weight) -> Self {
        Self {
            list,
            weight,
            block: 0,
            is_decoded: false,
            decoded: Block::default(),
            contributions: [0.0; BLOCK],
            at: 0,
        }
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
        Some(before.map_or(0, |last| last.saturating_add(1)))
    }

    /// Adds what the word contributes to the documents from `start` on to the sums of a window.
    #[inline(always)]
    pub(super) fn collect(
        &mut self,
        start: u32,
        window: &mut Sums,
        searcher: &Searcher,
    ) -> Result<()> {
        let end = start.saturating_add(WINDOW as u32);
        while self.next().is_some_and(|next| next < end) {
            if !self.is_decoded {
                let decoded = self.list.decode(self.block, &mut self.decoded);
                decoded.ok_or_else(|| searcher.view.damaged())?;
                searcher
                    .formula
                    .contribute(self.weight, &self.decoded, &mut self.contributions);
                self.is_decoded = true;
            }
            let docs = &self.decoded.docs[self.at..self.decoded.len];
            let count = match docs.last() {
                Some(last) if *last >= end => docs.partition_point(|doc| *doc < end),
                _ => docs.len(),
            };
            for (doc, contribution) in docs[..count].iter().zip(&self.contributions[self.at..]) {
                window.add(doc.wrapping_sub(start) as usize, *contribution);
            }
            self.at += count;
            if self.at < self.decoded.len {
                break;
            }
            self.block += 1;
            self.is_decoded = false;
            self.at = 0;
        }
        Ok(())
    }
}
