//! Bindings of `rageval_core::vectors`.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use half::f16;
use numpy::ndarray::Array2;
use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rageval_core::error::Error;
use rageval_core::vectors::{self, Corpus, Form, Metric, Rows, Values};

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
    m.add_class::<Search>()?;
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
    neighbours(py, queries.count(), found)
}

fn neighbours(py: Python<'_>, queries: usize, found: vectors::Neighbours) -> PyResult<Found<'_>> {
    let shape = [queries, found.per_query];
    Ok((
        matrix(py, shape, found.indices)?,
        matrix(py, shape, found.scores)?,
    ))
}

/// A search through a corpus that comes in blocks.
#[pyclass(frozen, module = "rageval_spec._core")]
struct Search {
    queries: usize,
    dimension: usize,
    /// `None` once it has finished.
    search: Mutex<Option<vectors::Search>>,
}

/// Rows of a corpus, read in place.
#[derive(FromPyObject)]
enum Block<'py> {
    F32(PyReadonlyArray2<'py, f32>),
    F16(PyReadonlyArray2<'py, f16>),
    I8(PyReadonlyArray2<'py, i8>),
    Bits(PyReadonlyArray2<'py, u8>),
}

#[pymethods]
impl Search {
    #[new]
    #[pyo3(signature = (queries, form, k, metric, threads))]
    fn new(
        py: Python<'_>,
        queries: Matrix<'_>,
        form: &str,
        k: usize,
        metric: &str,
        threads: Option<NonZeroUsize>,
    ) -> PyResult<Self> {
        let form = match form {
            "float32" | "float16" => Form::Floats,
            "int8" => Form::Integers,
            "binary" => Form::Signs,
            _ => return Err(PyValueError::new_err(format!("there is no form '{form}'"))),
        };
        let (queries, metric) = (queries.rows(py)?, similarity(metric)?);
        let search = py
            .detach(|| vectors::Search::new(queries, form, k, metric, threads))
            .map_err(|error| to_python(py, error))?;
        Ok(Self {
            queries: queries.count(),
            dimension: queries.dimension(),
            search: Mutex::new(Some(search)),
        })
    }

    #[pyo3(signature = (values, scales, ranks))]
    fn scan(
        &self,
        py: Python<'_>,
        values: Block<'_>,
        scales: Option<PyReadonlyArray1<'_, f32>>,
        ranks: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<()> {
        let width = match &values {
            Block::Bits(array) => array.shape()[1] * 8,
            Block::I8(array) => array.shape()[1],
            _ => self.dimension, // which the search itself checks
        };
        if width.next_multiple_of(8) != self.dimension.next_multiple_of(8)
            || matches!(values, Block::I8(_)) && width != self.dimension
        {
            return Err(PyValueError::new_err(format!(
                "vectors of queries have {} dimensions, those of corpus have {width}",
                self.dimension
            )));
        }
        let scales = scales
            .as_ref()
            .map_or(Ok(&[][..]), |scales| scales.as_slice())?;
        let ranks = ranks.as_ref().map(|ranks| ranks.as_slice()).transpose()?;
        let corpus = match &values {
            Block::F32(array) => Corpus::Floats(rows(array, Values::F32)?),
            Block::F16(array) => Corpus::Floats(rows(array, Values::F16)?),
            Block::I8(array) => Corpus::Integers {
                values: array.as_slice()?,
                scales,
            },
            Block::Bits(array) => Corpus::Signs(array.as_slice()?),
        };
        py.detach(|| {
            let mut search = self.search.lock().unwrap_or_else(PoisonError::into_inner);
            search.as_mut().map(|search| search.scan(corpus, ranks))
        })
        .unwrap_or_else(|| Err(finished()))
        .map_err(|error| to_python(py, error))
    }

    #[pyo3(signature = (next))]
    fn finish<'py>(
        &self,
        py: Python<'py>,
        next: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<Found<'py>> {
        let next = next.as_ref().map(|next| next.as_slice()).transpose()?;
        let found = py
            .detach(|| {
                let mut search = self.search.lock().unwrap_or_else(PoisonError::into_inner);
                search.take().map(|search| search.finish(next))
            })
            .unwrap_or_else(|| Err(finished()))
            .map_err(|error| to_python(py, error))?;
        neighbours(py, self.queries, found)
    }
}

fn finished() -> Error {
    Error::Value("the search has finished".to_owned())
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
