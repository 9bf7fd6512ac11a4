//! Names of measures.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rageval_core::measures::{Compiled, Cutoff, Statistic, Value, words};

use crate::errors::to_python;

/// (name, cutoff, parameters, canonical text)
type Parsed<'py> = (&'static str, Option<usize>, Bound<'py, PyDict>, String);

#[pyfunction]
fn parse_measure<'py>(py: Python<'py>, text: &str) -> PyResult<Parsed<'py>> {
    let measure = Compiled::parse(text).map_err(|error| to_python(py, error))?;
    let parameters = PyDict::new(py);
    for (name, value) in &measure.parameters.own {
        match value {
            Value::Number(number) => parameters.set_item(name, number)?,
            Value::Text(text) => parameters.set_item(name, text)?,
        }
    }
    if let Some(recall) = measure.parameters.recall {
        parameters.set_item("recall", recall)?;
    }
    if let Some(level) = measure.parameters.level {
        parameters.set_item("rel", level)?;
    }
    if measure.parameters.judged_only {
        parameters.set_item("judged_only", true)?;
    }
    Ok((
        measure.word.name,
        measure.parameters.cutoff,
        parameters,
        measure.text,
    ))
}

/// (name, aliases, cutoff, parameters, statistic, listed)
type WordRow = (
    &'static str,
    Vec<&'static str>,
    &'static str,
    Vec<&'static str>,
    &'static str,
    bool,
);

#[pyfunction]
fn measure_words() -> Vec<WordRow> {
    let row = |word: &&'static rageval_core::measures::Word| {
        let cutoff = match word.cutoff {
            Cutoff::Never => "never",
            Cutoff::Optional => "optional",
            Cutoff::Required => "required",
            Cutoff::Level => "level",
        };
        let statistic = statistic_name(word.statistic);
        (
            word.name,
            word.aliases.to_vec(),
            cutoff,
            word.parameters.to_vec(),
            statistic,
            word.listed,
        )
    };
    words().iter().map(row).collect()
}

pub(crate) fn statistic_name(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Mean => "mean",
        Statistic::MeanRank => "mean rank",
        Statistic::GeometricMean => "geometric mean",
        Statistic::Sum => "sum",
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(parse_measure, m)?)?;
    m.add_function(wrap_pyfunction!(measure_words, m)?)?;
    Ok(())
}
