//! Query by query: reads the judgements, looks them up in the ranking, reads its scores, computes the measures.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rageval_core::evaluation::{Evaluator, Part, Scratch};
use rageval_core::judgements::Grades;
use rageval_core::ranking::Candidate;

use super::JudgedQuery;
use super::entries::{Entries, number, pairs};
use super::ties::DictTies;
use super::values::{exact_str, find_bad_score, read_relevance, read_score};

/// Reads query by query.
pub(super) struct Walk<'py, 'e> {
    evaluator: &'e Evaluator,
    scratch: Scratch,
    pub(super) grades: Grades,
    keys: Vec<Bound<'py, PyString>>,
    tied_keys: Vec<*mut ffi::PyObject>,
    tied_rows: Vec<u32>,
    scores: Vec<f64>,
}

impl<'py, 'e> Walk<'py, 'e> {
    pub(super) fn new(evaluator: &'e Evaluator) -> Self {
        Self {
            evaluator,
            scratch: Scratch::default(),
            grades: Grades::default(),
            keys: Vec::new(),
            tied_keys: Vec::new(),
            tied_rows: Vec::new(),
            scores: Vec::new(),
        }
    }

    /// Reads the judgements and looks up their documents in the ranking.
    pub(super) fn read(
        &mut self,
        query: &JudgedQuery<'py>,
        ranking: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        self.grades.clear();
        self.keys.clear();
        self.scratch.candidates.clear();
        for (doc, relevance) in pairs(&query.judged) {
            let doc = exact_str(doc, "qrels: the doc_id")?;
            let relevance = read_relevance(query, &doc, &relevance)?;
            self.grades.push(relevance);
            if !self.evaluator.looks_at(relevance)
                || (self.evaluator.options.drop_self && is_self(query, &doc)?)
            {
                continue;
            }
            let Some(ranking) = ranking else { continue };
            if let Some(score) = ranking.get_item(&doc)? {
                let score =
                    self.evaluator
                        .options
                        .ties
                        .cast(read_score(query, doc.as_any(), &score)?);
                self.scratch.candidates.push(Candidate::new(
                    score,
                    relevance,
                    self.keys.len() as u32,
                ));
                self.keys.push(doc);
            }
        }
        self.grades.finish();
        Ok(())
    }

    pub(super) fn measure(
        &mut self,
        index: usize,
        query: &JudgedQuery<'py>,
        ranking: &Bound<'py, PyDict>,
        part: &mut Part,
    ) -> PyResult<()> {
        let own = if self.evaluator.options.drop_self {
            ranking.get_item(&query.id)?
        } else {
            None
        };
        match &own {
            None => self.scan(query, ranking)?,
            Some(_) => self.scan_without_self(query, ranking)?,
        }
        self.scores.clone_from(&self.scratch.scores);
        self.tied_keys.clear();
        let mut order = DictTies {
            query,
            ranking,
            holds_self: own.is_some(),
            ties: self.evaluator.options.ties,
            scores: &self.scores,
            judged: &self.keys,
            keys: &mut self.tied_keys,
            rows: &mut self.tied_rows,
            places: None,
            error: None,
        };
        self.evaluator
            .measure(index, &self.grades, &mut self.scratch, &mut order, part);
        order.error.map_or(Ok(()), Err)
    }

    /// Copies the ranking's scores.
    fn scan(&mut self, query: &JudgedQuery<'py>, ranking: &Bound<'py, PyDict>) -> PyResult<()> {
        let ties = self.evaluator.options.ties;
        let scores = &mut self.scratch.scores;
        scores.clear();
        scores.reserve(ranking.len());
        let mut nan = false;
        // SAFETY: `ranking` holds the GIL token and a reference.
        let mut entries = unsafe { Entries::new(ranking) };
        while let Some((_, value)) = entries.next() {
            // SAFETY: `value` is borrowed from a live dictionary, and no other code has run since.
            let Ok(score) = (unsafe { number(ranking.py(), value) }) else {
                return Err(find_bad_score(query, ranking));
            };
            nan |= score.is_nan();
            scores.push(ties.cast(score));
        }
        if nan {
            Err(find_bad_score(query, ranking))
        } else {
            Ok(())
        }
    }

    #[cold]
    fn scan_without_self(
        &mut self,
        query: &JudgedQuery<'py>,
        ranking: &Bound<'py, PyDict>,
    ) -> PyResult<()> {
        self.scratch.scores.clear();
        for (doc, score) in pairs(ranking) {
            let score = read_score(query, &doc, &score)?;
            if !doc.eq(&query.id)? {
                self.scratch
                    .scores
                    .push(self.evaluator.options.ties.cast(score));
            }
        }
        Ok(())
    }
}

fn is_self(query: &JudgedQuery<'_>, doc: &Bound<'_, PyString>) -> PyResult<bool> {
    doc.as_any().eq(&query.id)
}
