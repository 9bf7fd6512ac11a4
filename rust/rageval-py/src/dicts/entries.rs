//! The entries of a dictionary, without touching the reference count of each.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Iterates over entries. Unlike PyO3's own iterator, it does not panic if foreign code (a number's `__float__`, an
/// id's `__eq__`) changes the dictionary meanwhile.
pub(super) fn pairs<'py>(
    dict: &Bound<'py, PyDict>,
) -> impl Iterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let (py, dict) = (dict.py(), dict.clone());
    // SAFETY: `dict` holds the GIL token and a reference, and the iterator owns it.
    let mut entries = unsafe { Entries::new(&dict) };
    std::iter::from_fn(move || {
        let _alive = &dict;
        let (key, value) = entries.next()?;
        // SAFETY: both are borrowed from a live dictionary, and no other code has run since.
        Some(unsafe {
            (
                Bound::from_borrowed_ptr(py, key),
                Bound::from_borrowed_ptr(py, value),
            )
        })
    })
}

/// Iterates over borrowed entries. Unlike PyO3's own iterator, it does not count references, which would write to every
/// key.
pub(super) struct Entries {
    dict: *mut ffi::PyObject,
    position: ffi::Py_ssize_t,
}

impl Entries {
    /// # Safety
    /// The caller must hold the GIL and a reference to the dictionary for as long as it uses the iterator.
    pub(super) unsafe fn new(dict: &Bound<'_, PyDict>) -> Self {
        Self {
            dict: dict.as_ptr(),
            position: 0,
        }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)> {
        let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the caller of `new` promised the GIL and a live dictionary. `PyDict_Next` stays within the
        // dictionary's bounds even if a value's `__float__` changed it meanwhile.
        let more = unsafe {
            ffi::PyDict_Next(
                self.dict,
                &raw mut self.position,
                &raw mut key,
                &raw mut value,
            )
        };
        (more != 0).then_some((key, value))
    }
}

/// The number in a value that is borrowed from a dictionary.
///
/// # Safety
/// `value` must be alive when the call begins.
#[inline]
pub(super) unsafe fn number(py: Python<'_>, value: *mut ffi::PyObject) -> PyResult<f64> {
    // SAFETY: the caller's promise.
    if unsafe { ffi::PyFloat_Check(value) } != 0 {
        // SAFETY: it is a float, and its number is read without running any code.
        return Ok(unsafe { ffi::PyFloat_AsDouble(value) });
    }
    // SAFETY: the caller's promise.
    let value = unsafe { Bound::from_borrowed_ptr(py, value) };
    value.extract()
}
