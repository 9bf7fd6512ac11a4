//! Evaluation of runs: options in, values out.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use rageval_core::evaluation::{self, Options};
use rageval_core::judgements::Judgements;
use rageval_core::measures::Compiled;
use rageval_core::ranking::Ties;
use rageval_core::readers;

use crate::errors::{raise, to_python};
use crate::numbers::Numbers;
use crate::{dicts, frames};

/// Measures and options, ready for any number of runs.
#[pyclass(frozen, module = "rageval_spec._core")]
pub(crate) struct Evaluator {
    inner: evaluation::Evaluator,
}

#[pymethods]
impl Evaluator {
    #[new]
    #[pyo3(signature = (measures, *, ties, depth, judged_only, drop_self, level, missing_as_empty, keep_first, tie_range, threads))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)]
    fn new(
        py: Python<'_>,
        measures: Vec<String>,
        ties: &str,
        depth: Option<usize>,
        judged_only: bool,
        drop_self: bool,
        level: i32,
        missing_as_empty: bool,
        keep_first: bool,
        tie_range: bool,
        threads: Option<NonZeroUsize>,
    ) -> PyResult<Self> {
        let options = Options {
            ties: read_ties(py, ties)?,
            depth: depth.unwrap_or(usize::MAX),
            judged_only,
            drop_self,
            level,
            missing_as_empty,
            keep_first,
            tie_range,
            threads,
        };
        let compiled: Result<Vec<_>, _> =
            measures.iter().map(|text| Compiled::parse(text)).collect();
        let inner = compiled.and_then(|measures| evaluation::Evaluator::new(measures, options));
        Ok(Self {
            inner: inner.map_err(|error| to_python(py, error))?,
        })
    }

    /// Canonical names, in the order in which they were given.
    #[getter]
    fn measures(&self) -> Vec<&str> {
        self.inner
            .measures()
            .iter()
            .map(|measure| measure.text.as_str())
            .collect()
    }

    /// `qrels` and `run` are each a path, a dict of dicts, or an object that has `__arrow_c_stream__`.
    fn evaluate(
        slf: &Bound<'_, Self>,
        qrels: &Bound<'_, PyAny>,
        run: &Bound<'_, PyAny>,
    ) -> PyResult<Evaluation> {
        let (py, evaluator) = (slf.py(), &slf.get().inner);
        let qrels = Source::read(qrels, "qrels", "relevance")?;
        let evaluation = match Source::read(run, "run", "score")? {
            Source::Dicts(run) => dicts::evaluate(evaluator, &qrels.into_dicts(py)?, &run)?,
            Source::File(run) => {
                let judgements = qrels.judgements(py)?;
                py.detach(|| readers::evaluate_run(evaluator, &judgements, &run))
                    .map_err(|error| to_python(py, error))?
            }
            Source::Frame(run) => {
                let judgements = qrels.judgements(py)?;
                py.detach(|| evaluator.evaluate_rows(&judgements, &*run))
                    .map_err(|error| to_python(py, error))?
            }
        };
        Evaluation::wrap(slf, evaluation)
    }
}

/// Qrels or a run, in the form in which the caller has them.
enum Source<'py> {
    File(PathBuf),
    Dicts(Bound<'py, PyDict>),
    Frame(Box<frames::Frame>),
}

impl<'py> Source<'py> {
    fn read(
        object: &Bound<'py, PyAny>,
        table: &'static str,
        number: &'static str,
    ) -> PyResult<Self> {
        if let Ok(dicts) = object.cast::<PyDict>() {
            return Ok(Self::Dicts(dicts.clone()));
        }
        if object.hasattr("__arrow_c_stream__")? {
            let frame = frames::Frame::read(object, table, number)?;
            return Ok(Self::Frame(Box::new(frame)));
        }
        object.extract().map(Self::File)
    }

    fn judgements(&self, py: Python<'py>) -> PyResult<Judgements> {
        let judgements = match self {
            Self::Dicts(qrels) => return dicts::judgements(qrels),
            Self::File(qrels) => py.detach(|| readers::read_judgements(qrels)),
            Self::Frame(qrels) => py.detach(|| qrels.judgements()),
        };
        judgements.map_err(|error| to_python(py, error))
    }

    /// Only dicts distinguish a query without documents from a query that is missing from the run.
    fn into_dicts(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match self {
            Self::Dicts(qrels) => Ok(qrels),
            Self::File(qrels) => frames::qrels_dicts(py, &qrels),
            Self::Frame(qrels) => qrels.to_dicts(py),
        }
    }
}

fn read_ties(py: Python<'_>, ties: &str) -> PyResult<Ties> {
    match ties {
        "trec_eval" => Ok(Ties::TrecEval),
        "float64" => Ok(Ties::Float64),
        "input" => Ok(Ties::Input),
        "ranx" => Ok(Ties::Ranx),
        _ => Err(raise(
            py,
            "UsageError",
            format!("unknown tie rule '{ties}'"),
        )),
    }
}

/// Values of all queries, by ascending query id.
#[pyclass(frozen, module = "rageval_spec._core")]
pub(crate) struct Evaluation {
    inner: evaluation::Evaluation,
    evaluator: Py<Evaluator>,
}

impl Evaluation {
    fn wrap(evaluator: &Bound<'_, Evaluator>, inner: evaluation::Evaluation) -> PyResult<Self> {
        Ok(Self {
            inner,
            evaluator: evaluator.clone().unbind(),
        })
    }

    fn matrix<'py>(&self, py: Python<'py>, values: &[f64]) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let measures = self.evaluator.get().inner.measures().len();
        PyArray1::from_slice(py, values).reshape([measures, self.inner.queries.len()])
    }

    fn names<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyString>> {
        self.inner
            .queries
            .iter()
            .map(|id| PyString::new(py, &String::from_utf8_lossy(id)))
            .collect()
    }
}

#[pymethods]
impl Evaluation {
    #[getter]
    fn query_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.names(py))
    }

    /// `[measures, queries]`
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.matrix(py, &self.inner.values)
    }

    #[getter]
    fn low<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        self.inner
            .low
            .as_ref()
            .map(|values| self.matrix(py, values))
            .transpose()
    }

    #[getter]
    fn high<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        self.inner
            .high
            .as_ref()
            .map(|values| self.matrix(py, values))
            .transpose()
    }

    #[getter]
    fn missing<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        self.inner.missing.clone().into_pyarray(py)
    }

    #[getter]
    fn no_relevant<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        self.inner.no_relevant.clone().into_pyarray(py)
    }

    #[getter]
    fn judged_queries(&self) -> usize {
        self.inner.judged_queries
    }

    #[getter]
    fn unjudged_queries(&self) -> usize {
        self.inner.unjudged_queries
    }

    fn __len__(&self) -> usize {
        self.inner.queries.len()
    }

    /// One aggregate per measure, as trec_eval computes it.
    fn aggregates(&self) -> Vec<f64> {
        let measures = self.evaluator.get().inner.measures().iter().enumerate();
        measures
            .map(|(i, measure)| self.inner.aggregate(i, measure.word.statistic))
            .collect()
    }

    /// `{query_id: {names[i]: value of measure i}}`, with Python floats.
    fn to_dicts<'py>(
        &self,
        py: Python<'py>,
        names: Vec<Bound<'py, PyString>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let n = self.inner.queries.len();
        let result = PyDict::new(py);
        for (query, id) in self.names(py).into_iter().enumerate() {
            let row = PyDict::new(py);
            for (measure, name) in names.iter().enumerate() {
                row.set_item(name, self.inner.values[measure * n + query])?;
            }
            result.set_item(id, row)?;
        }
        Ok(result)
    }
}

/// trec_eval's aggregate of per-query values in the order given. For a geometric mean, `missing` queries come last.
#[pyfunction]
#[pyo3(signature = (measure, values, missing=None))]
fn aggregate_measure(
    py: Python<'_>,
    measure: &str,
    values: Numbers,
    missing: Option<PyReadonlyArray1<'_, bool>>,
) -> PyResult<f64> {
    let measure = Compiled::parse(measure).map_err(|error| to_python(py, error))?;
    let values = values.0;
    let missing = missing.map_or_else(
        || Ok(vec![false; values.len()]),
        |missing| missing.as_slice().map(<[bool]>::to_vec),
    )?;
    if missing.len() != values.len() {
        return Err(raise(
            py,
            "UsageError",
            "values and missing differ in length".to_owned(),
        ));
    }
    let queries = vec![Vec::new(); values.len()];
    let evaluation = evaluation::Evaluation {
        queries,
        values,
        missing,
        ..Default::default()
    };
    Ok(evaluation.aggregate(0, measure.word.statistic))
}

#[pyfunction]
fn read_run(py: Python<'_>, path: PathBuf) -> PyResult<frames::Table> {
    let result = py.detach(|| readers::read_run(&path).map(|run| frames::run_table(&run)));
    result.map_err(|error| to_python(py, error))?
}

#[pyfunction]
fn read_qrels(py: Python<'_>, path: PathBuf) -> PyResult<frames::Table> {
    py.detach(|| frames::qrels_table(&path))
        .map_err(|error| to_python(py, error))?
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Evaluator>()?;
    m.add_class::<Evaluation>()?;
    m.add_class::<frames::Table>()?;
    m.add_function(wrap_pyfunction!(aggregate_measure, m)?)?;
    m.add_function(wrap_pyfunction!(read_run, m)?)?;
    m.add_function(wrap_pyfunction!(read_qrels, m)?)?;
    Ok(())
}
