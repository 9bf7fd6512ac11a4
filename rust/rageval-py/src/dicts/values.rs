//! Ids, relevance values and scores, and the errors for objects that are none of these.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};

use super::JudgedQuery;
use super::entries::pairs;
use crate::numbers::as_i32;

/// An id as an exact `str`, so that looking it up runs no foreign code.
pub(super) fn exact_str<'py>(id: Bound<'py, PyAny>, what: &str) -> PyResult<Bound<'py, PyString>> {
    match id.cast_into_exact::<PyString>() {
        Ok(id) => Ok(id),
        Err(error) => {
            let id = error.into_inner();
            if !id.is_instance_of::<PyString>() {
                return Err(not_str(what, &id));
            }
            // SAFETY: `id` is a live `str`; the call returns a new reference to an exact one, or sets an exception.
            let exact = unsafe {
                Bound::from_owned_ptr_or_err(id.py(), ffi::PyUnicode_FromObject(id.as_ptr()))
            };
            Ok(exact?.cast_into::<PyString>()?)
        }
    }
}

pub(super) fn not_str(what: &str, id: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "{what} {id:?} is {}; ids must be str",
        type_name(id)
    ))
}

pub(super) fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(
        |_| "of an unknown type".to_owned(),
        |name| format!("of type {name}"),
    )
}

pub(super) fn read_relevance(
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
            "{}: the relevance {value} does not fit in 32 bits",
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

pub(super) fn read_score(
    query: &JudgedQuery<'_>,
    doc: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    let place = || format!("run[{:?}][{doc:?}]", query.id);
    let score: f64 = value.extract().map_err(|_| {
        if value.is_instance_of::<PyInt>() {
            PyValueError::new_err(format!("{}: the score does not fit in float64", place()))
        } else {
            PyTypeError::new_err(format!("{}: the score {value:?} is not a number", place()))
        }
    })?;
    if score.is_nan() {
        return Err(PyValueError::new_err(format!(
            "{}: the score is NaN, which cannot be ranked",
            place()
        )));
    }
    Ok(score)
}

#[cold]
pub(super) fn find_bad_score(query: &JudgedQuery<'_>, ranking: &Bound<'_, PyDict>) -> PyErr {
    let bad = pairs(ranking).find_map(|(doc, score)| read_score(query, &doc, &score).err());
    bad.unwrap_or_else(|| changed(query))
}

pub(super) fn changed(query: &JudgedQuery<'_>) -> PyErr {
    PyValueError::new_err(format!(
        "run[{:?}] changed while it was being read",
        query.id
    ))
}
