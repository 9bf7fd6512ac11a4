//! Bindings of `rageval_core::text`.

use pyo3::prelude::*;
use rageval_core::text;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(split_sentences, m)?)?;
    Ok(())
}

#[pyfunction]
#[pyo3(signature = (text))]
fn split_sentences(py: Python<'_>, text: &str) -> Vec<(usize, usize)> {
    py.detach(|| text::split_sentences(text))
}
