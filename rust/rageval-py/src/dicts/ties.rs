//! The order of documents with equal scores, whose ids are the keys of a dictionary.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rageval_core::ranking::{Candidate, TieOrder, Ties};

use super::JudgedQuery;
use super::entries::Entries;
use super::values::{changed, not_str};

/// Up to this many documents of a tied group are each compared with all others; above that, the group is sorted.
const COMPARED: usize = 8;

/// Ties among the keys of a dictionary.
pub(super) struct DictTies<'a, 'py> {
    pub(super) query: &'a JudgedQuery<'py>,
    pub(super) ranking: &'a Bound<'py, PyDict>,
    /// Whether the ranking holds the query itself, which does not count.
    pub(super) holds_self: bool,
    pub(super) ties: Ties,
    /// Scores as they are compared, by row: the place in the ranking, not counting the query itself.
    pub(super) scores: &'a [f64],
    pub(super) judged: &'a [Bound<'py, PyString>],
    /// Keys by row, borrowed from the ranking when the first tie needs them. No foreign code that could remove one runs
    /// after that: keys are only compared, and processing stops after an error.
    pub(super) keys: &'a mut Vec<*mut ffi::PyObject>,
    /// The rows of one tied group.
    pub(super) rows: &'a mut Vec<u32>,
    pub(super) places: Option<Vec<u32>>,
    pub(super) error: Option<PyErr>,
}

impl DictTies<'_, '_> {
    fn collect(&mut self) -> PyResult<()> {
        // SAFETY: `ranking` holds the GIL token and a reference.
        let mut entries = unsafe { Entries::new(self.ranking) };
        while let Some((key, _)) = entries.next() {
            let is_self =
                self.holds_self && is_str(key) && compare(key, self.query.id.as_ptr()).is_eq();
            if !is_self {
                self.keys.push(key);
            }
        }
        if self.keys.len() == self.scores.len() {
            return Ok(());
        }
        Err(changed(self.query))
    }

    fn key(&self, row: u32) -> *mut ffi::PyObject {
        self.keys[row as usize]
    }

    /// Finds the rows with this score.
    fn gather(&mut self, score: f64) -> PyResult<()> {
        if self.keys.is_empty() {
            self.collect()?;
        }
        let rows = (0u32..).zip(self.scores).filter(|(_, own)| **own == score);
        self.rows.clear();
        self.rows.extend(rows.map(|(row, _)| row));
        let Some(row) = self.rows.iter().find(|row| !is_str(self.key(**row))) else {
            return Ok(());
        };
        // SAFETY: the key is borrowed from a live dictionary, see `keys`.
        let key = unsafe { Bound::from_borrowed_ptr(self.ranking.py(), self.key(*row)) };
        let what = format!("run[{:?}]: the doc_id", self.query.id);
        Err(not_str(&what, &key))
    }

    /// How many of the rows stand above each document by id, descending.
    fn rank_by_id(&mut self, tied: &[Candidate], offsets: &mut [u32]) {
        let mut rows = std::mem::take(self.rows);
        let sorted = tied.len() > COMPARED;
        if sorted {
            rows.sort_unstable_by(|a, b| compare(self.key(*b), self.key(*a)));
        }
        for (offset, candidate) in offsets.iter_mut().zip(tied) {
            let doc = self.judged[candidate.key as usize].as_ptr();
            let above = |row: &u32| compare(self.key(*row), doc).is_gt();
            *offset = if sorted {
                rows.partition_point(above)
            } else {
                rows.iter().filter(|row| above(row)).count()
            } as u32;
        }
        *self.rows = rows;
    }

    /// How many of the rows are above each document, by their places.
    fn rank_by_place(&mut self, places: &[u32], tied: &[Candidate], offsets: &mut [u32]) {
        let mut rows = std::mem::take(self.rows);
        rows.sort_unstable_by(|a, b| compare(self.key(*b), self.key(*a)));
        for (offset, candidate) in offsets.iter_mut().zip(tied) {
            let doc = self.judged[candidate.key as usize].as_ptr();
            let found = rows.partition_point(|row| compare(self.key(*row), doc).is_gt());
            *offset = rows.get(found).map_or(0, |row| places[*row as usize]);
        }
        rows.sort_unstable_by_key(|row| places[*row as usize]);
        for offset in offsets {
            *offset = rows.partition_point(|row| places[*row as usize] < *offset) as u32;
        }
        *self.rows = rows;
    }

    fn order(&mut self, score: f64, tied: &[Candidate], offsets: &mut [u32]) -> PyResult<()> {
        self.gather(score)?;
        match self.places.take().or_else(|| self.ties.places(self.scores)) {
            None => self.rank_by_id(tied, offsets),
            Some(places) => {
                self.rank_by_place(&places, tied, offsets);
                self.places = Some(places);
            }
        }
        Ok(())
    }
}

impl TieOrder for DictTies<'_, '_> {
    fn offsets(&mut self, score: f64, tied: &[Candidate], offsets: &mut Vec<u32>) {
        if self.error.is_none() {
            self.error = self.order(score, tied, offsets).err();
        }
    }
}

fn is_str(key: *mut ffi::PyObject) -> bool {
    // SAFETY: every caller holds the GIL, and the key is alive: see `DictTies::keys`.
    unsafe { ffi::PyUnicode_Check(key) != 0 }
}

/// Compares by code points, which is the order of UTF-8 bytes.
fn compare(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> std::cmp::Ordering {
    // SAFETY: every caller holds the GIL, and both are `str` objects that are alive: see `DictTies::keys`. Comparing
    // two of them runs no foreign code.
    unsafe { ffi::PyUnicode_Compare(a, b) }.cmp(&0)
}
