//! A run held in memory: for callers that want its rows, and for files in which the rows of a query are not adjacent.

use std::path::{Path, PathBuf};

use super::run_row::{no_rows, read_row, read_score, wrong_query};
use super::source::{Source, malformed};
use super::walk::{Head, read_head};
use crate::error::{Error, Result};
use crate::evaluation::{Rows, nan_message};

/// Ids as positions in the text.
struct Row {
    query: usize,
    doc: usize,
    query_length: u32,
    doc_length: u32,
    score: f64,
}

/// A whole run in memory, in the order of the file.
pub struct RunTable {
    text: Vec<u8>,
    rows: Vec<Row>,
    path: PathBuf,
}

impl RunTable {
    pub(super) fn parse(source: Source) -> Result<Self> {
        let path = source.path.clone();
        let (text, end) = source.read_all()?;
        let ascii = text.is_ascii();
        let mut rows = Vec::new();
        let mut at = 0;
        while at < end {
            match read_head(&text, at) {
                Head::Blank(next) => at = next,
                Head::Query(from, to) => {
                    let (row, next) = parse_row(&text, at, (from, to), ascii)
                        .map_err(|message| error_at(&path, &text, at, message))?;
                    rows.push(row);
                    at = next;
                }
            }
        }
        Ok(Self { text, rows, path })
    }

    /// Replaces the row number in an error by the line of the file.
    pub(super) fn locate(&self, error: Error) -> Error {
        match error {
            Error::Row { row, message, .. } => {
                error_at(&self.path, &self.text, self.rows[row].query, message)
            }
            other => other,
        }
    }
}

fn parse_row(
    text: &[u8],
    at: usize,
    (from, to): (usize, usize),
    ascii: bool,
) -> std::result::Result<(Row, usize), String> {
    if let Some(message) = wrong_query(text, from, to, ascii) {
        return Err(message);
    }
    let (row, next) = read_row(text, at, to, ascii)?;
    let score = read_score(text, &row)?;
    if score.is_nan() {
        return Err(nan_message(&text[from..to], &text[row.doc.0..row.doc.1]));
    }
    let length =
        |length| u32::try_from(length).map_err(|_| "has an id longer than 4 GB".to_owned());
    let parsed = Row {
        query: from,
        doc: row.doc.0,
        query_length: length(to - from)?,
        doc_length: length(row.doc.1 - row.doc.0)?,
        score,
    };
    Ok((parsed, next))
}

#[cold]
fn error_at(path: &Path, text: &[u8], at: usize, message: String) -> Error {
    let line = memchr::memchr_iter(b'\n', &text[..at]).count() as u64 + 1;
    malformed(path, line, message)
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
    let table = RunTable::parse(source)?;
    if table.is_empty() {
        return Err(no_rows(&table.path));
    }
    Ok(table)
}
