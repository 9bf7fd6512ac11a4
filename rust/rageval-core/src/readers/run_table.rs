//! A run held in memory: for callers that want its rows, and for files in which the rows of a query are not adjacent.

use std::path::Path;

use super::run_row::{no_rows, read_row, read_score, wrong_query};
use super::source::Source;
use super::walk::{Head, Sizes, Walk, read_head};
use crate::error::{Error, Result};
use crate::evaluation::{Rows, nan_message};

/// Ids as positions in the table's text.
struct Row {
    query: usize,
    doc: usize,
    query_length: u32,
    doc_length: u32,
    score: f64,
    /// Where the line starts in the source.
    offset: u64,
}

/// A whole run in memory, or a part of its queries, in the order of the file.
#[derive(Default)]
pub struct RunTable {
    /// Document ids, and the query id before the rows that it belongs to.
    text: Vec<u8>,
    rows: Vec<Row>,
}

impl RunTable {
    /// Reads the rows of the queries that `keeps` accepts, and checks all of them.
    pub(super) fn parse(
        source: &Source,
        mut keeps: impl FnMut(&[u8], &mut Self) -> bool,
    ) -> Result<Self> {
        let mut table = Self::default();
        let range = (source.start, source.end);
        let mut walk = Walk::new(source, range, Sizes::default().block, Vec::new())?;
        loop {
            let (end, mut at) = (walk.complete(), 0);
            while at < end {
                match read_head(walk.buffer(), at) {
                    Head::Blank(next) => at = next,
                    Head::Query(from, to) => {
                        let (row, next) = parse_row(&walk, at, (from, to))
                            .map_err(|message| source.error_at(walk.offset(at), message))?;
                        let query = &walk.buffer()[from..to];
                        if keeps(query, &mut table) {
                            table
                                .push(
                                    query,
                                    &walk.buffer()[row.doc.0..row.doc.1],
                                    row.score,
                                    walk.offset(at),
                                )
                                .map_err(|message| source.error_at(walk.offset(at), message))?;
                        }
                        at = next;
                    }
                }
            }
            if walk.is_last() {
                return Ok(table);
            }
            walk.refill(end)?;
        }
    }

    fn push(
        &mut self,
        query: &[u8],
        doc: &[u8],
        score: f64,
        offset: u64,
    ) -> std::result::Result<(), String> {
        let length = |id: &[u8]| {
            u32::try_from(id.len()).map_err(|_| "has an id longer than 4 GB".to_owned())
        };
        let known = self.rows.len().checked_sub(1);
        let known = known.filter(|row| self.query(*row) == query);
        let query_start = match known {
            Some(row) => self.rows[row].query,
            None => {
                self.text.extend_from_slice(query);
                self.text.len() - query.len()
            }
        };
        self.rows.push(Row {
            query: query_start,
            doc: self.text.len(),
            query_length: length(query)?,
            doc_length: length(doc)?,
            score,
            offset,
        });
        self.text.extend_from_slice(doc);
        Ok(())
    }

    /// About how many bytes it takes.
    pub(super) fn size(&self) -> usize {
        self.text.len() + self.rows.len() * size_of::<Row>()
    }

    /// Leaves only the rows of the queries that `keeps` accepts.
    pub(super) fn retain(&mut self, keeps: impl Fn(&[u8]) -> bool) {
        let all = std::mem::take(self);
        for row in 0..all.len() {
            if keeps(all.query(row)) {
                // The lengths fitted before.
                let _ = self.push(
                    all.query(row),
                    all.doc(row),
                    all.score(row),
                    all.rows[row].offset,
                );
            }
        }
    }

    /// Replaces the row number in an error by the line of the file.
    pub(super) fn locate(&self, source: &Source, error: Error) -> Error {
        match error {
            Error::Row { row, message, .. } => source.error_at(self.rows[row].offset, message),
            other => other,
        }
    }
}

/// The part of a row that a table keeps, with its id as a position in a buffer.
struct Parsed {
    doc: (usize, usize),
    score: f64,
}

fn parse_row(
    walk: &Walk<'_>,
    at: usize,
    (from, to): (usize, usize),
) -> std::result::Result<(Parsed, usize), String> {
    let buffer = walk.buffer();
    if let Some(message) = wrong_query(buffer, from, to, walk.ascii) {
        return Err(message);
    }
    let (row, next) = read_row(buffer, at, to, walk.ascii)?;
    let score = read_score(buffer, &row)?;
    if score.is_nan() {
        return Err(nan_message(
            &buffer[from..to],
            &buffer[row.doc.0..row.doc.1],
        ));
    }
    let doc = row.doc;
    Ok((Parsed { doc, score }, next))
}

impl Rows for RunTable {
    #[inline]
    fn len(&self) -> usize {
        self.rows.len()
    }

    #[inline]
    fn query(&self, row: usize) -> &[u8] {
        let row = &self.rows[row];
        &self.text[row.query..row.query + row.query_length as usize]
    }

    #[inline]
    fn doc(&self, row: usize) -> &[u8] {
        let row = &self.rows[row];
        &self.text[row.doc..row.doc + row.doc_length as usize]
    }

    #[inline]
    fn score(&self, row: usize) -> f64 {
        self.rows[row].score
    }
}

/// Reads a whole run file, which can be compressed (`.gz`, `.zst`).
///
/// # Errors
/// The same as [`super::evaluate_run`], except for duplicates: only the evaluation looks for them.
pub fn read_run(path: &Path) -> Result<RunTable> {
    read_source(Source::open(path)?)
}

/// Reads a run whose text, plain or compressed, is in memory. Errors refer to it as `name`.
///
/// # Errors
/// The same as [`read_run`].
pub fn read_run_text(name: &Path, text: Vec<u8>) -> Result<RunTable> {
    read_source(Source::from_memory(name, text)?)
}

fn read_source(source: Source) -> Result<RunTable> {
    let table = RunTable::parse(&source, |_, _| true)?;
    if table.is_empty() {
        return Err(no_rows(&source.path));
    }
    Ok(table)
}
