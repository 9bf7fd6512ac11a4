//! Numbers from any object that supports Python's buffer protocol, so that callers without numpy arrays need not load
//! numpy.

use pyo3::buffer::{PyBuffer, PyUntypedBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A copy of one-dimensional float64 values, from `numpy.ndarray`, `array.array` or `memoryview`.
pub(crate) struct Numbers(pub(crate) Vec<f64>);

impl<'py> FromPyObject<'_, 'py> for Numbers {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let untyped = PyUntypedBuffer::get(&object)?;
        if untyped.item_count() == 0 {
            // The pointer of an empty `array.array` is arbitrary, and the typed buffer rejects it as misaligned.
            return Ok(Self(Vec::new()));
        }
        let buffer: PyBuffer<f64> = untyped.into_typed()?;
        if buffer.dimensions() != 1 {
            return Err(PyValueError::new_err(
                "expected an array with one dimension",
            ));
        }
        buffer.to_vec(object.py()).map(Self)
    }
}

impl AsRef<[f64]> for Numbers {
    fn as_ref(&self) -> &[f64] {
        &self.0
    }
}

/// A whole number as an i32, or `None` if the value is not one.
pub(crate) fn as_i32(whole: f64) -> Option<i32> {
    let range = f64::from(i32::MIN)..=f64::from(i32::MAX);
    range.contains(&whole).then_some(whole as i32)
}
