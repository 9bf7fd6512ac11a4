//! TREC run files: `query_id Q0 doc_id rank score tag`, white space between, further columns ignored.
//!
//! The rank column is ignored, as trec_eval ignores it. Rows of a query may lie anywhere; where they lie together,
//! which is the rule, a file is evaluated block by block without being held in memory.

use std::path::Path;

use super::line;
use super::number::parse_score;
use super::run_table::RunTable;
use super::source::{Source, malformed};
use super::walk::{Head, Sizes, Walk, cut, read_head};
use crate::error::{Result, quote};
use crate::evaluation::{Evaluation, Evaluator, Met, Part, Scratch, nan_message, run_tasks};
use crate::judgements::Judgements;
use crate::ranking::RowTies;

/// One row, as positions in a buffer.
pub(super) struct Row {
    /// Document id, as (start, end).
    pub doc: (usize, usize),
    pub score: f64,
    /// Where the next line starts.
    pub next: usize,
}

/// What is wrong with a query id, which ends at `end`, if anything.
#[inline]
pub(super) fn wrong_query(buffer: &[u8], start: usize, end: usize, ascii: bool) -> Option<String> {
    line::control_character(buffer, end).or_else(|| {
        if ascii {
            None
        } else {
            line::invalid_utf8(&buffer[start..end])
        }
    })
}

/// The fields that matter of a line, as positions in a buffer.
struct Fields {
    doc: (usize, usize),
    score: (usize, usize),
    /// Where the sixth column ends.
    end: usize,
}

/// Reads the rest of a row, from `at` behind its query id; the line starts at `line_start`.
// A call would cost a tenth of a row's time.
#[inline(always)]
pub(super) fn read_row(
    buffer: &[u8],
    line_start: usize,
    at: usize,
    ascii: bool,
) -> std::result::Result<Row, String> {
    let Fields { doc, score, end } = match line::split(buffer, at) {
        Some([iteration, doc, rank, score, end]) => Fields {
            doc: (at + iteration + 1, at + doc),
            score: (at + rank + 1, at + score),
            end: at + end,
        },
        None => find_fields(buffer, line_start, at)?,
    };
    let text = &buffer[score.0..score.1];
    let score =
        parse_score(text).ok_or_else(|| format!("the score {} is not a number", quote(text)))?;
    if !ascii && let Some(message) = line::invalid_utf8(&buffer[doc.0..doc.1]) {
        return Err(message);
    }
    let next = end_of_line(buffer, end)?;
    Ok(Row { doc, score, next })
}

/// The fields of any line, one by one.
#[inline(never)]
fn find_fields(
    buffer: &[u8],
    line_start: usize,
    mut at: usize,
) -> std::result::Result<Fields, String> {
    let fields = (|| {
        line::next_field(buffer, &mut at)?;
        let doc = line::next_field(buffer, &mut at)?;
        line::next_field(buffer, &mut at)?;
        let score = line::next_field(buffer, &mut at)?;
        let (_, end) = line::next_field(buffer, &mut at)?;
        Some(Fields { doc, score, end })
    })();
    fields.ok_or_else(|| missing_columns(buffer, line_start, at))
}

#[inline]
fn end_of_line(buffer: &[u8], at: usize) -> std::result::Result<usize, String> {
    match buffer[at] {
        b'\n' => Ok(at + 1),
        b'\r' if buffer[at + 1] == b'\n' => Ok(at + 2),
        _ => further_columns(buffer, at),
    }
}

/// Moves over what follows the sixth column; it must be text, and must not be further lines in disguise.
#[cold]
fn further_columns(buffer: &[u8], at: usize) -> std::result::Result<usize, String> {
    let stop = memchr::memchr(b'\n', &buffer[at..]).map_or(buffer.len(), |n| at + n);
    let rest = buffer[at..stop].trim_ascii_end();
    if rest.contains(&b'\r') {
        let message = "holds a carriage return; convert the line ends (tr '\\r' '\\n')";
        return Err(message.to_owned());
    }
    let wrong = (at..at + rest.len()).find_map(|at| line::control_character(buffer, at));
    wrong.map_or(Ok(stop + 1), Err)
}

#[cold]
fn missing_columns(buffer: &[u8], line_start: usize, at: usize) -> String {
    line::control_character(buffer, at).unwrap_or_else(|| {
        let found = line::count_fields(buffer, line_start);
        let noun = if found == 1 { "column" } else { "columns" };
        format!("has {found} {noun}, a run line has 6: query_id Q0 doc_id rank score tag")
    })
}

/// Evaluates a run file; `.gz` and `.zst` too.
///
/// # Errors
/// [`crate::error::Error::Malformed`] with the line of a row that has fewer than six columns, a score that is no
/// number or NaN, an id that is not UTF-8, or a document that its query, if it is judged, has already; and for a file
/// without rows.
pub fn evaluate_run(
    evaluator: &Evaluator,
    judgements: &Judgements,
    path: &Path,
) -> Result<Evaluation> {
    evaluate_source(evaluator, judgements, Source::open(path)?, Sizes::default())
}

/// Evaluates a run whose text, plain or compressed, is in memory; `name` is what errors call it.
///
/// # Errors
/// As [`evaluate_run`].
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

pub(super) fn no_rows(path: &Path) -> crate::error::Error {
    malformed(path, 0, "holds no run line".to_owned())
}

fn evaluate_source(
    evaluator: &Evaluator,
    judgements: &Judgements,
    source: Source,
    sizes: Sizes,
) -> Result<Evaluation> {
    let ranges = cut(&source, sizes)?;
    let threads = evaluator.options.thread_count();
    let met = Met::new(judgements);
    let parts = run_tasks(threads, ranges.len(), |task, worker: &mut Worker| {
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

/// Buffers that a thread keeps from range to range.
#[derive(Default)]
struct Worker {
    buffer: Vec<u8>,
    scratch: Scratch,
    docs: Vec<(usize, usize)>,
    tied: Vec<u32>,
    scores: Vec<f64>,
}

/// Evaluates the queries of a range of the text.
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

    /// Evaluates the queries of the buffer up to `end`, where one ends.
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

/// Moves over blank lines; where the line that follows is of `query`, returns where its id ends. None at `end` too.
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
