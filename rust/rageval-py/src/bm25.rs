//! Bindings of `rageval_core::bm25`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::{Float64Array, UInt32Array};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use rageval_core::bm25::{self, Method, Output, Searcher, Settings, Splitter};
use rageval_core::error::Error;

use crate::errors::to_python;
use crate::frames::{Table, read_texts, table, text};

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Alphabet>()?;
    m.add_class::<Bm25Builder>()?;
    m.add_class::<Bm25Index>()?;
    m.add_function(wrap_pyfunction!(split_pieces, m)?)?;
    Ok(())
}

/// The characters that words are made of.
#[pyclass(frozen, module = "rageval_spec._core")]
struct Alphabet(bm25::Alphabet);

#[pymethods]
impl Alphabet {
    #[new]
    #[pyo3(signature = (words, lowered))]
    fn new(words: Vec<(u32, u32)>, lowered: Vec<(u32, u32)>) -> Self {
        Self(bm25::Alphabet::new(&words, &lowered))
    }
}

fn splitter(name: &str) -> PyResult<Splitter> {
    match name {
        "words" => Ok(Splitter::Words),
        "pieces" => Ok(Splitter::Pieces),
        _ => Err(PyValueError::new_err(format!(
            "splitter must be 'words' or 'pieces', not '{name}'"
        ))),
    }
}

/// The pieces of each text.
#[pyfunction]
#[pyo3(signature = (texts, split, alphabet))]
fn split_pieces(
    py: Python<'_>,
    texts: Vec<PyBackedStr>,
    split: &str,
    alphabet: &Bound<'_, Alphabet>,
) -> PyResult<Vec<Vec<String>>> {
    let (splitter, alphabet) = (splitter(split)?, &alphabet.get().0);
    Ok(py.detach(|| {
        let mut scratch = Vec::new();
        let mut pieces = |text: &PyBackedStr| {
            let mut found = Vec::new();
            splitter.split(text, alphabet, &mut scratch, |piece| {
                found.push(String::from_utf8_lossy(piece).into_owned());
            });
            found
        };
        texts.iter().map(&mut pieces).collect()
    }))
}

/// Takes batches of documents and writes their index.
#[pyclass(module = "rageval_spec._core")]
struct Bm25Builder {
    inner: Option<bm25::Builder>,
}

/// An exception of a callback goes through the core as an error, and is raised behind it.
fn call<R>(
    raised: &mut Option<PyErr>,
    run: impl FnOnce(Python<'_>) -> PyResult<R>,
) -> Result<R, Error> {
    Python::attach(run).map_err(|error| {
        *raised = Some(error);
        Error::Value("a callback failed".into())
    })
}

fn settle<R>(py: Python<'_>, result: Result<R, Error>, raised: Option<PyErr>) -> PyResult<R> {
    match raised {
        Some(error) => Err(error),
        None => result.map_err(|error| to_python(py, error)),
    }
}

#[pymethods]
impl Bm25Builder {
    #[new]
    #[pyo3(signature = (split, stop_words, stems, folder, threads))]
    fn new(
        split: &str,
        stop_words: Vec<String>,
        stems: bool,
        folder: Option<PathBuf>,
        threads: Option<NonZeroUsize>,
    ) -> PyResult<Self> {
        let inner = bm25::Builder::new(
            splitter(split)?,
            &stop_words,
            stems,
            folder.as_deref(),
            threads,
        );
        Ok(Self { inner: Some(inner) })
    }

    /// Adds the columns `doc_id` and `text` of a table; `expand` gives the words of pieces.
    #[pyo3(signature = (documents, alphabet, expand))]
    fn add(
        &mut self,
        py: Python<'_>,
        documents: &Bound<'_, PyAny>,
        alphabet: &Bound<'_, Alphabet>,
        expand: Py<PyAny>,
    ) -> PyResult<()> {
        let (ids, texts, count) = read_texts(documents)?;
        let (builder, alphabet) = (self.open()?, &alphabet.get().0);
        let mut raised = None;
        let result = py.detach(|| {
            let texts: Vec<&str> = (0..count).map(|row| text(texts.get(row))).collect();
            let ids = (0..count).map(|row| ids.get(row));
            builder.add(ids, &texts, alphabet, &mut |pieces| {
                call(&mut raised, |py| {
                    expand.call1(py, (pieces.to_vec(),))?.extract(py)
                })
            })
        });
        settle(py, result, raised)
    }

    /// Writes the index to a file, or returns its bytes. `proceed` is called now and then with how much is done.
    #[pyo3(signature = (path, note, proceed))]
    fn finish<'py>(
        &mut self,
        py: Python<'py>,
        path: Option<PathBuf>,
        note: &[u8],
        proceed: Py<PyAny>,
    ) -> PyResult<Option<Bound<'py, PyArray1<u8>>>> {
        self.open()?;
        let Some(builder) = self.inner.take() else {
            return Ok(None);
        };
        let (mut raised, mut bytes) = (None, Vec::new());
        let result = py.detach(|| {
            let output = path
                .as_deref()
                .map_or(Output::Memory(&mut bytes), Output::File);
            builder.finish(output, note, &mut |done, total| {
                call(&mut raised, |py| {
                    py.check_signals()?;
                    proceed.call1(py, (done, total)).map(drop)
                })
            })
        });
        settle(py, result, raised)?;
        Ok(path.is_none().then(|| bytes.into_pyarray(py)))
    }
}

impl Bm25Builder {
    fn open(&mut self) -> PyResult<&mut bm25::Builder> {
        let used = || PyRuntimeError::new_err("the index was already written");
        self.inner.as_mut().ok_or_else(used)
    }
}

/// A finished index over bytes that Python keeps: a mapped file, or memory.
#[pyclass(frozen, module = "rageval_spec._core")]
struct Bm25Index {
    inner: bm25::Index,
    bytes: Py<PyArray1<u8>>,
}

#[pymethods]
impl Bm25Index {
    #[new]
    #[pyo3(signature = (content, path))]
    fn new(content: &Bound<'_, PyArray1<u8>>, path: PathBuf) -> PyResult<Self> {
        let readonly = content.readonly();
        let inner = bm25::Index::read(readonly.as_slice()?, &path);
        Ok(Self {
            inner: inner.map_err(|error| to_python(content.py(), error))?,
            bytes: content.clone().unbind(),
        })
    }

    #[getter]
    fn note(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        let bytes = self.bytes.bind(py).readonly();
        let note = self
            .inner
            .with(bytes.as_slice()?)
            .note()
            .map(<[u8]>::to_vec);
        note.map_err(|error| to_python(py, error))
    }

    #[getter]
    fn documents(&self, py: Python<'_>) -> PyResult<usize> {
        let bytes = self.bytes.bind(py).readonly();
        Ok(self.inner.with(bytes.as_slice()?).documents())
    }

    /// The best documents for each query, a list of words: a table of the query's number, the id and the score.
    #[pyo3(signature = (queries, method, k1, b, delta, depth, threads))]
    #[allow(clippy::too_many_arguments)]
    fn search(
        &self,
        py: Python<'_>,
        queries: Vec<Vec<PyBackedStr>>,
        method: &str,
        k1: f64,
        b: f64,
        delta: f64,
        depth: usize,
        threads: Option<NonZeroUsize>,
    ) -> PyResult<Table> {
        let bytes = self.bytes.bind(py).readonly();
        let bytes = bytes.as_slice()?;
        let found = py.detach(|| {
            let (view, method) = (self.inner.with(bytes), Method::parse(method)?);
            let searcher = Searcher::new(
                view,
                Settings {
                    method,
                    k1,
                    b,
                    delta,
                },
            )?;
            let found = searcher.search(&queries, depth, threads)?;
            let rows = found.iter().map(Vec::len).sum();
            let (mut numbers, mut scores) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
            let names = view.ids()?;
            let mut ids = StringViewBuilder::with_capacity(rows);
            for (number, hits) in (0..).zip(&found) {
                for id in names.get_all(hits.iter().map(|hit| hit.document)) {
                    ids.append_value(id);
                }
                numbers.resize(numbers.len() + hits.len(), number);
                scores.extend(hits.iter().map(|hit| f64::from(hit.score())));
            }
            Ok((numbers, ids.finish(), scores))
        });
        let (numbers, ids, scores) = found.map_err(|error| to_python(py, error))?;
        table([
            ("query", Arc::new(UInt32Array::from(numbers))),
            ("doc_id", Arc::new(ids)),
            ("score", Arc::new(Float64Array::from(scores))),
        ])
    }
}
