//! The best documents for a query, in windows of documents.
//!
//! What the words of a query contribute is added up window by window, in the order of the query, so the sums are exact.
//! Only documents that reach a limit are kept: scores are counted by their leading bits, and the limit is the lowest one
//! that so far enough documents have. Documents whose scores are equal to the last of the best are kept until the end,
//! where the ids decide. At a thousand hits of a million documents, skipping blocks by bounds costs more than it saves.

use std::num::NonZeroUsize;

use pulp::{Arch, Simd, WithSimd};

use super::cursor::Cursor;
use super::index::View;
use super::scoring::{Formula, Settings, sum_pairwise};
use crate::error::{Error, Result};
use crate::threads;

/// A document that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its number, in the order in which documents were added.
    pub document: u32,
    /// The smaller, the better: the inverted bits of the score, which is above 0, and the place of the id.
    key: u64,
}

impl Hit {
    #[inline]
    fn new(document: u32, score: f32, rank: u32) -> Self {
        let key = u64::from(!score.to_bits()) << 32 | u64::from(rank);
        Self { document, key }
    }

    /// Its score, above 0.
    #[must_use]
    pub fn score(&self) -> f32 {
        f32::from_bits(!((self.key >> 32) as u32))
    }
}

/// A formula for the documents of an index.
pub struct Searcher<'a> {
    pub(super) view: View<'a>,
    pub(super) formula: Formula,
    ranks: &'a [[u8; 4]],
}

/// Documents of a window, whose sums fit into the nearest cache.
pub(super) const WINDOW: usize = 1 << 12;
/// A window is looked at as a whole if it has at least this many documents.
const MANY: usize = WINDOW / 32;
/// Sums that are looked at together, and those of them whose flags are one number.
const PART: usize = 64;
const GROUP: usize = 8;
/// Scores whose bits are the same but for this many are counted together.
const ALIKE: u32 = 15;

impl<'a> Searcher<'a> {
    /// # Errors
    /// The index is damaged, or a parameter is not a finite number.
    pub fn new(view: View<'a>, settings: Settings) -> Result<Self> {
        let Settings { k1, b, delta, .. } = settings;
        if !(k1.is_finite()
            && k1 > 0.0
            && (0.0..=1.0).contains(&b)
            && delta.is_finite()
            && delta >= 0.0)
        {
            return Err(Error::Value(format!(
                "k1 must be above 0, b between 0 and 1, delta at least 0, and all finite, not {k1}, {b} and {delta}"
            )));
        }
        Ok(Self {
            formula: Formula::new(settings, view.documents() as u64, view.total()),
            ranks: view.ranks()?,
            view,
        })
    }

    /// The best `depth` documents for each query, best first. A query is its words; those that no document has do not
    /// count, and one that is there twice counts twice.
    ///
    /// # Errors
    /// The index is damaged.
    pub fn search<W: AsRef<[u8]> + Sync>(
        &self,
        queries: &[Vec<W>],
        depth: usize,
        threads: Option<NonZeroUsize>,
    ) -> Result<Vec<Vec<Hit>>> {
        threads::try_map(
            queries.len(),
            threads::resolve(threads),
            |number, buffers: &mut Buffers| self.search_one(&queries[number], depth, buffers),
        )
    }

    fn search_one<W: AsRef<[u8]>>(
        &self,
        words: &[W],
        depth: usize,
        buffers: &mut Buffers,
    ) -> Result<Vec<Hit>> {
        let mut cursors = Vec::with_capacity(words.len());
        for word in words {
            if let Some(list) = self.view.find(word.as_ref())? {
                cursors.push(Cursor::new(list, self.formula.weight(list.df)));
            }
        }
        let absent: Vec<f32> = cursors.iter().map(|cursor| cursor.weight.absent).collect();
        let absent = sum_pairwise(&absent);
        if depth == 0 {
            return Ok(Vec::new());
        }
        let mut best = Best::new(depth, absent, &mut buffers.counts, &mut buffers.found);
        Arch::new().dispatch(Walk {
            searcher: self,
            cursors: &mut cursors,
            window: &mut buffers.window,
            best: &mut best,
        })?;
        Ok(best.finish(self.ranks))
    }
}

/// What a thread uses again for each query.
#[derive(Default)]
struct Buffers {
    window: Sums,
    counts: Counts,
    found: Vec<u64>,
}

/// How many documents have scores that are alike, by their bits.
struct Counts(Vec<u32>);

impl Default for Counts {
    fn default() -> Self {
        Self(vec![0; 1 << (32 - ALIKE)])
    }
}

/// What the words of a query contribute to the documents of a window.
pub(super) struct Sums {
    sums: Box<[f32; WINDOW]>,
    /// The places of the documents that have any, if they are fewer than `WINDOW`.
    places: Box<[u16; WINDOW]>,
    len: usize,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            sums: Box::new([0.0; WINDOW]),
            places: Box::new([0; WINDOW]),
            len: 0,
        }
    }
}

impl Sums {
    #[inline(always)]
    pub(super) fn add(&mut self, place: usize, contribution: f32) {
        let sum = &mut self.sums[place % WINDOW];
        self.places[self.len % WINDOW] = place as u16;
        self.len += usize::from(*sum == 0.0);
        *sum += contribution;
    }
}

/// The way through all windows that have a document of a word.
struct Walk<'w, 'a, 'b> {
    searcher: &'w Searcher<'a>,
    cursors: &'w mut [Cursor<'a>],
    window: &'w mut Sums,
    best: &'w mut Best<'b>,
}

impl WithSimd for Walk<'_, '_, '_> {
    type Output = Result<()>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Result<()> {
        let view = &self.searcher.view;
        while let Some(next) = self.cursors.iter().filter_map(Cursor::next).min() {
            if next as usize >= view.documents() {
                return Err(view.damaged());
            }
            let start = next - next % WINDOW as u32;
            for cursor in self.cursors.iter_mut() {
                cursor.collect(start, self.window, self.searcher)?;
            }
            harvest(simd, start, self.window, self.best);
        }
        Ok(())
    }
}

/// Takes the documents of a window that could be among the best, and empties the window.
#[inline(always)]
fn harvest<S: Simd>(simd: S, start: u32, window: &mut Sums, best: &mut Best) {
    let Sums { sums, places, len } = window;
    let (before, len) = (best.len, std::mem::take(len));
    best.found.resize(best.found.len().max(before + WINDOW), 0);
    if len < MANY {
        for place in &places[..len] {
            let sum = std::mem::take(&mut sums[usize::from(*place) % WINDOW]);
            best.push(start.wrapping_add(u32::from(*place)), sum);
        }
    } else {
        for (number, part) in sums.as_chunks_mut::<PART>().0.iter_mut().enumerate() {
            if best.admits(most(simd, part)) {
                let first = start.wrapping_add((number * PART) as u32);
                let admitted = part.map(|sum| u8::from(best.admits(sum)));
                for (number, group) in admitted.as_chunks::<GROUP>().0.iter().enumerate() {
                    let mut left = u64::from_le_bytes(*group);
                    while left != 0 {
                        let place = number * GROUP + left.trailing_zeros() as usize / 8;
                        left &= left - 1;
                        best.push(first.wrapping_add(place as u32), part[place % PART]);
                    }
                }
            }
            *part = [0.0; PART];
        }
    }
    best.count(before);
}

/// The largest of some sums.
#[inline(always)]
fn most<S: Simd>(simd: S, sums: &[f32]) -> f32 {
    let (vectors, rest) = S::as_simd_f32s(sums);
    let most = vectors.iter().fold(simd.splat_f32s(0.0), |most, sums| {
        simd.max_f32s(*sums, most)
    });
    rest.iter()
        .fold(simd.reduce_max_f32s(most), |most, sum| most.max(*sum))
}

/// The best documents so far.
struct Best<'b> {
    depth: usize,
    /// What all documents get for the words that they lack, before any contribution.
    absent: f32,
    /// Documents with the bits of their scores before them: all that can be among the best, and some others.
    found: &'b mut Vec<u64>,
    /// How many of `found` are used, and may be before those that cannot be among the best are dropped.
    len: usize,
    room: usize,
    /// How many documents have scores that are alike; the lowest and the highest that were counted.
    counts: &'b mut [u32],
    lowest: usize,
    highest: usize,
    /// How many documents were counted from the lowest on.
    counted: usize,
    /// The score that a document needs.
    limit: f32,
}

impl<'b> Best<'b> {
    fn new(depth: usize, absent: f32, counts: &'b mut Counts, found: &'b mut Vec<u64>) -> Self {
        Self {
            depth,
            absent,
            found,
            len: 0,
            room: depth.saturating_mul(4),
            counts: &mut counts.0,
            lowest: usize::MAX,
            highest: 0,
            counted: 0,
            limit: 0.0,
        }
    }

    /// Whether a document whose contributions add up to `sum` could be among the best.
    #[inline(always)]
    fn admits(&self, sum: f32) -> bool {
        (sum > 0.0) & (sum + self.absent >= self.limit)
    }

    /// Takes a document if it could be among the best, without a branch.
    #[inline(always)]
    fn push(&mut self, document: u32, sum: f32) {
        if let Some(found) = self.found.get_mut(self.len) {
            let score = sum + self.absent;
            *found = u64::from(score.to_bits()) << 32 | u64::from(document);
            self.len += usize::from(self.admits(sum));
        }
    }

    /// Counts the documents that were found since there were `before`, and raises the limit.
    fn count(&mut self, before: usize) {
        for found in &self.found[before..self.len] {
            let alike = (found >> (32 + ALIKE)) as usize;
            self.counts[alike] += 1;
            self.lowest = self.lowest.min(alike);
            self.highest = self.highest.max(alike);
        }
        self.counted += self.len - before;
        while self.lowest < self.highest
            && self.counted - self.counts[self.lowest] as usize >= self.depth
        {
            self.counted -= std::mem::take(&mut self.counts[self.lowest]) as usize;
            self.lowest += 1;
        }
        if self.counted >= self.depth {
            self.limit = f32::from_bits((self.lowest as u32) << ALIKE);
        }
        if self.len > self.room {
            self.drop_others();
            self.room = self.room.max(2 * self.len);
        }
    }

    fn drop_others(&mut self) {
        let limit = u64::from(self.limit.to_bits()) << 32;
        let mut kept = 0;
        for place in 0..self.len {
            let found = self.found[place];
            self.found[kept] = found;
            kept += usize::from(found >= limit);
        }
        self.len = kept;
    }

    fn finish(mut self, ranks: &[[u8; 4]]) -> Vec<Hit> {
        self.drop_others();
        if self.lowest <= self.highest {
            self.counts[self.lowest..=self.highest].fill(0);
        }
        let hit = |found: &u64| {
            let rank = ranks.get(*found as u32 as usize).copied();
            Hit::new(
                *found as u32,
                f32::from_bits((found >> 32) as u32),
                rank.map_or(0, u32::from_le_bytes),
            )
        };
        let mut hits: Vec<Hit> = self.found[..self.len].iter().map(hit).collect();
        if hits.len() > self.depth {
            hits.select_nth_unstable_by_key(self.depth - 1, |hit| hit.key);
            hits.truncate(self.depth);
        }
        hits.sort_unstable_by_key(|hit| hit.key);
        hits
    }
}
