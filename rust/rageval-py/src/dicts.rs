//! Evaluation of `{query: {doc: score}}` against `{query: {doc: relevance}}` as they are in Python's memory.
//!
//! The run's dictionaries are probed with the judged documents, whose hashes Python has cached, and only their float
//! values are scanned; strings are compared at ties alone. Nothing is copied but the scores of one query at a time.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};
use rageval_core::evaluation::{self, Evaluator, Part, Scratch};
use rageval_core::judgements::{Grades, Judgements};
use rageval_core::ranking::{Candidate, TieOrder, Ties};

use crate::errors::to_python;

/// One query of the judgements.
struct JudgedQuery<'py> {
    id: Bound<'py, PyString>,
    judged: Bound<'py, PyDict>,
}

pub(crate) fn evaluate(
    evaluator: &Evaluator,
    qrels: &Bound<'_, PyDict>,
    run: &Bound<'_, PyDict>,
) -> PyResult<evaluation::Evaluation> {
    let queries = judged_queries(qrels)?;
    let mut walk = Walk::new(evaluator);
    let mut part = Part::default();
    let mut grades: Vec<Grades> = Vec::new();
    let keeps_grades = evaluator.options.missing_as_empty;
    let mut no_relevant = Vec::with_capacity(queries.len());
    for (index, query) in queries.iter().enumerate() {
        let ranking = run.get_item(&query.id)?;
        if ranking.is_none() && !keeps_grades {
            no_relevant.push(false);
            continue;
        }
        let ranking = ranking
            .map(|ranking| as_ranking(&query.id, ranking))
            .transpose()?;
        walk.read(query, ranking.as_ref())?;
        no_relevant.push(
            walk.grades
                .gains
                .first()
                .is_none_or(|best| *best < evaluator.options.level),
        );
        match &ranking {
            Some(ranking) => walk.measure(index, query, ranking, &mut part)?,
            None => {
                grades.resize_with(index, Grades::default);
                grades.push(walk.grades.clone());
            }
        }
    }
    let unjudged = count_unjudged(qrels, run, part.queries.len())?;
    let names: Vec<&str> = queries
        .iter()
        .map(|query| text(&query.id, "query_id"))
        .collect::<PyResult<_>>()?;
    let evaluation = evaluator.assemble(
        &[part],
        queries.len(),
        |query| names[query].as_bytes(),
        |query| no_relevant[query],
        |query| grades[query].clone(),
    );
    let evaluation = evaluation.map_err(|error| to_python(qrels.py(), error))?;
    let mut evaluation =
        evaluation.ok_or_else(|| PyValueError::new_err("a query id stands twice in the qrels"))?;
    evaluation.unjudged_queries = unjudged;
    Ok(evaluation)
}

/// The judgements, for runs that are not in Python's memory.
pub(crate) fn judgements(qrels: &Bound<'_, PyDict>) -> PyResult<Judgements> {
    let mut judgements = Judgements::default();
    for query in judged_queries(qrels)? {
        let id = text(&query.id, "query_id")?;
        for (doc, relevance) in pairs(&query.judged) {
            let doc = exact_str(doc, "qrels: the doc_id")?;
            let relevance = read_relevance(&query, &doc, &relevance)?;
            judgements
                .push(id.as_bytes(), text(&doc, "doc_id")?.as_bytes(), relevance)
                .map_err(|error| to_python(qrels.py(), error))?;
        }
    }
    judgements.finish();
    Ok(judgements)
}

/// An id of the qrels as UTF-8.
fn text<'a>(id: &'a Bound<'_, PyString>, kind: &str) -> PyResult<&'a str> {
    id.to_str().map_err(|_| {
        PyValueError::new_err(format!(
            "qrels: the {kind} {id:?} holds half a surrogate pair, which no text can"
        ))
    })
}

/// Queries with at least one judgement; without any, a query counts as not judged.
fn judged_queries<'py>(qrels: &Bound<'py, PyDict>) -> PyResult<Vec<JudgedQuery<'py>>> {
    let mut queries = Vec::with_capacity(qrels.len());
    for (id, judged) in pairs(qrels) {
        let id = exact_str(id, "qrels: the query_id")?;
        let judged = judged.cast_into::<PyDict>().map_err(|error| {
            let found = error.into_inner();
            PyTypeError::new_err(format!(
                "qrels[{id:?}] is {}, not a dict of doc_id to relevance",
                type_name(&found)
            ))
        })?;
        if !judged.is_empty() {
            queries.push(JudgedQuery { id, judged });
        }
    }
    Ok(queries)
}

fn as_ranking<'py>(
    id: &Bound<'py, PyString>,
    ranking: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let ranking = ranking.cast_into::<PyDict>().map_err(|error| {
        let found = error.into_inner();
        PyTypeError::new_err(format!(
            "run[{id:?}] is {}, not a dict of doc_id to score",
            type_name(&found)
        ))
    })?;
    // A run keyed by numbers would match no judgement and score 0 without a word.
    if let Some((first, _)) = ranking.iter().next()
        && !first.is_instance_of::<PyString>()
    {
        return Err(not_str(&format!("run[{id:?}]: the doc_id"), &first));
    }
    Ok(ranking)
}

fn count_unjudged(
    qrels: &Bound<'_, PyDict>,
    run: &Bound<'_, PyDict>,
    evaluated: usize,
) -> PyResult<usize> {
    if run.len() == evaluated {
        return Ok(0);
    }
    let mut unjudged = 0;
    for (id, _) in pairs(run) {
        if !id.is_instance_of::<PyString>() {
            return Err(not_str("run: the query_id", &id));
        }
        let judged = qrels
            .get_item(&id)?
            .and_then(|judged| judged.len().ok())
            .unwrap_or(0);
        unjudged += usize::from(judged == 0);
    }
    Ok(unjudged)
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(
        |_| "of an unknown type".to_owned(),
        |name| format!("of type {name}"),
    )
}

/// An id as an exact `str`, so that looking it up runs no foreign code.
fn exact_str<'py>(id: Bound<'py, PyAny>, what: &str) -> PyResult<Bound<'py, PyString>> {
    match id.cast_into_exact::<PyString>() {
        Ok(id) => Ok(id),
        Err(error) => {
            let id = error.into_inner();
            if !id.is_instance_of::<PyString>() {
                return Err(not_str(what, &id));
            }
            // SAFETY: `id` is a live `str`; the call gives a new reference to an exact one, or sets an exception.
            let exact = unsafe {
                Bound::from_owned_ptr_or_err(id.py(), ffi::PyUnicode_FromObject(id.as_ptr()))
            };
            Ok(exact?.cast_into::<PyString>()?)
        }
    }
}

fn not_str(what: &str, id: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "{what} {id:?} is {}; ids must be str",
        type_name(id)
    ))
}

/// Iterates over entries. Unlike PyO3's own iterator it does not panic where foreign code (a number's `__float__`, an
/// id's `__eq__`) changes the dictionary meanwhile.
fn pairs<'py>(
    dict: &Bound<'py, PyDict>,
) -> impl Iterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let (py, dict) = (dict.py(), dict.clone());
    // SAFETY: `dict` holds the GIL token and a reference, and the iterator owns it.
    let mut entries = unsafe { Entries::new(&dict) };
    std::iter::from_fn(move || {
        let _alive = &dict;
        let (key, value) = entries.next()?;
        // SAFETY: both are borrowed from a live dictionary, and no other code has run since.
        Some(unsafe {
            (
                Bound::from_borrowed_ptr(py, key),
                Bound::from_borrowed_ptr(py, value),
            )
        })
    })
}

/// Iterates over borrowed entries. Unlike PyO3's own iterator it counts no references, which would touch every key.
struct Entries {
    dict: *mut ffi::PyObject,
    position: ffi::Py_ssize_t,
}

impl Entries {
    /// # Safety
    /// The caller holds the GIL for as long as it uses the iterator, and a reference to the dictionary.
    unsafe fn new(dict: &Bound<'_, PyDict>) -> Self {
        Self {
            dict: dict.as_ptr(),
            position: 0,
        }
    }

    #[inline]
    fn next(&mut self) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)> {
        let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: `new` promised the GIL and a live dictionary; `PyDict_Next` stays within the dictionary's bounds even
        // where a value's `__float__` changed it meanwhile.
        let more = unsafe {
            ffi::PyDict_Next(
                self.dict,
                &raw mut self.position,
                &raw mut key,
                &raw mut value,
            )
        };
        (more != 0).then_some((key, value))
    }
}

/// Reads one query after the other.
struct Walk<'py, 'e> {
    evaluator: &'e Evaluator,
    scratch: Scratch,
    grades: Grades,
    keys: Vec<Bound<'py, PyString>>,
    tied_keys: Vec<*mut ffi::PyObject>,
    tied_rows: Vec<u32>,
    scores: Vec<f64>,
}

impl<'py, 'e> Walk<'py, 'e> {
    fn new(evaluator: &'e Evaluator) -> Self {
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

    /// Reads the judgements and probes the ranking for their documents.
    fn read(
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

    fn measure(
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

/// The number of a value that is borrowed from a dictionary.
///
/// # Safety
/// `value` is alive when the call begins.
#[inline]
unsafe fn number(py: Python<'_>, value: *mut ffi::PyObject) -> PyResult<f64> {
    // SAFETY: the caller's promise.
    if unsafe { ffi::PyFloat_Check(value) } != 0 {
        // SAFETY: a float, whose number is read without running any code.
        return Ok(unsafe { ffi::PyFloat_AsDouble(value) });
    }
    // SAFETY: the caller's promise.
    let value = unsafe { Bound::from_borrowed_ptr(py, value) };
    value.extract()
}

fn is_self(query: &JudgedQuery<'_>, doc: &Bound<'_, PyString>) -> PyResult<bool> {
    doc.as_any().eq(&query.id)
}

fn read_relevance(
    query: &JudgedQuery<'_>,
    doc: &Bound<'_, PyString>,
    value: &Bound<'_, PyAny>,
) -> PyResult<i32> {
    let place = || format!("qrels[{:?}][{doc:?}]", query.id);
    if let Ok(relevance) = value.extract::<i32>() {
        return Ok(relevance);
    }
    let beyond = || {
        PyValueError::new_err(format!(
            "{}: the relevance {value} is beyond 32 bits",
            place()
        ))
    };
    if value.is_instance_of::<PyInt>() {
        return Err(beyond());
    }
    match value.extract::<f64>() {
        Ok(whole) if whole.fract() == 0.0 => as_i32(whole).ok_or_else(beyond),
        _ => Err(PyTypeError::new_err(format!(
            "{}: the relevance {value:?} is not a whole number",
            place()
        ))),
    }
}

/// A whole number as an i32, if it is one.
pub(crate) fn as_i32(whole: f64) -> Option<i32> {
    let range = f64::from(i32::MIN)..=f64::from(i32::MAX);
    range.contains(&whole).then_some(whole as i32)
}

fn read_score(
    query: &JudgedQuery<'_>,
    doc: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    let place = || format!("run[{:?}][{doc:?}]", query.id);
    let score: f64 = value.extract().map_err(|_| {
        if value.is_instance_of::<PyInt>() {
            PyValueError::new_err(format!("{}: the score is beyond float64", place()))
        } else {
            PyTypeError::new_err(format!("{}: the score {value:?} is not a number", place()))
        }
    })?;
    if score.is_nan() {
        return Err(PyValueError::new_err(format!(
            "{}: the score is NaN; NaN has no rank",
            place()
        )));
    }
    Ok(score)
}

#[cold]
fn find_bad_score(query: &JudgedQuery<'_>, ranking: &Bound<'_, PyDict>) -> PyErr {
    let bad = pairs(ranking).find_map(|(doc, score)| read_score(query, &doc, &score).err());
    bad.unwrap_or_else(|| changed(query))
}

fn changed(query: &JudgedQuery<'_>) -> PyErr {
    PyValueError::new_err(format!("run[{:?}] changed while it was read", query.id))
}

/// Up to this many documents of a tied group are compared with each of the others; for more the group is sorted.
const COMPARED: usize = 8;

/// Ties among the keys of a dictionary.
struct DictTies<'a, 'py> {
    query: &'a JudgedQuery<'py>,
    ranking: &'a Bound<'py, PyDict>,
    /// Whether the ranking holds the query itself, which does not count.
    holds_self: bool,
    ties: Ties,
    /// Scores as cast, by row: the place in the ranking, not counting the query itself.
    scores: &'a [f64],
    judged: &'a [Bound<'py, PyString>],
    /// Keys by row, borrowed from the ranking when the first tie asks for them. From then on no foreign code runs that
    /// could remove one: they are only compared, and nothing happens any more once there is an error.
    keys: &'a mut Vec<*mut ffi::PyObject>,
    /// The rows of one tied group.
    rows: &'a mut Vec<u32>,
    places: Option<Vec<u32>>,
    error: Option<PyErr>,
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

    /// How many of the rows stand above each document by their places.
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

/// By code points, which is the order of UTF-8 bytes.
fn compare(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> std::cmp::Ordering {
    // SAFETY: every caller holds the GIL, and both are `str` objects that are alive: see `DictTies::keys`. Comparing two
    // of them runs no foreign code.
    unsafe { ffi::PyUnicode_Compare(a, b) }.cmp(&0)
}
