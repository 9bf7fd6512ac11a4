//! Bindings of `rageval_core::statistics`.

use std::num::NonZeroUsize;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rageval_core::statistics::{
    self, Bootstrap, BoundedSample, Interval, IntervalMethod, PermutationTest,
};

use crate::errors::to_python;
use crate::numbers::Numbers;

type Ends = (f64, f64);
type PermutationRow = (f64, f64, usize, bool);
type TTestRow = (f64, Ends, Option<f64>, usize, Option<f64>, Option<f64>);

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(bootstrap_means, m)?)?;
    m.add_function(wrap_pyfunction!(bound_means, m)?)?;
    m.add_function(wrap_pyfunction!(permutation_test_paired, m)?)?;
    m.add_function(wrap_pyfunction!(permutation_test_unpaired, m)?)?;
    m.add_function(wrap_pyfunction!(t_test_paired, m)?)?;
    m.add_function(wrap_pyfunction!(student_p_value, m)?)?;
    m.add_function(wrap_pyfunction!(student_quantile, m)?)?;
    m.add_function(wrap_pyfunction!(holm, m)?)?;
    Ok(())
}

#[pyfunction]
#[pyo3(signature = (samples, resamples, confidence, seed, method, threads))]
fn bootstrap_means(
    py: Python<'_>,
    samples: Vec<Numbers>,
    resamples: usize,
    confidence: f64,
    seed: u64,
    method: &str,
    threads: Option<NonZeroUsize>,
) -> PyResult<Vec<Option<Ends>>> {
    let method = interval_method(method)?;
    let settings = Bootstrap {
        resamples,
        confidence,
        seed,
        method,
        threads,
    };
    let samples = slices(&samples);
    let intervals = py
        .detach(|| statistics::bootstrap_means(&samples, &settings))
        .map_err(|error| to_python(py, error))?;
    Ok(intervals
        .into_iter()
        .map(|interval| interval.map(ends))
        .collect())
}

#[pyfunction]
#[pyo3(signature = (samples, counts, bounds, confidence, threads))]
fn bound_means(
    py: Python<'_>,
    samples: Vec<Numbers>,
    counts: Vec<Option<Numbers>>,
    bounds: Vec<Ends>,
    confidence: f64,
    threads: Option<NonZeroUsize>,
) -> PyResult<Vec<Ends>> {
    if counts.len() != samples.len() || bounds.len() != samples.len() {
        return Err(PyValueError::new_err(
            "there must be as many counts and bounds as samples",
        ));
    }
    let samples: Vec<_> = (samples.iter().zip(&counts).zip(&bounds))
        .map(|((values, counts), &bounds)| BoundedSample {
            values: values.as_ref(),
            counts: counts.as_ref().map(AsRef::as_ref),
            bounds,
        })
        .collect();
    let intervals = py
        .detach(|| statistics::bound_means(&samples, confidence, threads))
        .map_err(|error| to_python(py, error))?;
    Ok(intervals.into_iter().map(ends).collect())
}

#[pyfunction]
#[pyo3(signature = (comparisons, permutations, seed, threads))]
fn permutation_test_paired(
    py: Python<'_>,
    comparisons: Vec<Numbers>,
    permutations: usize,
    seed: u64,
    threads: Option<NonZeroUsize>,
) -> PyResult<Vec<PermutationRow>> {
    let comparisons = slices(&comparisons);
    let tests = py
        .detach(|| statistics::permutation_test_paired(&comparisons, permutations, seed, threads))
        .map_err(|error| to_python(py, error))?;
    Ok(tests.into_iter().map(permutation_row).collect())
}

#[pyfunction]
#[pyo3(signature = (firsts, seconds, permutations, seed, threads))]
fn permutation_test_unpaired(
    py: Python<'_>,
    firsts: Vec<Numbers>,
    seconds: Vec<Numbers>,
    permutations: usize,
    seed: u64,
    threads: Option<NonZeroUsize>,
) -> PyResult<Vec<PermutationRow>> {
    if firsts.len() != seconds.len() {
        return Err(PyValueError::new_err(
            "there must be as many first samples as second ones",
        ));
    }
    let pairs: Vec<_> = slices(&firsts).into_iter().zip(slices(&seconds)).collect();
    let tests = py
        .detach(|| statistics::permutation_test_unpaired(&pairs, permutations, seed, threads))
        .map_err(|error| to_python(py, error))?;
    Ok(tests.into_iter().map(permutation_row).collect())
}

fn permutation_row(test: PermutationTest) -> PermutationRow {
    (
        test.mean_difference,
        test.p_value,
        test.permutations,
        test.exact,
    )
}

#[pyfunction]
#[pyo3(signature = (differences, confidence))]
fn t_test_paired(py: Python<'_>, differences: Numbers, confidence: f64) -> PyResult<TTestRow> {
    let differences = differences.as_ref();
    let test = py
        .detach(|| statistics::t_test_paired(differences, confidence))
        .map_err(|error| to_python(py, error))?;
    Ok((
        test.mean_difference,
        ends(test.interval),
        test.statistic,
        test.degrees_of_freedom,
        test.p_value,
        test.effect_size,
    ))
}

#[pyfunction]
#[pyo3(signature = (t, degrees))]
fn student_p_value(t: f64, degrees: f64) -> f64 {
    statistics::student_two_sided(t, degrees)
}

#[pyfunction]
#[pyo3(signature = (p_value, degrees))]
fn student_quantile(p_value: f64, degrees: f64) -> f64 {
    statistics::student_two_sided_quantile(p_value, degrees)
}

#[pyfunction]
#[pyo3(signature = (p_values))]
fn holm(py: Python<'_>, p_values: Numbers) -> PyResult<Vec<f64>> {
    statistics::holm(p_values.as_ref()).map_err(|error| to_python(py, error))
}

fn interval_method(name: &str) -> PyResult<IntervalMethod> {
    match name {
        "bca" => Ok(IntervalMethod::Bca),
        "percentile" => Ok(IntervalMethod::Percentile),
        _ => Err(PyValueError::new_err(format!(
            "method must be 'bca' or 'percentile', not '{name}'"
        ))),
    }
}

fn slices(samples: &[Numbers]) -> Vec<&[f64]> {
    samples.iter().map(AsRef::as_ref).collect()
}

fn ends(interval: Interval) -> Ends {
    (interval.low, interval.high)
}
