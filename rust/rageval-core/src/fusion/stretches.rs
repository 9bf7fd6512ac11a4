//! Where the queries of several runs are.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::evaluation::Rows;
use crate::hash::{IndexTable, hash};

/// Adjacent rows of one run and one query.
pub(super) struct Stretch {
    pub(super) query: u32,
    pub(super) run: u32,
    pub(super) start: u32,
    end: u32,
}

impl Stretch {
    pub(super) fn rows(&self) -> Range<u32> {
        self.start..self.end
    }

    pub(super) fn len(&self) -> usize {
        self.rows().len()
    }
}

/// All rows of `runs` in stretches, by query in the order in which they first appear, then by run, then by row.
pub(super) fn find_stretches<R: Rows>(runs: &[R]) -> Result<Vec<Stretch>> {
    if runs.iter().map(Rows::len).sum::<usize>() >= u32::MAX as usize {
        return Err(Error::Usage(
            "the runs have more than 4 billion rows; split them by query".to_owned(),
        ));
    }
    let mut queries = Queries {
        runs,
        table: IndexTable::default(),
        first: Vec::new(),
    };
    let mut stretches = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let mut start = 0;
        while start < run.len() {
            let next = (start + 1..run.len()).find(|&row| !run.same_query(row - 1, row));
            let end = next.unwrap_or(run.len());
            stretches.push(Stretch {
                query: queries.number(number, start),
                run: number as u32,
                start: start as u32,
                end: end as u32,
            });
            start = end;
        }
    }
    stretches.sort_by_key(|stretch| (stretch.query, stretch.run));
    Ok(stretches)
}

/// Query ids, numbered in the order in which they occur.
struct Queries<'a, R> {
    runs: &'a [R],
    table: IndexTable,
    /// Hash, run and row of each.
    first: Vec<(u64, usize, usize)>,
}

impl<R: Rows> Queries<'_, R> {
    fn number(&mut self, run: usize, row: usize) -> u32 {
        let id = self.runs[run].query(row);
        let (hash, runs, first) = (hash(id), self.runs, &self.first);
        let is_it = |index: usize| {
            let (other, run, row) = first[index];
            other == hash && runs[run].query(row) == id
        };
        let known = self
            .table
            .find_or_insert(hash, first.len(), is_it, |index| first[index].0);
        let number = known.unwrap_or(first.len());
        if known.is_none() {
            self.first.push((hash, run, row));
        }
        number as u32
    }
}
