//! Evaluation of TREC run files.
//!
//! The rows of a query can be anywhere in the file. If they are adjacent, which is the usual case, the file is
//! evaluated block by block and never held in memory. Otherwise its rows are grouped in a [`RunTable`], a share of the
//! queries at a time if all of them would take too much memory.

use std::ops::Range;
use std::path::Path;

use super::number::parse_short;
use super::processor::{Plain, Processor};
use super::run_row::{Row, no_rows, read_plain_row, read_row, read_score, wrong_query};
use super::run_table::RunTable;
use super::source::Source;
use super::walk::{Head, Sizes, Walk, cut, read_head};
use crate::error::Result;
use crate::evaluation::{Evaluation, Evaluator, Met, Part, Scratch, nan_message, not_grouped};
use crate::hash::hash;
use crate::judgements::Judgements;
use crate::threads;

/// Evaluates a run file, which can be compressed (`.gz`, `.zst`).
///
/// # Errors
/// [`crate::error::Error::Malformed`] with the line for a row with fewer than six columns, a score that is NaN or not a
/// number, an id that is not UTF-8, or a document that occurs twice in a judged query; and for a file without rows.
pub fn evaluate_run(
    evaluator: &Evaluator,
    judgements: &Judgements,
    path: &Path,
) -> Result<Evaluation> {
    evaluate_source(evaluator, judgements, Source::open(path)?, Sizes::default())
}

/// Evaluates a run whose text, plain or compressed, is in memory. Errors refer to it as `name`.
///
/// # Errors
/// The same as [`evaluate_run`].
pub fn evaluate_run_text(
    evaluator: &Evaluator,
    judgements: &Judgements,
    name: &Path,
    text: Vec<u8>,
) -> Result<Evaluation> {
    evaluate_source(
        evaluator,
        judgements,
        Source::from_memory(name, text)?,
        Sizes::default(),
    )
}

fn evaluate_source(
    evaluator: &Evaluator,
    judgements: &Judgements,
    source: Source,
    sizes: Sizes,
) -> Result<Evaluation> {
    let ranges = cut(&source, sizes)?;
    let threads = threads::resolve(evaluator.options.threads);
    let met = Met::new(judgements);
    let parts = threads::try_map(ranges.len(), threads, |task, worker: &mut Worker| {
        let buffer = std::mem::take(&mut worker.buffer);
        let reader = RangeReader {
            evaluator,
            judgements,
            source: &source,
            met: &met,
            walk: Walk::new(&source, ranges[task], sizes.block, buffer)?,
            worker,
            part: Part::default(),
        };
        reader.evaluate()
    });
    if !met.again() {
        let parts = parts?;
        if parts.iter().all(Part::is_empty) {
            return Err(no_rows(&source.path));
        }
        if let Some(evaluation) = evaluator.assemble_judged(&parts, judgements)? {
            return Ok(evaluation);
        }
    }
    evaluate_scattered(evaluator, judgements, &source, sizes)
}

/// Which queries a pass over a file is for: those whose hashes have these lowest bits.
#[derive(Clone, Copy)]
struct Share {
    bits: u32,
    lowest: u64,
}

impl Share {
    /// More shares than this make too many passes; a share whose table is too large is then kept nevertheless.
    const MOST_BITS: u32 = 16;

    fn holds(self, query: &[u8]) -> bool {
        hash(query) & ((1 << self.bits) - 1) == self.lowest
    }

    /// Cuts it in two; returns the other half.
    fn halve(&mut self) -> Self {
        self.bits += 1;
        Self {
            bits: self.bits,
            lowest: self.lowest | 1 << (self.bits - 1),
        }
    }
}

/// Evaluates a run in which the rows of a query are not together: groups them in a table. If the table would take more
/// memory than `sizes.table`, only a share of the queries is kept, and further passes over the file are made for the others.
fn evaluate_scattered(
    evaluator: &Evaluator,
    judgements: &Judgements,
    source: &Source,
    sizes: Sizes,
) -> Result<Evaluation> {
    let mut parts = Vec::new();
    let mut shares = vec![Share { bits: 0, lowest: 0 }];
    let mut unjudged = Part::default();
    while let Some(mut share) = shares.pop() {
        let table = RunTable::parse(source, |query, table| {
            if judgements.find(query).is_none() {
                if !unjudged.unjudged.contains(query) {
                    unjudged.unjudged.insert(query.to_vec());
                }
                return false;
            }
            while table.size() > sizes.table && share.bits < Share::MOST_BITS {
                shares.push(share.halve());
                table.retain(|query| share.holds(query));
            }
            share.holds(query)
        })?;
        let grouped = evaluator.evaluate_grouped(judgements, &table);
        parts.extend(grouped.map_err(|error| table.locate(source, error))?);
    }
    parts.push(unjudged);
    evaluator
        .assemble_judged(&parts, judgements)?
        .ok_or_else(not_grouped)
}

/// Buffers that a thread reuses from range to range.
#[derive(Default)]
struct Worker {
    buffer: Vec<u8>,
    scratch: Scratch,
    rows: Vec<Row>,
    scores: Vec<f64>,
}

/// Evaluates the queries in a range of the text.
struct RangeReader<'a> {
    evaluator: &'a Evaluator,
    judgements: &'a Judgements,
    source: &'a Source,
    met: &'a Met,
    walk: Walk<'a>,
    worker: &'a mut Worker,
    part: Part,
}

impl RangeReader<'_> {
    fn evaluate(mut self) -> Result<Part> {
        loop {
            let end = self.walk.whole_queries();
            self.evaluate_block(end)?;
            if self.walk.is_last() || self.met.again() {
                self.worker.buffer = self.walk.into_buffer();
                return Ok(self.part);
            }
            self.walk.refill(end)?;
        }
    }

    /// Evaluates the queries in the buffer up to `end`, where a query ends, with the best instructions that this
    /// processor has.
    fn evaluate_block(&mut self, end: usize) -> Result<()> {
        #[cfg(target_arch = "x86_64")]
        if let Some(processor) = pulp::x86::V3::try_new() {
            return processor.vectorize(Block(self, end, processor));
        }
        self.evaluate_block_with(Plain, end)
    }

    #[inline(always)]
    fn evaluate_block_with(&mut self, processor: impl Processor, end: usize) -> Result<()> {
        let mut at = 0;
        while at < end {
            at = match read_head(self.walk.buffer(), at) {
                Head::Blank(next) => next,
                Head::Query(from, to) => self.evaluate_query(processor, at, (from, to), end)?,
            };
        }
        Ok(())
    }

    /// Reads and measures the query whose first line is at `start`; returns where the next one starts.
    #[inline(always)]
    fn evaluate_query(
        &mut self,
        processor: impl Processor,
        start: usize,
        (from, to): (usize, usize),
        end: usize,
    ) -> Result<usize> {
        let (buffer, ascii) = (self.walk.buffer(), self.walk.ascii);
        let fail = |at, message| Err(self.source.error_at(self.walk.offset(at), message));
        if let Some(message) = wrong_query(buffer, from, to, ascii) {
            return fail(start, message);
        }
        let query = QueryId::new(&buffer[from..to]);
        let Worker {
            rows,
            scores,
            scratch,
            ..
        } = &mut *self.worker;
        rows.clear();
        // Loops of few instructions each take less time than one of many: first fields, then scores, then ids.
        let (next, mut wrong) = read_rows(processor, buffer, start..end, ascii, &query, rows);
        if let Some((row, message)) = read_scores(processor, buffer, &query, rows, scores) {
            wrong = Some((rows[row].doc.0, message));
        }
        match self.judgements.find(query.id) {
            Some(index) => {
                self.met.enter(index);
                let evaluated = self.evaluator.evaluate_ranking(
                    self.judgements,
                    index,
                    scores.len(),
                    |row| &buffer[rows[row].doc.0..rows[row].doc.1],
                    |row| scores[row],
                    scratch,
                    &mut self.part,
                );
                if let Err((row, message)) = evaluated {
                    return fail(rows[row].doc.0, message);
                }
            }
            None => {
                self.part.unjudged.insert(query.id.to_vec());
            }
        }
        wrong.map_or(Ok(next), |(at, message)| fail(at, message))
    }
}

/// Reads the rows of a query. Returns where the next query starts, or what is wrong and where.
#[inline(always)]
fn read_rows(
    processor: impl Processor,
    buffer: &[u8],
    Range { start: mut at, end }: Range<usize>,
    ascii: bool,
    query: &QueryId<'_>,
    rows: &mut Vec<Row>,
) -> (usize, Option<(usize, String)>) {
    loop {
        while at < end
            && let Some(behind) = query.end_at(buffer, at)
            && let Some((row, next)) = read_plain_row(processor, buffer, behind, ascii)
        {
            rows.push(row);
            at = next;
        }
        let Some(behind) = find_row(buffer, &mut at, end, query.id) else {
            return (at, None);
        };
        match read_row(buffer, at, behind, ascii) {
            Ok((row, next)) => {
                rows.push(row);
                at = next;
            }
            Err(message) => return (at, Some((at, message))),
        }
    }
}

/// Reads the scores of rows up to the first one that is not a number, which it returns with what is wrong.
#[inline(always)]
fn read_scores(
    processor: impl Processor,
    buffer: &[u8],
    query: &QueryId<'_>,
    rows: &[Row],
    scores: &mut Vec<f64>,
) -> Option<(usize, String)> {
    scores.clear();
    for (number, row) in rows.iter().enumerate() {
        let score = match parse_short(processor, buffer, row.score) {
            Some(score) => score,
            None => match read_score(buffer, row) {
                Ok(score) if score.is_nan() => {
                    let message = nan_message(query.id, &buffer[row.doc.0..row.doc.1]);
                    return Some((number, message));
                }
                Ok(score) => score,
                Err(message) => return Some((number, message)),
            },
        };
        scores.push(score);
    }
    None
}

/// A block to evaluate. Inlined with everything it calls, so that it is compiled for the instructions of the processor.
#[cfg(target_arch = "x86_64")]
struct Block<'r, 'a, P>(&'r mut RangeReader<'a>, usize, P);

#[cfg(target_arch = "x86_64")]
impl<P: Processor> pulp::NullaryFnOnce for Block<'_, '_, P> {
    type Output = Result<()>;

    #[inline(always)]
    fn call(self) -> Result<()> {
        self.0.evaluate_block_with(self.2, self.1)
    }
}

/// A query id, and its beginning as a number.
struct QueryId<'a> {
    id: &'a [u8],
    first: u128,
    mask: u128,
}

impl<'a> QueryId<'a> {
    fn new(id: &'a [u8]) -> Self {
        let mut first = [0; 16];
        let length = id.len().min(16);
        first[..length].copy_from_slice(&id[..length]);
        let mask = u128::MAX.checked_shr(128 - 8 * length as u32).unwrap_or(0);
        Self {
            id,
            first: u128::from_le_bytes(first),
            mask,
        }
    }

    /// Where the id ends if the text at `at` starts with it and a blank follows.
    #[inline(always)]
    fn end_at(&self, buffer: &[u8], at: usize) -> Option<usize> {
        let first = u128::from_le_bytes(*buffer.get(at..)?.first_chunk()?);
        let behind = at + self.id.len();
        let same = first & self.mask == self.first
            && matches!(buffer.get(behind), Some(b' ' | b'\t'))
            && (self.id.len() <= 16 || &buffer[at..behind] == self.id);
        same.then_some(behind)
    }
}

/// Skips blank lines. If the next line belongs to `query`, returns where its id ends; otherwise, and at `end`, `None`.
#[inline(never)]
fn find_row(buffer: &[u8], at: &mut usize, end: usize, query: &[u8]) -> Option<usize> {
    while *at < end {
        match read_head(buffer, *at) {
            Head::Blank(next) => *at = next,
            Head::Query(from, to) => return (&buffer[from..to] == query).then_some(to),
        }
    }
    None
}

#[cfg(test)]
mod tests;
