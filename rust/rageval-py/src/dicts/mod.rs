//! Evaluation of `{query: {doc: score}}` against `{query: {doc: relevance}}`, in place in Python's memory.
//!
//! This is the only kernel that walks Python objects instead of converting them first. It looks up the judged
//! documents, whose hashes Python has cached, in the run's dictionaries; of the other documents it reads only the
//! scores, and it compares strings only at ties. Nothing is copied except the scores of one query at a time: copying
//! the strings would take several times as long as the whole evaluation.
//!
//! **The interpreter lock is held throughout**, unlike in every other kernel. Python objects may only be read while
//! holding it, and the work that needs none of them (ranking and measuring one query) takes microseconds, less than
//! releasing and reacquiring the lock would. For the same reason there is only one thread. Callers that want other
//! threads to run meanwhile can pass frames or files.
//!
//! **Foreign code** runs if a value is not a plain number or an id is an instance of a subclass of `str` (`__float__`,
//! `__eq__`, `__hash__`), and it can change the very dictionaries that are being read. So no borrowed reference is used
//! after such a call, and each `unsafe` says why that holds. A change is either an error or is evaluated as found.

mod entries;
mod ties;
mod values;
mod walk;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rageval_core::evaluation::{self, Evaluator, Part};
use rageval_core::judgements::{Grades, Judgements};

use self::entries::pairs;
use self::values::{exact_str, not_str, read_relevance, type_name};
use self::walk::Walk;
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
        evaluation.ok_or_else(|| PyValueError::new_err("a query id occurs twice in the qrels"))?;
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
            "qrels: the {kind} {id:?} contains half a surrogate pair, which is not valid text"
        ))
    })
}

/// Queries with at least one judgement. A query without any counts as not judged.
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
    // A run keyed by numbers would match no judgement and silently score 0.
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
