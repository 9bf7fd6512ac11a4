//! A line of a TREC run: `query_id Q0 doc_id rank score tag`, separated by white space. Further columns are ignored.
//!
//! The rank column is ignored, as trec_eval ignores it.

use std::path::Path;

use super::line;
use super::number::parse_score;
use super::processor::{Plain, Processor};
use super::source::malformed;
use crate::error::{Error, quote};

/// One row, as positions in a buffer.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// Document id, as (start, end).
    pub doc: (usize, usize),
    /// Score, as (start, end).
    pub score: (usize, usize),
}

/// What is wrong with a query id that ends at `end`, if anything.
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

/// The row of a line that needs no second look, with single blanks between six or more columns, and where the next line
/// starts. `at` is just after its query id.
#[inline(always)]
pub(super) fn read_plain_row(
    processor: impl Processor,
    buffer: &[u8],
    at: usize,
    ascii: bool,
) -> Option<(Row, usize)> {
    let [iteration, doc, rank, score, end] = line::split(processor, buffer, at)?;
    let row = Row {
        doc: (at + iteration + 1, at + doc),
        score: (at + rank + 1, at + score),
    };
    let next = match buffer[at + end] {
        b'\n' => at + end + 1,
        b'\r' if buffer[at + end + 1] == b'\n' => at + end + 2,
        _ => return None,
    };
    let text = ascii || std::str::from_utf8(&buffer[row.doc.0..row.doc.1]).is_ok();
    text.then_some((row, next))
}

/// The row of any line, and where the next line starts. The line starts at `line_start`, and `at` is just after its
/// query id.
pub(super) fn read_row(
    buffer: &[u8],
    line_start: usize,
    at: usize,
    ascii: bool,
) -> std::result::Result<(Row, usize), String> {
    if let Some(row) = read_plain_row(Plain, buffer, at, ascii) {
        return Ok(row);
    }
    let (row, end) = find_fields(buffer, line_start, at)?;
    // The first thing that is wrong with a line is what its error names.
    read_score(buffer, &row)?;
    if !ascii && let Some(message) = line::invalid_utf8(&buffer[row.doc.0..row.doc.1]) {
        return Err(message);
    }
    Ok((row, end_of_line(buffer, end)?))
}

/// The score of a row. It can be NaN.
#[inline(always)]
pub(super) fn read_score(buffer: &[u8], row: &Row) -> std::result::Result<f64, String> {
    let text = &buffer[row.score.0..row.score.1];
    parse_score(text).ok_or_else(|| not_a_number(text))
}

/// The fields of any line, found one by one, and where the sixth column ends.
#[inline(never)]
fn find_fields(
    buffer: &[u8],
    line_start: usize,
    mut at: usize,
) -> std::result::Result<(Row, usize), String> {
    let fields = (|| {
        line::next_field(buffer, &mut at)?;
        let doc = line::next_field(buffer, &mut at)?;
        line::next_field(buffer, &mut at)?;
        let score = line::next_field(buffer, &mut at)?;
        let (_, end) = line::next_field(buffer, &mut at)?;
        Some((Row { doc, score }, end))
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

/// Skips everything after the sixth column. It must be text, and must not contain further lines.
#[cold]
fn further_columns(buffer: &[u8], at: usize) -> std::result::Result<usize, String> {
    let stop = memchr::memchr(b'\n', &buffer[at..]).map_or(buffer.len(), |n| at + n);
    let rest = buffer[at..stop].trim_ascii_end();
    if rest.contains(&b'\r') {
        let message = "contains a carriage return; convert the line endings (tr '\\r' '\\n')";
        return Err(message.to_owned());
    }
    let wrong = (at..at + rest.len()).find_map(|at| line::control_character(buffer, at));
    wrong.map_or(Ok(stop + 1), Err)
}

#[cold]
fn not_a_number(score: &[u8]) -> String {
    format!("the score {} is not a number", quote(score))
}

#[cold]
fn missing_columns(buffer: &[u8], line_start: usize, at: usize) -> String {
    line::control_character(buffer, at).unwrap_or_else(|| {
        let found = line::count_fields(buffer, line_start);
        let noun = if found == 1 { "column" } else { "columns" };
        format!("has {found} {noun}; a run line has 6: query_id Q0 doc_id rank score tag")
    })
}

/// The error of a file without rows.
pub(super) fn no_rows(path: &Path) -> Error {
    malformed(path, 0, "contains no run lines".to_owned())
}
