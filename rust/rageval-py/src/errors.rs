//! Converts the core's errors to Python exceptions, including those of `rageval_spec.errors`.

use std::io;
use std::path::Path;

use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rageval_core::error::Error;

/// Faults in a file or table become a `DataError`, faults in the caller's request a `UsageError`. Numbers that a kernel
/// cannot use become a `ValueError`.
pub(crate) fn to_python(py: Python<'_>, error: Error) -> PyErr {
    let name = match &error {
        Error::Io { path, source } => return io_error(py, path, source),
        Error::Malformed { .. } | Error::Row { .. } => "DataError",
        Error::Usage(_) => "UsageError",
        Error::Value(message) => return PyValueError::new_err(message.clone()),
        Error::Memory(message) => return PyMemoryError::new_err(message.clone()),
    };
    raise(py, name, error.to_string())
}

/// An exception of `rageval_spec.errors`, by name.
pub(crate) fn raise(py: Python<'_>, name: &str, message: String) -> PyErr {
    let class = py
        .import("rageval_spec.errors")
        .and_then(|module| module.getattr(name));
    match class.and_then(|class| class.call1((message.as_str(),))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(_) => PyRuntimeError::new_err(message),
    }
}

fn io_error(py: Python<'_>, path: &Path, source: &io::Error) -> PyErr {
    let reason = source.to_string();
    let reason = reason
        .split(" (os error")
        .next()
        .unwrap_or_default()
        .to_lowercase();
    raise(
        py,
        "DataError",
        format!("{}: cannot be read: {reason}", path.display()),
    )
}
