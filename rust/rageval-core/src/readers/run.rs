//! Evaluation of TREC run files.
//!
//! The rows of a query can be anywhere in the file. If they are adjacent, which is the usual case, the file is
//! evaluated block by block and never held in memory. Otherwise it is read whole ([`RunTable`]).

use std::path::Path;

use super::run_row::{no_rows, read_row, wrong_query};
use super::run_table::RunTable;
use super::source::Source;
use super::walk::{Head, Sizes, Walk, cut, read_head};
use crate::error::Result;
use crate::evaluation::{Evaluation, Evaluator, Met, Part, Scratch, nan_message};
use crate::judgements::Judgements;
use crate::ranking::RowTies;
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
    let table = RunTable::parse(source)?;
    evaluator
        .evaluate_rows(judgements, &table)
        .map_err(|error| table.locate(error))
}

/// Buffers that a thread reuses from range to range.
#[derive(Default)]
struct Worker {
    buffer: Vec<u8>,
    scratch: Scratch,
    docs: Vec<(usize, usize)>,
    tied: Vec<u32>,
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

    /// Evaluates the queries in the buffer up to `end`, where a query ends.
    fn evaluate_block(&mut self, end: usize) -> Result<()> {
        let mut at = 0;
        while at < end {
            at = match read_head(self.walk.buffer(), at) {
                Head::Blank(next) => next,
                Head::Query(from, to) => self.evaluate_query(at, (from, to), end)?,
            };
        }
        Ok(())
    }

    /// Reads and measures the query whose first line is at `start`; returns where the next one starts.
    fn evaluate_query(
        &mut self,
        start: usize,
        (from, to): (usize, usize),
        end: usize,
    ) -> Result<usize> {
        let buffer = self.walk.buffer();
        if let Some(message) = wrong_query(buffer, from, to, self.walk.ascii) {
            return Err(self.source.error_at(self.walk.offset(start), message));
        }
        let judged = self.judgements.find(&buffer[from..to]);
        let next = self.read_query(start, (from, to), judged, end)?;
        match judged {
            Some(index) => {
                self.met.enter(index);
                self.measure(index);
            }
            None => {
                let query = &self.walk.buffer()[from..to];
                self.part.unjudged.insert(query.to_vec());
            }
        }
        Ok(next)
    }

    fn read_query(
        &mut self,
        start: usize,
        (from, to): (usize, usize),
        judged: Option<usize>,
        end: usize,
    ) -> Result<usize> {
        let (buffer, ascii) = (self.walk.buffer(), self.walk.ascii);
        let query = &buffer[from..to];
        let fail = |at: usize, message| self.source.error_at(self.walk.offset(at), message);
        let Worker { scratch, docs, .. } = &mut *self.worker;
        self.evaluator.start_query(scratch);
        docs.clear();
        let (mut at, mut behind_query) = (start, to);
        loop {
            let row =
                read_row(buffer, at, behind_query, ascii).map_err(|message| fail(at, message))?;
            let doc = &buffer[row.doc.0..row.doc.1];
            if row.score.is_nan() {
                return Err(fail(at, nan_message(query, doc)));
            }
            if let Some(index) = judged {
                let earlier = |i: usize| &buffer[docs[i].0..docs[i].1];
                let added = self.evaluator.push_document(
                    scratch,
                    self.judgements,
                    index,
                    query,
                    doc,
                    row.score,
                    earlier,
                );
                if added.map_err(|message| fail(at, message))? {
                    docs.push(row.doc);
                }
            }
            at = row.next;
            match next_row(buffer, &mut at, end, query) {
                Some(behind) => behind_query = behind,
                None => return Ok(at),
            }
        }
    }

    fn measure(&mut self, index: usize) {
        let buffer = self.walk.buffer();
        let worker = &mut *self.worker;
        worker.scores.clone_from(&worker.scratch.scores);
        let docs = &worker.docs;
        let mut order = RowTies::new(
            &worker.scores,
            |row: u32| &buffer[docs[row as usize].0..docs[row as usize].1],
            self.evaluator.options.ties,
            &mut worker.tied,
        );
        self.evaluator.measure(
            index,
            &self.judgements.query(index).grades,
            &mut worker.scratch,
            &mut order,
            &mut self.part,
        );
    }
}

/// Skips blank lines. If the next line belongs to `query`, returns where its id ends; otherwise, and at `end`, `None`.
#[inline]
fn next_row(buffer: &[u8], at: &mut usize, end: usize, query: &[u8]) -> Option<usize> {
    while *at < end {
        let behind = *at + query.len();
        let goes_on = buffer.get(*at..behind) == Some(query)
            && buffer
                .get(behind)
                .is_some_and(|byte| *byte == b' ' || *byte == b'\t');
        if goes_on {
            return Some(behind);
        }
        match read_head(buffer, *at) {
            Head::Blank(next) => *at = next,
            Head::Query(from, to) => return (&buffer[from..to] == query).then_some(to),
        }
    }
    None
}

#[cfg(test)]
mod tests;
