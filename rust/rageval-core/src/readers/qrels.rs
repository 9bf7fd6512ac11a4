//! Qrels files: TREC's four columns `query_id iter doc_id relevance`, or BEIR's three, separated by tabs, with a
//! header.

use std::path::Path;

use super::line;
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
    /// Relevance. Negative values mean "in the pool, not judged".
    pub relevance: i32,
}

/// Reads a qrels file, calling `take` for each row in the order of the file.
///
/// # Errors
/// [`crate::error::Error::Malformed`] with the line for a row with the wrong number of columns, a relevance that is not
/// a whole number, an id that is not UTF-8, or an error from `take`; and for a file without rows.
pub fn read_qrels(path: &Path, take: impl FnMut(QrelsRow<'_>) -> Result<()>) -> Result<()> {
    read_source(Source::open(path)?, take)
}

/// Reads qrels whose text, plain or compressed, is in memory. Errors refer to it as `name`.
///
/// # Errors
/// The same as [`read_qrels`].
pub fn read_qrels_text(
    name: &Path,
    text: Vec<u8>,
    take: impl FnMut(QrelsRow<'_>) -> Result<()>,
) -> Result<()> {
    read_source(Source::from_memory(name, text)?, take)
}

/// Reads a qrels file into an index.
///
/// # Errors
/// The same as [`read_qrels`], and a query and document that are judged twice.
pub fn read_judgements(path: &Path) -> Result<Judgements> {
    index_source(Source::open(path)?)
}

/// Reads qrels whose text, plain or compressed, is in memory into an index. Errors refer to it as `name`.
///
/// # Errors
/// The same as [`read_judgements`].
pub fn read_judgements_text(name: &Path, text: Vec<u8>) -> Result<Judgements> {
    index_source(Source::from_memory(name, text)?)
}

fn index_source(source: Source) -> Result<Judgements> {
    let mut judgements = Judgements::default();
    read_source(source, |row| {
        judgements.push(row.query, row.doc, row.relevance)
    })?;
    judgements.finish();
    Ok(judgements)
}

fn read_source(source: Source, mut take: impl FnMut(QrelsRow<'_>) -> Result<()>) -> Result<()> {
    let path = source.path.clone();
    let (text, end) = source.read_all()?;
    let mut reader = QrelsReader {
        layout: None,
        ascii: text.is_ascii(),
    };
    let (mut at, mut number, mut rows) = (0, 0, 0u64);
    while at < end {
        number += 1;
        let stop = memchr::memchr(b'\n', &text[at..end]).map_or(end, |n| at + n);
        let row = reader.read(&text, at, stop);
        if let Some(row) = row.map_err(|message| malformed(&path, number, message))? {
            take(row).map_err(|error| malformed(&path, number, error.to_string()))?;
            rows += 1;
        }
        at = stop + 1;
    }
    if rows == 0 {
        return Err(malformed(&path, 0, "contains no judgements".to_owned()));
    }
    Ok(())
}

struct QrelsReader {
    /// The layout, as the first line that is not blank shows it.
    layout: Option<Layout>,
    ascii: bool,
}

impl QrelsReader {
    /// The row of the line `start..stop`, or `None` for a blank line or a header.
    fn read<'a>(
        &mut self,
        text: &'a [u8],
        start: usize,
        stop: usize,
    ) -> std::result::Result<Option<QrelsRow<'a>>, String> {
        let content = text[start..stop].trim_ascii_end();
        if content.is_empty() {
            return Ok(None);
        }
        let first = self.layout.is_none();
        let row = match *self.layout.get_or_insert_with(|| Layout::of(content)) {
            Layout::Trec => read_trec(text, start)?,
            Layout::Beir if first && is_header(content) => return Ok(None),
            Layout::Beir => read_beir(content)?,
        };
        if self.ascii {
            return Ok(Some(row));
        }
        let wrong = line::invalid_utf8(row.query).or_else(|| line::invalid_utf8(row.doc));
        wrong.map_or(Ok(Some(row)), Err)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Trec,
    Beir,
}

impl Layout {
    /// Three columns separated by tabs are BEIR's; everything else must have TREC's four.
    fn of(content: &[u8]) -> Self {
        if content.split(|byte| *byte == b'\t').count() == 3 {
            Self::Beir
        } else {
            Self::Trec
        }
    }
}

/// A header's last column is a word. Anything else that is not a relevance is a mistake and must not pass as a header.
fn is_header(content: &[u8]) -> bool {
    let last = content.rsplit(|byte| *byte == b'\t').next();
    let last = last.unwrap_or_default().trim_ascii();
    let word = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_' | b' ');
    let no_value = ["nan", "inf", "infinity", "none", "null", "na"];
    last.len() > 1
        && last.iter().all(word)
        && last.iter().any(u8::is_ascii_alphabetic)
        && !no_value
            .iter()
            .any(|value| last.eq_ignore_ascii_case(value.as_bytes()))
}

fn read_trec(text: &[u8], start: usize) -> std::result::Result<QrelsRow<'_>, String> {
    let mut at = start;
    let mut field = || line::next_field(text, &mut at).map(|(from, to)| &text[from..to]);
    let fields = [field(), field(), field(), field(), field()];
    if let Some(message) = line::control_character(text, at) {
        return Err(message);
    }
    let [Some(query), Some(_), Some(doc), Some(relevance), None] = fields else {
        return Err(format!(
            "has {} columns; a qrels line has 4: query_id 0 doc_id relevance (or 3 separated by tabs, as in BEIR)",
            line::count_fields(text, start)
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
            "has {} columns; expected 3, separated by tabs: query-id corpus-id score",
            fields.len()
        ));
    };
    if query.is_empty() || doc.is_empty() {
        return Err("has an empty id".to_owned());
    }
    let wrong = |id: &[u8]| (0..id.len()).find_map(|at| line::control_character(id, at));
    if let Some(message) = wrong(query).or_else(|| wrong(doc)) {
        return Err(message);
    }
    Ok(QrelsRow {
        query,
        doc,
        relevance: relevance_of(relevance)?,
    })
}

fn relevance_of(text: &[u8]) -> std::result::Result<i32, String> {
    parse_relevance(text).ok_or_else(|| {
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        let whole = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let fault = if whole {
            "does not fit in 32 bits"
        } else {
            "is not a whole number"
        };
        format!("the relevance {} {fault}", quote(text))
    })
}
