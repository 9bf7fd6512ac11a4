//! A run as rows in memory, divided among threads at the borders between queries.

use std::collections::HashMap;
use std::ops::Range;

use super::{Decimals, Evaluation, Evaluator, Met, Part, Scratch, nan_message};
use crate::error::{Error, Result};
use crate::judgements::Judgements;
use crate::threads;

/// About how many rows a thread takes at a time.
const ROWS_PER_TASK: usize = 1 << 15;

/// A run as rows.
pub trait Rows: Sync {
    /// The number of rows.
    fn len(&self) -> usize;
    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// A row's query id.
    fn query(&self, row: usize) -> &[u8];
    /// Whether two rows belong to the same query.
    #[inline]
    fn same_query(&self, a: usize, b: usize) -> bool {
        self.query(a) == self.query(b)
    }
    /// A row's document id.
    fn doc(&self, row: usize) -> &[u8];
    /// A row's score.
    fn score(&self, row: usize) -> f64;
    /// Writes the document ids of the rows `row(0), ..., row(n - 1)` if they are whole numbers, which is faster than to
    /// ask for each. Otherwise returns false.
    fn write_docs(&self, n: usize, row: impl Fn(usize) -> usize, ids: &mut Decimals) -> bool {
        let _ = (n, row, ids);
        false
    }
}

impl Evaluator {
    /// Evaluates a run given as rows. The rows of a query can be anywhere.
    ///
    /// # Errors
    /// [`Error::Row`] for a NaN score or a document that occurs twice in a query; [`Error::Usage`] for more than 4
    /// billion rows, and the errors of [`Self::assemble`].
    pub fn evaluate_rows<R: Rows>(&self, judgements: &Judgements, rows: &R) -> Result<Evaluation> {
        let together = self.evaluate_segments(judgements, rows, ROWS_PER_TASK, &|row| row)?;
        let parts = match together {
            Some(parts) => parts,
            None => self.evaluate_grouped(judgements, rows)?,
        };
        self.assemble_judged(&parts, judgements)?
            .ok_or_else(not_grouped)
    }

    /// The parts of rows whose queries are not together.
    pub(crate) fn evaluate_grouped<R: Rows>(
        &self,
        judgements: &Judgements,
        rows: &R,
    ) -> Result<Vec<Part>> {
        let order = group_by_query(rows)?;
        let at = |row: usize| order[row] as usize;
        self.evaluate_segments(judgements, rows, ROWS_PER_TASK, &at)?
            .ok_or_else(not_grouped)
    }

    /// Evaluates the rows `at(0), at(1), ...`; adjacent rows of the same query form a ranking. `None` if a query occurs
    /// again later.
    pub(super) fn evaluate_segments<R: Rows>(
        &self,
        judgements: &Judgements,
        rows: &R,
        rows_per_task: usize,
        at: &(impl Fn(usize) -> usize + Sync),
    ) -> Result<Option<Vec<Part>>> {
        let end_of_query = |row: usize| {
            (row + 1..rows.len())
                .find(|&next| !rows.same_query(at(next), at(next - 1)))
                .unwrap_or(rows.len())
        };
        let ranges = cut(rows.len(), rows_per_task, end_of_query);
        let threads = threads::resolve(self.options.threads);
        let met = Met::new(judgements);
        let parts = threads::try_map(ranges.len(), threads, |task, scratch: &mut Scratch| {
            let mut part = Part::default();
            let mut start = ranges[task].start;
            while start < ranges[task].end && !met.again() {
                let end = end_of_query(start);
                let query = rows.query(at(start));
                match judgements.find(query) {
                    None => drop(part.unjudged.insert(query.to_vec())),
                    Some(index) => {
                        met.enter(index);
                        let segment = start..end;
                        self.evaluate_segment(
                            judgements, rows, index, segment, at, scratch, &mut part,
                        )?;
                    }
                }
                start = end;
            }
            Ok(part)
        });
        if met.again() {
            return Ok(None);
        }
        parts.map(Some)
    }

    #[allow(clippy::too_many_arguments)]
    fn evaluate_segment<R: Rows>(
        &self,
        judgements: &Judgements,
        rows: &R,
        index: usize,
        segment: Range<usize>,
        at: &impl Fn(usize) -> usize,
        scratch: &mut Scratch,
        part: &mut Part,
    ) -> Result<()> {
        let row = |i: usize| at(segment.start + i);
        let mut ids = std::mem::take(&mut scratch.decimals);
        let evaluated = if rows.write_docs(segment.len(), row, &mut ids) {
            let doc = |i| ids.get(i);
            self.evaluate_docs(
                judgements,
                rows,
                index,
                segment.len(),
                row,
                doc,
                scratch,
                part,
            )
        } else {
            let doc = |i| rows.doc(row(i));
            self.evaluate_docs(
                judgements,
                rows,
                index,
                segment.len(),
                row,
                doc,
                scratch,
                part,
            )
        };
        scratch.decimals = ids;
        evaluated.map_err(|(i, message)| Error::Row {
            table: "run".into(),
            row: row(i),
            message,
        })
    }

    #[allow(clippy::too_many_arguments)]
    fn evaluate_docs<'d, R: Rows>(
        &self,
        judgements: &Judgements,
        rows: &R,
        index: usize,
        n: usize,
        row: impl Fn(usize) -> usize,
        doc: impl Fn(usize) -> &'d [u8],
        scratch: &mut Scratch,
        part: &mut Part,
    ) -> std::result::Result<(), (usize, String)> {
        let score = |i: usize| rows.score(row(i));
        let nan = (0..n).find(|&i| score(i).is_nan());
        let before = nan.unwrap_or(n);
        self.evaluate_ranking(judgements, index, before, &doc, score, scratch, part)?;
        nan.map_or(Ok(()), |i| {
            let query = &judgements.query_ids()[index];
            Err((i, nan_message(query, doc(i))))
        })
    }
}

/// Cuts `0..n` at the ends of queries into ranges of at least `size` rows; the last one can be shorter.
pub(super) fn cut(
    n: usize,
    size: usize,
    end_of_query: impl Fn(usize) -> usize,
) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    while start < n {
        let end = if n - start <= size {
            n
        } else {
            end_of_query(start + size - 1)
        };
        ranges.push(start..end);
        start = end;
    }
    ranges
}

/// The error of grouped rows that are not grouped, which cannot be.
pub(crate) fn not_grouped() -> Error {
    Error::Usage("the rows of a query could not be grouped".to_owned())
}

/// Row numbers that group the rows of each query, in their original order within the query.
fn group_by_query<R: Rows>(rows: &R) -> Result<Vec<u32>> {
    let n = u32::try_from(rows.len())
        .map_err(|_| Error::Usage("the run has more than 4 billion rows; split it".to_owned()))?;
    let mut first_seen = HashMap::new();
    let groups: Vec<u32> = (0..rows.len())
        .map(|row| {
            let next = first_seen.len() as u32;
            *first_seen.entry(rows.query(row)).or_insert(next)
        })
        .collect();
    let mut order: Vec<u32> = (0..n).collect();
    order.sort_by_key(|row| groups[*row as usize]);
    Ok(order)
}
