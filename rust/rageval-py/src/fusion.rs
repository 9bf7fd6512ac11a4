//! Bindings of `rageval_core::fusion`.

use std::num::NonZeroUsize;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rageval_core::fusion::{self, Fusion, Method, Normalization};

use crate::errors::to_python;
use crate::frames::{Frame, Table, retrieved_table};

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(fuse_runs, m)?)?;
    m.add_function(wrap_pyfunction!(rank_documents, m)?)?;
    Ok(())
}

#[pyfunction]
#[pyo3(signature = (runs, method, weights, k, normalization, depth, threads))]
#[allow(clippy::too_many_arguments)]
fn fuse_runs(
    py: Python<'_>,
    runs: Vec<Bound<'_, PyAny>>,
    method: &str,
    weights: Vec<f64>,
    k: f64,
    normalization: &str,
    depth: usize,
    threads: Option<NonZeroUsize>,
) -> PyResult<Table> {
    let fusion = Fusion {
        method: read_method(method, k, normalization)?,
        weights,
        depth,
        threads,
    };
    let frames: Vec<Frame> = runs
        .iter()
        .enumerate()
        .map(|(number, run)| Frame::read(run, &format!("runs[{number}]"), "score"))
        .collect::<PyResult<_>>()?;
    let table = py
        .detach(|| fusion::fuse(&frames, &fusion).map(|places| retrieved_table(&frames, &places)));
    table.map_err(|error| to_python(py, error))?
}

#[pyfunction]
#[pyo3(signature = (run, depth, threads))]
fn rank_documents(
    py: Python<'_>,
    run: &Bound<'_, PyAny>,
    depth: Option<usize>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Table> {
    let run = Frame::read(run, "run", "score")?;
    let table = py.detach(|| {
        let places = fusion::rank_documents(&run, depth.unwrap_or(usize::MAX), threads);
        places.map(|places| retrieved_table(std::slice::from_ref(&run), &places))
    });
    table.map_err(|error| to_python(py, error))?
}

fn read_method(method: &str, k: f64, normalization: &str) -> PyResult<Method> {
    match method {
        "rrf" => Ok(Method::ReciprocalRank { k }),
        "weighted" => read_normalization(normalization).map(Method::WeightedSum),
        _ => Err(PyValueError::new_err(format!(
            "method must be 'rrf' or 'weighted', not '{method}'"
        ))),
    }
}

fn read_normalization(name: &str) -> PyResult<Normalization> {
    match name {
        "min_max" => Ok(Normalization::MinMax),
        "z_score" => Ok(Normalization::ZScore),
        "max" => Ok(Normalization::Max),
        "none" => Ok(Normalization::None),
        _ => Err(PyValueError::new_err(format!(
            "normalization must be 'min_max', 'z_score', 'max' or 'none', not '{name}'"
        ))),
    }
}
