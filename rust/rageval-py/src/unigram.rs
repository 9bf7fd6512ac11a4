//! Bindings of `rageval_core::unigram`.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use rageval_core::unigram;

use crate::errors::to_python;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Unigram>()
}

#[pyclass(frozen, module = "rageval_spec._core")]
struct Unigram(unigram::Unigram);

#[pymethods]
impl Unigram {
    #[new]
    #[pyo3(signature = (pieces, offsets, scores, unknown, special, rules))]
    fn new(
        py: Python<'_>,
        pieces: PyReadonlyArray1<'_, u8>,
        offsets: PyReadonlyArray1<'_, u32>,
        scores: PyReadonlyArray1<'_, f32>,
        unknown: u32,
        special: Vec<u32>,
        rules: HashMap<char, String>,
    ) -> PyResult<Self> {
        let (pieces, offsets, scores) = (pieces.to_vec()?, offsets.to_vec()?, scores.to_vec()?);
        py.detach(|| unigram::Unigram::new(pieces, offsets, scores, unknown, special, rules))
            .map(Self)
            .map_err(|error| to_python(py, error))
    }

    /// The tokens of all texts one after the other, and where those of each text end.
    #[pyo3(signature = (texts, most, threads))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<PyBackedStr>,
        most: usize,
        threads: Option<NonZeroUsize>,
    ) -> (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>) {
        let (ids, ends) = py.detach(|| {
            let (mut ids, mut ends) = (Vec::new(), Vec::with_capacity(texts.len()));
            for found in self.0.read_all(&texts, most, threads) {
                ids.extend(found.into_iter().map(i64::from));
                ends.push(ids.len() as i64);
            }
            (ids, ends)
        });
        (PyArray1::from_vec(py, ids), PyArray1::from_vec(py, ends))
    }

    /// The tokens of a text, each with what it stands for in the normalised text.
    #[pyo3(signature = (text))]
    fn spell(&self, py: Python<'_>, text: &str) -> Vec<(u32, String)> {
        py.detach(|| {
            let mut found = Vec::new();
            self.0.read(text, usize::MAX, |id, part| {
                found.push((id, part.to_owned()))
            });
            found
        })
    }
}
