//! Bindings of `rageval_core::text`.

use std::num::NonZeroUsize;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use rageval_core::text::{self, Search};

type Shares = Vec<Vec<Vec<(u32, u32)>>>;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(split_sentences, m)?)?;
    m.add_function(wrap_pyfunction!(names, m)?)?;
    m.add_function(wrap_pyfunction!(word_support, m)?)?;
    m.add_function(wrap_pyfunction!(sentence_support, m)?)?;
    Ok(())
}

#[pyfunction]
#[pyo3(signature = (text))]
fn split_sentences(py: Python<'_>, text: &str) -> Vec<(usize, usize)> {
    py.detach(|| text::split_sentences(text))
}

#[pyfunction]
#[pyo3(signature = (text))]
fn names(py: Python<'_>, text: &str) -> Vec<String> {
    py.detach(|| text::names(text))
}

/// Each search is a pair: texts, and the sources in which to look for their words.
#[pyfunction]
#[pyo3(signature = (searches, threads))]
fn word_support(
    py: Python<'_>,
    searches: Vec<(Vec<PyBackedStr>, Vec<PyBackedStr>)>,
    threads: Option<NonZeroUsize>,
) -> Shares {
    let searches: Vec<Search<PyBackedStr>> = searches
        .into_iter()
        .map(|(texts, sources)| Search { texts, sources })
        .collect();
    let support = py.detach(|| text::word_support(&searches, threads));
    let pairs = |shares: Vec<text::WordShare>| {
        let pair = |share: text::WordShare| (share.found, share.total);
        shares.into_iter().map(pair).collect()
    };
    support
        .into_iter()
        .map(|texts| texts.into_iter().map(pairs).collect())
        .collect()
}

type Place = (usize, usize);
type Support = (
    Place,
    (u32, u32),
    (u32, u32),
    Option<(usize, Option<Place>)>,
);

/// Each search is a text and the sources in which to look for the words of its sentences.
#[pyfunction]
#[pyo3(signature = (searches, threads))]
fn sentence_support(
    py: Python<'_>,
    searches: Vec<(PyBackedStr, Vec<PyBackedStr>)>,
    threads: Option<NonZeroUsize>,
) -> Vec<Vec<Support>> {
    let support = py.detach(|| text::sentence_support(&searches, threads));
    let pair = |share: text::WordShare| (share.found, share.total);
    let tell =
        |one: text::SentenceSupport| (one.place, pair(one.alone), pair(one.together), one.evidence);
    support
        .into_iter()
        .map(|sentences| sentences.into_iter().map(tell).collect())
        .collect()
}
