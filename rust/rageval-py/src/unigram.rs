//! Bindings of `rageval_core::unigram`.

use std::num::NonZeroUsize;

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use rageval_core::unigram;

#[pyclass(frozen, module = "rageval_spec.kernels")]
pub(crate) struct Unigram(unigram::Unigram);

#[pymethods]
impl Unigram {
    #[new]
    fn new(
        pieces: PyReadonlyArray1<'_, u8>,
        offsets: PyReadonlyArray1<'_, u32>,
        scores: PyReadonlyArray1<'_, f32>,
        unknown: u32,
    ) -> PyResult<Self> {
        let (pieces, offsets, scores) = (pieces.to_vec()?, offsets.to_vec()?, scores.to_vec()?);
        Ok(Self(unigram::Unigram::new(
            pieces, offsets, scores, unknown,
        )))
    }

    #[pyo3(signature = (texts, most=None, threads=None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<PyBackedStr>,
        most: Option<usize>,
        threads: Option<NonZeroUsize>,
    ) -> Vec<Bound<'py, PyArray1<u32>>> {
        let most = most.unwrap_or(usize::MAX);
        let found = py.detach(|| self.0.read(&texts, most, threads));
        let arrays = found.into_iter().map(|ids| PyArray1::from_vec(py, ids));
        arrays.collect()
    }
}
