//! Bindings of `rageval_core::vectors`.

use std::num::NonZeroUsize;

use half::f16;
use numpy::ndarray::Array2;
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rageval_core::vectors::{self, Metric, Rows, Values};

use crate::errors::to_python;
use crate::vector_columns::{Vectors, read_vectors};

/// Vectors, read in place.
#[derive(FromPyObject)]
enum Matrix<'py> {
    F32(PyReadonlyArray2<'py, f32>),
    F16(PyReadonlyArray2<'py, f16>),
    I8(PyReadonlyArray2<'py, i8>),
    Arrow(Bound<'py, Vectors>),
}

impl Matrix<'_> {
    fn rows(&self, py: Python<'_>) -> PyResult<Rows<'_>> {
        match self {
            Self::F32(array) => rows(array, Values::F32),
            Self::F16(array) => rows(array, Values::F16),
            Self::I8(array) => rows(array, Values::I8),
            Self::Arrow(vectors) => vectors.get().rows().map_err(|error| to_python(py, error)),
        }
    }
}

fn rows<'a, T: Element>(
    array: &'a PyReadonlyArray2<'_, T>,
    values: impl Fn(&'a [T]) -> Values<'a>,
) -> PyResult<Rows<'a>> {
    let &[count, dimension] = array.shape() else {
        return Err(PyValueError::new_err(
            "expected a matrix, an array with two dimensions",
        ));
    };
    Rows::of(values(array.as_slice()?), count, dimension)
        .map_err(|error| to_python(array.py(), error))
}

type Found<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f32>>);

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Vectors>()?;
    m.add_function(wrap_pyfunction!(read_vectors, m)?)?;
    m.add_function(wrap_pyfunction!(cosine_rows, m)?)?;
    m.add_function(wrap_pyfunction!(cosine_matrix, m)?)?;
    m.add_function(wrap_pyfunction!(top_k, m)?)?;
    Ok(())
}

#[pyfunction]
#[pyo3(signature = (a, b, threads))]
fn cosine_rows<'py>(
    py: Python<'py>,
    a: Matrix<'py>,
    b: Matrix<'py>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let (a, b) = (a.rows(py)?, b.rows(py)?);
    let cosines = py
        .detach(|| vectors::cosine_rows(a, b, threads))
        .map_err(|error| to_python(py, error))?;
    Ok(cosines.into_pyarray(py))
}

#[pyfunction]
#[pyo3(signature = (a, b, threads))]
fn cosine_matrix<'py>(
    py: Python<'py>,
    a: Matrix<'py>,
    b: Matrix<'py>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let (a, b) = (a.rows(py)?, b.rows(py)?);
    let cosines = py
        .detach(|| vectors::cosine_matrix(a, b, threads))
        .map_err(|error| to_python(py, error))?;
    matrix(py, [a.count(), b.count()], cosines)
}

#[pyfunction]
#[pyo3(signature = (queries, corpus, k, metric, threads))]
fn top_k<'py>(
    py: Python<'py>,
    queries: Matrix<'py>,
    corpus: Matrix<'py>,
    k: usize,
    metric: &str,
    threads: Option<NonZeroUsize>,
) -> PyResult<Found<'py>> {
    let metric = similarity(metric)?;
    let (queries, corpus) = (queries.rows(py)?, corpus.rows(py)?);
    let found = py
        .detach(|| vectors::top_k(queries, corpus, k, metric, threads))
        .map_err(|error| to_python(py, error))?;
    let shape = [queries.count(), found.per_query];
    Ok((
        matrix(py, shape, found.indices)?,
        matrix(py, shape, found.scores)?,
    ))
}

fn similarity(name: &str) -> PyResult<Metric> {
    match name {
        "dot" => Ok(Metric::Dot),
        "cosine" => Ok(Metric::Cosine),
        _ => Err(PyValueError::new_err(format!(
            "metric must be 'dot' or 'cosine', not '{name}'"
        ))),
    }
}

fn matrix<T: numpy::Element>(
    py: Python<'_>,
    shape: [usize; 2],
    values: Vec<T>,
) -> PyResult<Bound<'_, PyArray2<T>>> {
    let array = Array2::from_shape_vec(shape, values)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(array.into_pyarray(py))
}
