//! The best documents for a query, in windows of documents.
//!
//! For each window the blocks that reach into it bound what each word can contribute. If all bounds together cannot
//! reach the worst of the best documents so far, the window is skipped. Otherwise words whose bounds together cannot
//! reach it are set aside (MaxScore: Turtle and Flood, 1995; with the bounds of blocks: Ding and Suel, SIGIR 2011):
//! only documents with another word are looked at, and those words are looked up for documents that can still get in.
//! What each word contributes is kept apart, so that the contributions are added in the order of the query.

use std::cmp::Ordering;
use std::num::NonZeroUsize;

use super::cursor::{Cursor, Window};
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
    lengths: &'a [[u8; 4]],
    ranks: &'a [[u8; 4]],
}

/// Documents of a window, and floats that all contributions in a window take at most.
const WINDOW: usize = 4096;
const FLOATS: usize = 1 << 16;
/// Documents of a window where no document is skipped: below these numbers of postings, bounds cost more than they save.
const SIMPLE_WINDOW: usize = 1 << 14;
const WORTHWHILE: usize = 1 << 14;
const WORTHWHILE_PER_HIT: usize = 32;

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
            lengths: view.lengths()?,
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
        let (mut cursors, mut order, mut absent): (Vec<Cursor>, Vec<usize>, Vec<f32>) =
            Default::default();
        for word in words {
            let Some((number, list)) = self.view.find(word.as_ref())? else {
                continue;
            };
            let known = cursors.iter().position(|cursor| cursor.number == number);
            let place = known.unwrap_or_else(|| {
                cursors.push(Cursor::new(number, list, self.formula.weight(list.df)));
                cursors.len() - 1
            });
            cursors[place].times += 1.0;
            order.push(place);
            absent.push(cursors[place].weight.absent);
        }
        for cursor in &mut cursors {
            cursor.open(self)?;
        }
        let best = Best::new(depth, sum_pairwise(&absent));
        if cursors.is_empty() || depth == 0 {
            return Ok(Vec::new());
        }
        let query = Query {
            searcher: self,
            order: &order,
            stride: cursors.len(),
        };
        query.run(&mut cursors, best, buffers)
    }

    #[inline]
    pub(super) fn length(&self, document: u32) -> u32 {
        self.lengths
            .get(document as usize)
            .map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }
}

/// What a thread uses again for each query.
#[derive(Default)]
struct Buffers {
    /// Of each document of a window, what each word contributes, or all words together; 0 outside of a window.
    contributions: Vec<f32>,
    /// The documents of the window that are looked at, one bit each.
    bits: Vec<u64>,
}

/// The best documents so far.
struct Best {
    depth: usize,
    /// What all documents get for the words that they lack, before any contribution.
    absent: f32,
    hits: Vec<Hit>,
    /// The last of the best and its score, once there are enough.
    worst: Option<(u64, f32)>,
}

impl Best {
    fn new(depth: usize, absent: f32) -> Self {
        Self {
            depth,
            absent,
            hits: Vec::new(),
            worst: None,
        }
    }

    /// Whether a document whose contributions add up to at most `bound` could be among the best.
    #[inline]
    fn admits(&self, bound: f64) -> bool {
        let Some((_, worst)) = self.worst else {
            return true;
        };
        let bound = bound as f32;
        // A bound that is no number admits everything.
        (bound.next_up() + self.absent).partial_cmp(&worst) != Some(Ordering::Less)
    }

    #[inline]
    fn add(&mut self, document: u32, sum: f32, searcher: &Searcher) {
        let score = sum + self.absent;
        let rank = searcher.ranks.get(document as usize);
        let hit = Hit::new(
            document,
            score,
            rank.map_or(0, |bytes| u32::from_le_bytes(*bytes)),
        );
        // The score alone decides in most cases; then nothing waits for the rank.
        let is_worse = |(key, worst)| score < worst || (score == worst && hit.key >= key);
        if !self.worst.is_some_and(is_worse) {
            self.hits.push(hit);
            if self.hits.len() >= self.depth.saturating_mul(2).max(64) {
                self.shrink();
            }
        }
    }

    fn shrink(&mut self) {
        if self.hits.len() > self.depth {
            self.hits
                .select_nth_unstable_by_key(self.depth - 1, |hit| hit.key);
            self.hits.truncate(self.depth);
            self.worst = self.hits.last().map(|hit| (hit.key, hit.score()));
        }
    }

    fn finish(mut self) -> Vec<Hit> {
        self.shrink();
        self.hits.sort_unstable_by_key(|hit| hit.key);
        self.hits
    }
}

struct Query<'q, 'a> {
    searcher: &'q Searcher<'a>,
    /// The cursor of each word, in the order of the query.
    order: &'q [usize],
    /// How many different words there are.
    stride: usize,
}

impl Query<'_, '_> {
    fn run(
        &self,
        cursors: &mut [Cursor],
        mut best: Best,
        buffers: &mut Buffers,
    ) -> Result<Vec<Hit>> {
        let is_plain = self.order.len() == self.stride;
        let postings: usize = cursors.iter().map(|cursor| cursor.list.df as usize).sum();
        let prunes = postings > WORTHWHILE.max(best.depth.saturating_mul(WORTHWHILE_PER_HIT));
        let size = match is_plain && !prunes {
            true => SIMPLE_WINDOW,
            false => (FLOATS / self.stride).clamp(64, WINDOW) / 64 * 64,
        };
        let room = size * self.stride;
        buffers
            .contributions
            .resize(room.max(buffers.contributions.len()), 0.0);
        buffers.bits.resize(size / 64, 0);
        let mut ascending: Vec<usize> = (0..self.stride).collect();
        while let Some(next) = cursors.iter().filter_map(Cursor::next).min() {
            let window = Window {
                start: next / size as u32 * size as u32,
                size,
            };
            let mut aside = 0;
            if prunes && best.worst.is_some() {
                for cursor in &mut *cursors {
                    cursor.bound(window, self.searcher);
                }
                ascending.sort_unstable_by(|a, b| cursors[*a].bound.total_cmp(&cursors[*b].bound));
                aside = self.set_aside(&ascending, cursors, &best);
            }
            if aside == self.stride {
                for cursor in &mut *cursors {
                    cursor.skip(window.end());
                }
            } else if aside == 0 && is_plain {
                for cursor in &mut *cursors {
                    self.collect::<true>(cursor, 0, window, buffers)?;
                }
                self.take_sums(window, &mut best, buffers);
            } else {
                let (aside, needed) = ascending.split_at(aside);
                for &place in needed {
                    self.collect::<false>(&mut cursors[place], place, window, buffers)?;
                }
                let mut rest = aside.iter().map(|place| cursors[*place].bound).sum::<f64>();
                for &place in aside.iter().rev() {
                    self.filter(rest, &best, buffers);
                    rest -= cursors[place].bound;
                    self.look_up(&mut cursors[place], place, window, buffers)?;
                }
                self.add_up(window, &mut best, buffers);
            }
        }
        Ok(best.finish())
    }

    /// How many of the words, in ascending order of their bounds, a document may have without getting in.
    fn set_aside(&self, ascending: &[usize], cursors: &[Cursor], best: &Best) -> usize {
        let mut sum = 0.0;
        let reaches = ascending.iter().position(|place| {
            sum += cursors[*place].bound;
            best.admits(self.widen(sum))
        });
        reaches.unwrap_or(self.stride)
    }

    /// A bound of a sum in float32, which can round up at each addition, from a sum of bounds in float64.
    #[inline]
    fn widen(&self, sum: f64) -> f64 {
        sum * (1.0 + (self.order.len() + 1) as f64 * f64::from(f32::EPSILON))
    }

    /// Takes in all documents of a window that have a word, with its contribution apart, or added to one sum.
    fn collect<const SUM: bool>(
        &self,
        cursor: &mut Cursor,
        place: usize,
        window: Window,
        buffers: &mut Buffers,
    ) -> Result<()> {
        cursor.skip(window.start);
        let stride = if SUM { 1 } else { self.stride };
        let cells = &mut buffers.contributions[..window.size * stride];
        let bits = &mut buffers.bits[..window.size / 64];
        while cursor.decode(window.end(), self.searcher)? {
            let (docs, frequencies) = cursor.rest();
            let mut taken = 0;
            for (&doc, &frequency) in docs.iter().zip(frequencies) {
                let slot = doc.wrapping_sub(window.start) as usize;
                if slot >= window.size {
                    break;
                }
                taken += 1;
                let length = self.searcher.length(doc);
                let contribution =
                    self.searcher
                        .formula
                        .contribution(cursor.weight, frequency, length);
                let cell = &mut cells[slot * stride + place];
                *cell = if SUM {
                    *cell + contribution
                } else {
                    contribution
                };
                bits[slot / 64] |= 1 << (slot % 64);
            }
            if !cursor.take(taken) {
                break;
            }
        }
        Ok(())
    }

    /// Drops documents that cannot get in, even if the words that are still to be looked up contribute `rest`.
    fn filter(&self, rest: f64, best: &Best, buffers: &mut Buffers) {
        if best.worst.is_none() {
            return;
        }
        let Buffers {
            contributions,
            bits,
        } = buffers;
        for_each_bit(bits, |slot| {
            let cells = &mut contributions[slot * self.stride..(slot + 1) * self.stride];
            let sum = self
                .order
                .iter()
                .map(|place| f64::from(cells[*place].max(0.0)))
                .sum::<f64>();
            let stays = best.admits(self.widen(sum + rest));
            if !stays {
                cells.fill(0.0);
            }
            stays
        });
    }

    /// Looks a word up for the documents of a window that are left.
    fn look_up(
        &self,
        cursor: &mut Cursor,
        place: usize,
        window: Window,
        buffers: &mut Buffers,
    ) -> Result<()> {
        let Buffers {
            contributions,
            bits,
        } = buffers;
        let mut failed = None;
        for_each_bit(bits, |slot| {
            let doc = window.start + slot as u32;
            match cursor.seek(doc, self.searcher) {
                Ok(Some(frequency)) => {
                    let length = self.searcher.length(doc);
                    contributions[slot * self.stride + place] =
                        self.searcher
                            .formula
                            .contribution(cursor.weight, frequency, length);
                }
                Ok(None) => {}
                Err(error) => failed = failed.take().or(Some(error)),
            }
            true
        });
        cursor.skip(window.end());
        failed.map_or(Ok(()), Err)
    }

    /// Adds up the contributions of the documents that are left, and empties the window.
    fn add_up(&self, window: Window, best: &mut Best, buffers: &mut Buffers) {
        let Buffers {
            contributions,
            bits,
        } = buffers;
        for_each_bit(bits, |slot| {
            let cells = &mut contributions[slot * self.stride..(slot + 1) * self.stride];
            let sum = self
                .order
                .iter()
                .fold(0.0, |sum: f32, place| sum + cells[*place]);
            cells.fill(0.0);
            if sum > 0.0 {
                best.add(window.start + slot as u32, sum, self.searcher);
            }
            false
        });
    }

    /// Takes the sums of a window, and empties it.
    fn take_sums(&self, window: Window, best: &mut Best, buffers: &mut Buffers) {
        let sums = &mut buffers.contributions[..window.size];
        for_each_bit(&mut buffers.bits[..window.size / 64], |slot| {
            let sum = std::mem::take(&mut sums[slot]);
            if sum > 0.0 {
                best.add(window.start + slot as u32, sum, self.searcher);
            }
            false
        });
    }
}

/// Calls `keep` with the place of each bit that is set, in order, and clears those for which it is false.
#[inline]
fn for_each_bit(bits: &mut [u64], mut keep: impl FnMut(usize) -> bool) {
    for (number, word) in bits.iter_mut().enumerate() {
        let mut left = *word;
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            if !keep(number * 64 + bit as usize) {
                *word &= !(1 << bit);
            }
        }
    }
}
