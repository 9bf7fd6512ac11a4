//! The documents of one query, while their scores are added up.

use super::{Fault, Problem, Retrieved};
use crate::evaluation::Rows;
use crate::hash::{IndexTable, hash};
use crate::ranking::Ties;

/// Documents found so far; reuses its memory from query to query.
#[derive(Default)]
pub(super) struct Pool {
    table: IndexTable,
    entries: Vec<Entry>,
}

/// A document: where it first occurs, the run in which it was last seen, and the sum so far.
pub(super) struct Entry {
    hash: u64,
    pub(super) run: u32,
    pub(super) row: u32,
    last_run: u32,
    pub(super) score: f64,
}

impl Pool {
    /// Removes all documents and makes room for `expected` ones.
    pub(super) fn clear(&mut self, expected: usize) {
        self.table.reset(expected);
        self.entries.clear();
    }

    /// Adds `value` to the document of a row. A new document starts with `start`.
    pub(super) fn add<R: Rows>(
        &mut self,
        runs: &[R],
        run: u32,
        row: u32,
        start: f64,
        value: f64,
    ) -> Result<(), Problem> {
        let doc = runs[run as usize].doc(row as usize);
        let (hash, entries) = (hash(doc), &self.entries);
        let is_it = |index: usize| {
            let entry = &entries[index];
            entry.hash == hash && runs[entry.run as usize].doc(entry.row as usize) == doc
        };
        let known = self
            .table
            .find_or_insert(hash, entries.len(), is_it, |index| entries[index].hash);
        match known.map(|index| &mut self.entries[index]) {
            None => self.entries.push(Entry {
                hash,
                run,
                row,
                last_run: run,
                score: start + value,
            }),
            Some(entry) if entry.last_run == run => {
                return Err(Problem {
                    run,
                    row,
                    fault: Fault::Duplicate,
                });
            }
            Some(entry) => {
                entry.last_run = run;
                entry.score += value;
            }
        }
        Ok(())
    }

    /// Adds `value` to the documents that `run` does not contain.
    pub(super) fn add_to_absent(&mut self, run: u32, value: f64) {
        let absent = self
            .entries
            .iter_mut()
            .filter(|entry| entry.last_run != run);
        absent.for_each(|entry| entry.score += value);
    }

    pub(super) fn find_not_finite(&self) -> Option<&Entry> {
        self.entries.iter().find(|entry| !entry.score.is_finite())
    }

    /// The best documents in order, at most `depth`. Scores must not be NaN.
    pub(super) fn best<'a>(
        &mut self,
        depth: usize,
        id: impl Fn(&Entry) -> &'a [u8],
    ) -> Vec<Retrieved> {
        let key = |entry: &Entry| Ties::TrecEval.cast(entry.score);
        let order = |a: &Entry, b: &Entry| key(b).total_cmp(&key(a)).then_with(|| id(b).cmp(id(a)));
        if depth < self.entries.len() {
            self.entries.select_nth_unstable_by(depth - 1, order);
            self.entries.truncate(depth);
        }
        self.entries.sort_unstable_by(order);
        let places = self.entries.iter();
        places
            .map(|entry| Retrieved {
                run: entry.run,
                row: entry.row,
                score: entry.score,
            })
            .collect()
    }
}
