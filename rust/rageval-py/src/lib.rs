//! The Python interface of `rageval-core`: converts arguments, releases the GIL, calls the core and converts results.
//! It does no arithmetic.

use pyo3::prelude::*;

mod bm25;
mod dicts;
mod errors;
mod frames;
mod fusion;
mod ids;
mod measures;
mod numbers;
mod ranking;
mod statistics;
mod text;
mod unigram;
mod vector_columns;
mod vectors;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    bm25::register(m)?;
    fusion::register(m)?;
    measures::register(m)?;
    ranking::register(m)?;
    statistics::register(m)?;
    text::register(m)?;
    m.add_class::<unigram::Unigram>()?;
    vectors::register(m)?;
    Ok(())
}
