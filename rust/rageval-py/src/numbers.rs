//! Numbers of whatever has Python's buffer protocol, so that who has no array of numpy's need not load numpy.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A copy of one-dimensional float64 values, from `numpy.ndarray`, `array.array` or `memoryview`.
pub(crate) struct Numbers(pub(crate) Vec<f64>);

impl<'py> FromPyObject<'_, 'py> for Numbers {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::<f64>::get(&object)?;
        if buffer.dimensions() != 1 {
            return Err(PyValueError::new_err("the values have one dimension"));
        }
        buffer.to_vec(object.py()).map(Self)
    }
}

impl AsRef<[f64]> for Numbers {
    fn as_ref(&self) -> &[f64] {
        &self.0
    }
}
