//! Errors of the core as exceptions of `rageval_spec.errors`.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rageval_core::error::Error;

/// A missing or unreadable file is the system's own exception; wrong content is a `DataError`; the rest a `UsageError`.
pub(crate) fn to_python(py: Python<'_>, error: Error) -> PyErr {
    let name = match &error {
        Error::Io { path, source } => return io_error(py, path, source),
        Error::Malformed { .. } | Error::Row { .. } => "DataError",
        Error::Usage(_) => "UsageError",
    };
    raise(py, name, error.to_string())
}

/// An exception of `rageval_spec.errors` by name.
pub(crate) fn raise(py: Python<'_>, name: &str, message: String) -> PyErr {
    let class = py
        .import("rageval_spec.errors")
        .and_then(|module| module.getattr(name));
    match class.and_then(|class| class.call1((message.as_str(),))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(_) => PyRuntimeError::new_err(message),
    }
}

fn io_error(py: Python<'_>, path: &std::path::Path, source: &std::io::Error) -> PyErr {
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
