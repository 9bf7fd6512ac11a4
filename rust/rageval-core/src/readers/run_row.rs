//! A line of a TREC run: `query_id Q0 doc_id rank score tag`, separated by white space. Further columns are ignored.
//!
//! The rank column is ignored, as trec_eval ignores it.

use std::path::Path;

use super::line;
use super::number::parse_score;
use super::source::malformed;
use crate::error::{Error, quote};

/// One row, as positions in a buffer.
pub(super) struct Row {
    /// Document id, as (start, end).
    pub doc: (usize, usize),
    pub score: f64,
    /// Where the next line starts.
    pub next: usize,
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

/// The fields of a line that are used, as positions in a buffer.
struct Fields {
    doc: (usize, usize),
    score: (usize, usize),
    /// Where the sixth column ends.
    end: usize,
}

/// Reads the rest of a row, from `at`, just after its query id. The line starts at `line_start`.
// As a call it would take a tenth longer per row.
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

/// The fields of any line, found one by one.
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
