//! Qrels files: TREC's four columns `query_id iter doc_id relevance`, or BEIR's three with tabs and a header line.

use std::path::Path;

use super::line::{self, PADDING};
use super::number::parse_relevance;
use super::source::{Source, malformed};
use crate::error::{Result, quote};
use crate::judgements::Judgements;

/// One judgement, borrowed from the text.
pub struct QrelsRow<'a> {
    /// Query id.
    pub query: &'a [u8],
    /// Document id.
    pub doc: &'a [u8],
    /// Relevance; negative values are "in the pool, not judged".
    pub relevance: i32,
}

/// Reads a qrels file, calling `take` for each row in the order of the file.
///
/// # Errors
/// [`crate::error::Error::Malformed`] with the line of a row with another number of columns, of a relevance that is no whole number,
/// of an id that is not UTF-8, or for which `take` gives an error; and for a file without rows.
pub fn read_qrels(path: &Path, mut take: impl FnMut(QrelsRow<'_>) -> Result<()>) -> Result<()> {
    let mut text = Source::open(path)?.read_all()?;
    let end = text.len();
    text.extend([b'\n'; PADDING]);
    let ascii = text.is_ascii();
    let mut layout = None;
    let (mut at, mut number, mut rows) = (0, 0u64, 0u64);
    while at < end {
        number += 1;
        let stop = memchr::memchr(b'\n', &text[at..])
            .map_or(end, |n| at + n)
            .min(end);
        let content = text[at..stop].trim_ascii_end();
        let start = std::mem::replace(&mut at, stop + 1);
        if content.trim_ascii().is_empty() {
            continue;
        }
        let first = layout.is_none();
        let layout = *layout.get_or_insert_with(|| Layout::of(content));
        if first && layout == Layout::Beir && is_header(content) {
            continue;
        }
        let fail = |message| malformed(path, number, message);
        let row = match layout {
            Layout::Trec => read_trec(&text, start),
            Layout::Beir => read_beir(content),
        };
        let row = row.map_err(fail)?;
        if !ascii
            && let Some(message) =
                line::invalid_utf8(row.query).or_else(|| line::invalid_utf8(row.doc))
        {
            return Err(fail(message));
        }
        take(row).map_err(|error| fail(error.to_string()))?;
        rows += 1;
    }
    if rows == 0 {
        return Err(malformed(path, 0, "holds no judgement".to_owned()));
    }
    Ok(())
}

/// Reads a qrels file into an index.
///
/// # Errors
/// As [`read_qrels`]; a pair of query and document that is judged twice too.
pub fn read_judgements(path: &Path) -> Result<Judgements> {
    let mut judgements = Judgements::default();
    read_qrels(path, |row| {
        judgements.push(row.query, row.doc, row.relevance)
    })?;
    judgements.finish();
    Ok(judgements)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Trec,
    Beir,
}

impl Layout {
    /// Three columns by tabs are BEIR's; everything else is held against TREC's four.
    fn of(content: &[u8]) -> Self {
        if content.split(|byte| *byte == b'\t').count() == 3 {
            Self::Beir
        } else {
            Self::Trec
        }
    }
}

fn is_header(content: &[u8]) -> bool {
    let last = content
        .rsplit(|byte| *byte == b'\t')
        .next()
        .unwrap_or_default();
    parse_relevance(last.trim_ascii()).is_none() && last.iter().any(u8::is_ascii_alphabetic)
}

fn read_trec(text: &[u8], start: usize) -> std::result::Result<QrelsRow<'_>, String> {
    let mut at = start;
    let fields: Vec<&[u8]> = std::iter::from_fn(|| line::next_field(text, &mut at))
        .map(|(from, to)| &text[from..to])
        .collect();
    if let Some(message) = line::control_character(text, at) {
        return Err(message);
    }
    let [query, _, doc, relevance] = fields[..] else {
        return Err(format!(
            "has {} columns, a qrels line has 4: query_id 0 doc_id relevance (or 3 with tabs, as BEIR writes them)",
            fields.len()
        ));
    };
    Ok(QrelsRow {
        query,
        doc,
        relevance: relevance_of(relevance)?,
    })
}

fn read_beir(content: &[u8]) -> std::result::Result<QrelsRow<'_>, String> {
    let fields: Vec<&[u8]> = content
        .split(|byte| *byte == b'\t')
        .map(<[u8]>::trim_ascii)
        .collect();
    let [query, doc, relevance] = fields[..] else {
        return Err(format!(
            "has {} columns, expected 3 with tabs: query-id corpus-id score",
            fields.len()
        ));
    };
    if query.is_empty() || doc.is_empty() {
        return Err("has an empty id".to_owned());
    }
    Ok(QrelsRow {
        query,
        doc,
        relevance: relevance_of(relevance)?,
    })
}

fn relevance_of(text: &[u8]) -> std::result::Result<i32, String> {
    parse_relevance(text)
        .ok_or_else(|| format!("the relevance {} is not a whole number", quote(text)))
}
