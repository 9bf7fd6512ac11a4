//! TREC run files: `query_id Q0 doc_id rank score tag`, white space between, further columns ignored.
//!
//! The rank column is ignored, as trec_eval ignores it. Rows of a query may lie anywhere; where they lie together,
//! which is the rule, a file is evaluated block by block without being held in memory.

use std::path::Path;

use super::line::{self, PADDING};
use super::number::parse_score;
use super::source::Source;
use crate::error::{Result, quote};
use crate::evaluation::{Evaluation, Evaluator, Part, Rows, Scratch, nan_message, run_tasks};
use crate::judgements::Judgements;
use crate::ranking::RowTies;

const BLOCK: usize = 1 << 20;
const CHUNK: u64 = 8 << 20;

/// One row, as positions in a buffer.
struct Row {
    doc: (usize, usize),
    score: f64,
    next: usize,
}

/// What stands at the start of a line.
enum Head {
    Blank(usize),
    Query(usize, usize),
}

/// The query id of the line at `at`.
#[inline]
fn read_head(buffer: &[u8], mut at: usize) -> Head {
    match line::next_field(buffer, &mut at) {
        Some((start, end)) => Head::Query(start, end),
        None => {
            Head::Blank(memchr::memchr(b'\n', &buffer[at..]).map_or(buffer.len(), |n| at + n + 1))
        }
    }
}

/// Reads the rest of a row, from behind its query id.
#[inline]
fn read_row(
    buffer: &[u8],
    line_start: usize,
    mut at: usize,
    ascii: bool,
) -> std::result::Result<Row, String> {
    let fields = (|| {
        line::next_field(buffer, &mut at)?;
        let doc = line::next_field(buffer, &mut at)?;
        line::next_field(buffer, &mut at)?;
        let score = line::next_field(buffer, &mut at)?;
        line::next_field(buffer, &mut at)?;
        Some((doc, score))
    })();
    let Some((doc, score)) = fields else {
        return Err(missing_columns(buffer, line_start, at));
    };
    let text = &buffer[score.0..score.1];
    let score =
        parse_score(text).ok_or_else(|| format!("the score {} is not a number", quote(text)))?;
    if !ascii && let Some(message) = line::invalid_utf8(&buffer[doc.0..doc.1]) {
        return Err(message);
    }
    let next = end_of_line(buffer, at)?;
    Ok(Row { doc, score, next })
}

#[inline]
fn end_of_line(buffer: &[u8], at: usize) -> std::result::Result<usize, String> {
    if buffer[at] == b'\n' {
        return Ok(at + 1);
    }
    if let Some(message) = line::control_character(buffer, at) {
        return Err(message);
    }
    Ok(memchr::memchr(b'\n', &buffer[at..]).map_or(buffer.len(), |n| at + n + 1))
}

#[cold]
fn missing_columns(buffer: &[u8], line_start: usize, at: usize) -> String {
    line::control_character(buffer, at).unwrap_or_else(|| {
        let found = line::count_fields(buffer, line_start);
        let noun = if found == 1 { "column" } else { "columns" };
        format!("has {found} {noun}, a run line has 6: query_id Q0 doc_id rank score tag")
    })
}

/// A range of the text that starts and ends between two queries, walked block by block.
struct Walk<'a> {
    source: &'a Source,
    buffer: Vec<u8>,
    /// Where in the file the buffer starts.
    base: u64,
    /// How many bytes of the buffer are text.
    filled: usize,
    end: u64,
    ascii: bool,
}

impl<'a> Walk<'a> {
    fn new(source: &'a Source, start: u64, end: u64) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            base: start,
            filled: 0,
            end,
            ascii: true,
        }
    }

    /// Keeps the text from `keep` on and reads more behind it. False where there is no more.
    fn refill(&mut self, keep: usize) -> Result<bool> {
        let rest = self.filled - keep;
        self.buffer.copy_within(keep..self.filled, 0);
        self.base += keep as u64;
        let capacity = if keep == 0 {
            (self.filled * 2).max(BLOCK)
        } else {
            self.buffer.len() - PADDING
        };
        let left = self.end - self.base - rest as u64;
        let wanted = (capacity - rest).min(usize::try_from(left).unwrap_or(usize::MAX));
        self.buffer.resize(capacity + PADDING, b'\n');
        let n = self.source.read_at(
            &mut self.buffer[rest..rest + wanted],
            self.base + rest as u64,
        )?;
        if n < wanted {
            // The file shrank while it was read: what is left counts.
            self.end = self.base + (rest + n) as u64;
        }
        self.filled = rest + n;
        self.buffer[self.filled..self.filled + PADDING].fill(b'\n');
        self.ascii = self.buffer[..self.filled].is_ascii();
        Ok(n > 0)
    }

    /// Whether the buffer holds the text to its end.
    fn is_last(&self) -> bool {
        self.base + self.filled as u64 >= self.end
    }

    /// Where the last complete line ends.
    fn complete(&self) -> usize {
        if self.is_last() {
            return self.filled;
        }
        memchr::memrchr(b'\n', &self.buffer[..self.filled]).map_or(0, |n| n + 1)
    }
}

/// The first line start from `offset` on whose query differs from the line before it.
fn find_boundary(source: &Source, offset: u64) -> Result<u64> {
    let mut walk = Walk::new(source, offset, source.end);
    let mut query: Option<Vec<u8>> = None;
    let mut first = true;
    walk.refill(0)?;
    loop {
        let complete = walk.complete();
        let mut at = 0;
        while at < complete {
            let start = at;
            at = memchr::memchr(b'\n', &walk.buffer[start..])
                .map_or(complete, |n| start + n + 1)
                .min(walk.filled);
            if std::mem::take(&mut first) {
                continue;
            }
            if let Head::Query(from, to) = read_head(&walk.buffer, start)
                && from < at
            {
                let id = &walk.buffer[from..to];
                match &query {
                    None => query = Some(id.to_vec()),
                    Some(known) if known != id => return Ok(walk.base + start as u64),
                    Some(_) => {}
                }
            }
        }
        if walk.is_last() || !walk.refill(at)? {
            return Ok(source.end);
        }
    }
}

/// Cuts the text between queries into ranges of about 8 MB.
fn cut(source: &Source) -> Result<Vec<(u64, u64)>> {
    let mut ranges = Vec::new();
    let mut start = source.start;
    while start < source.end {
        let end = if start + CHUNK * 3 / 2 >= source.end {
            source.end
        } else {
            find_boundary(source, start + CHUNK)?
        };
        ranges.push((start, end));
        start = end;
    }
    Ok(ranges)
}

/// Evaluates a run file; `.gz` and `.zst` too.
///
/// # Errors
/// [`crate::error::Error::Malformed`] with the line of a row that has fewer than six columns, a score that is no
/// number or NaN, an id that is not UTF-8, or a document that its query has already; and for a file without rows.
pub fn evaluate_run(
    evaluator: &Evaluator,
    judgements: &Judgements,
    path: &Path,
) -> Result<Evaluation> {
    let source = Source::open(path)?;
    let ranges = cut(&source)?;
    let parts = run_tasks(
        evaluator.options.thread_count(),
        ranges.len(),
        |task, scratch: &mut Worker| {
            scratch.evaluate_range(
                evaluator,
                judgements,
                Walk::new(&source, ranges[task].0, ranges[task].1),
            )
        },
    )?;
    if parts
        .iter()
        .all(|part| part.queries.is_empty() && part.unjudged.is_empty())
    {
        return Err(source.error_at(0, "holds no run line".to_owned()));
    }
    if let Some(evaluation) = evaluator.assemble_judged(&parts, judgements) {
        return Ok(evaluation);
    }
    let table = RunTable::parse(source)?;
    evaluator
        .evaluate_rows(judgements, &table)
        .map_err(|error| table.locate(error))
}

#[derive(Default)]
struct Worker {
    scratch: Scratch,
    docs: Vec<(usize, usize)>,
    tied: Vec<u32>,
    scores: Vec<f64>,
}

impl Worker {
    fn evaluate_range(
        &mut self,
        evaluator: &Evaluator,
        judgements: &Judgements,
        mut walk: Walk<'_>,
    ) -> Result<Part> {
        let mut part = Part::default();
        walk.refill(0)?;
        loop {
            let keep = self.evaluate_block(evaluator, judgements, &walk, &mut part)?;
            if walk.is_last() || !walk.refill(keep)? {
                return Ok(part);
            }
        }
    }

    /// Evaluates the queries that lie whole in the buffer; returns where the first that does not starts.
    fn evaluate_block(
        &mut self,
        evaluator: &Evaluator,
        judgements: &Judgements,
        walk: &Walk<'_>,
        part: &mut Part,
    ) -> Result<usize> {
        let (complete, last) = (walk.complete(), walk.is_last());
        let mut at = 0;
        while at < complete {
            let (from, to) = match read_head(&walk.buffer, at) {
                Head::Blank(next) => {
                    at = next;
                    continue;
                }
                Head::Query(from, to) => (from, to),
            };
            if from >= complete {
                break;
            }
            let stop =
                self.evaluate_query(evaluator, judgements, walk, (at, from, to), complete, part)?;
            match stop {
                Some(next) => at = next,
                None if last => return Ok(complete),
                None => return Ok(at),
            }
        }
        Ok(at.min(walk.filled))
    }

    /// Reads one query's rows and measures them. Returns where the next query starts; None where the block ended first
    /// (then nothing was measured, unless the block is the last one).
    fn evaluate_query(
        &mut self,
        evaluator: &Evaluator,
        judgements: &Judgements,
        walk: &Walk<'_>,
        (start, from, to): (usize, usize, usize),
        complete: usize,
        part: &mut Part,
    ) -> Result<Option<usize>> {
        let buffer = walk.buffer.as_slice();
        let query = &buffer[from..to];
        let fail = |at: usize, message| walk.source.error_at(walk.base + at as u64, message);
        if let Some(message) = line::control_character(buffer, to) {
            return Err(fail(start, message));
        }
        if !walk.ascii
            && let Some(message) = line::invalid_utf8(query)
        {
            return Err(fail(start, message));
        }
        let judged = judgements.find(query);
        evaluator.start_query(&mut self.scratch);
        self.docs.clear();
        let (mut at, mut behind_query, mut ended) = (start, to, false);
        loop {
            let row = read_row(buffer, at, behind_query, walk.ascii)
                .map_err(|message| fail(at, message))?;
            let doc = &buffer[row.doc.0..row.doc.1];
            if row.score.is_nan() {
                return Err(fail(at, nan_message(query, doc)));
            }
            if let Some(index) = judged {
                let docs = &self.docs;
                let earlier = |i: usize| &buffer[docs[i].0..docs[i].1];
                let added = evaluator.push_document(
                    &mut self.scratch,
                    judgements,
                    index,
                    query,
                    doc,
                    row.score,
                    earlier,
                );
                if added.map_err(|message| fail(at, message))? {
                    self.docs.push(row.doc);
                }
            }
            at = row.next;
            match next_row(buffer, &mut at, complete, query) {
                Next::Same(behind) => behind_query = behind,
                Next::Other => break,
                Next::End => {
                    ended = true;
                    break;
                }
            }
        }
        if ended && !walk.is_last() {
            return Ok(None);
        }
        match judged {
            Some(index) => self.measure(evaluator, judgements, index, buffer, part),
            None => {
                part.unjudged.insert(query.to_vec());
            }
        }
        Ok((!ended).then_some(at))
    }

    fn measure(
        &mut self,
        evaluator: &Evaluator,
        judgements: &Judgements,
        index: usize,
        buffer: &[u8],
        part: &mut Part,
    ) {
        self.scores.clone_from(&self.scratch.scores);
        let docs = &self.docs;
        let mut order = RowTies {
            scores: &self.scores,
            id: |row: u32| &buffer[docs[row as usize].0..docs[row as usize].1],
            ties: evaluator.options.ties,
            rows: &mut self.tied,
        };
        evaluator.measure(
            index,
            &judgements.query(index).grades,
            &mut self.scratch,
            &mut order,
            part,
        );
    }
}

enum Next {
    Same(usize),
    Other,
    End,
}

/// Looks at the line at `at`, moving over blank ones: does it belong to `query`?
#[inline]
fn next_row(buffer: &[u8], at: &mut usize, complete: usize, query: &[u8]) -> Next {
    loop {
        if *at >= complete {
            return Next::End;
        }
        let behind = *at + query.len();
        if buffer.get(*at..behind) == Some(query)
            && buffer
                .get(behind)
                .is_some_and(|byte| *byte == b' ' || *byte == b'\t')
        {
            return Next::Same(behind);
        }
        match read_head(buffer, *at) {
            Head::Blank(next) => *at = next,
            Head::Query(from, _) if from >= complete => return Next::End,
            Head::Query(from, to) if &buffer[from..to] == query => return Next::Same(to),
            Head::Query(..) => return Next::Other,
        }
    }
}

/// A whole run in memory, in the order of the file.
pub struct RunTable {
    text: Vec<u8>,
    rows: Vec<(usize, u32, usize, u32, f64)>,
    path: std::path::PathBuf,
}

impl RunTable {
    fn parse(source: Source) -> Result<Self> {
        let path = source.path.clone();
        let mut text = source.read_all()?;
        let end = text.len();
        text.extend([b'\n'; PADDING]);
        let ascii = text.is_ascii();
        let mut rows = Vec::new();
        let mut at = 0;
        while at < end {
            let (from, to) = match read_head(&text, at) {
                Head::Query(from, to) if from < end => (from, to),
                Head::Query(..) => break,
                Head::Blank(next) => {
                    at = next;
                    continue;
                }
            };
            let checked = line::control_character(&text, to)
                .or_else(|| {
                    (!ascii)
                        .then(|| line::invalid_utf8(&text[from..to]))
                        .flatten()
                })
                .map_or_else(|| read_row(&text, at, to, ascii), Err);
            let row = checked.map_err(|message| malformed_at(&path, &text, at, message))?;
            rows.push((
                from,
                (to - from) as u32,
                row.doc.0,
                (row.doc.1 - row.doc.0) as u32,
                row.score,
            ));
            at = row.next;
        }
        Ok(Self { text, rows, path })
    }

    /// Turns the row number of an error into the line of the file.
    fn locate(&self, error: crate::error::Error) -> crate::error::Error {
        match error {
            crate::error::Error::Row { row, message, .. } => {
                malformed_at(&self.path, &self.text, self.rows[row].0, message)
            }
            other => other,
        }
    }
}

fn malformed_at(path: &Path, text: &[u8], at: usize, message: String) -> crate::error::Error {
    let line = memchr::memchr_iter(b'\n', &text[..at]).count() as u64 + 1;
    super::source::malformed(path, line, message)
}

impl Rows for RunTable {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn query(&self, row: usize) -> &[u8] {
        let (start, length, ..) = self.rows[row];
        &self.text[start..start + length as usize]
    }

    fn doc(&self, row: usize) -> &[u8] {
        let (_, _, start, length, _) = self.rows[row];
        &self.text[start..start + length as usize]
    }

    fn score(&self, row: usize) -> f64 {
        self.rows[row].4
    }
}

/// Reads a run file whole.
///
/// # Errors
/// As [`evaluate_run`], but duplicates are not looked for: the evaluation does that.
pub fn read_run(path: &Path) -> Result<RunTable> {
    let table = RunTable::parse(Source::open(path)?)?;
    if table.is_empty() {
        return Err(super::source::malformed(
            path,
            0,
            "holds no run line".to_owned(),
        ));
    }
    if let Some(row) = (0..table.len()).find(|&row| table.score(row).is_nan()) {
        let message = nan_message(table.query(row), table.doc(row));
        return Err(malformed_at(path, &table.text, table.rows[row].0, message));
    }
    Ok(table)
}
