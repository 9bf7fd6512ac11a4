//! Columns of vectors that support Arrow: fixed-size lists of float32, float16 or int8, through the PyCapsule
//! interface.

use std::ffi::CStr;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::types::{Float16Type, Float32Type, Int8Type};
use arrow_array::{Array, ArrayReader, ArrayRef, FixedSizeListArray, make_array, new_empty_array};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{ArrowError, DataType};
use half::f16;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use rageval_core::error;
use rageval_core::vectors::{Rows, Values};

use crate::frames::concatenate;

const ARRAY: &CStr = c"arrow_array";
const SCHEMA: &CStr = c"arrow_schema";
const STREAM: &CStr = c"arrow_array_stream";

/// Vectors in memory that another library owns.
#[pyclass(frozen, module = "rageval_spec._core")]
pub(crate) struct Vectors {
    values: Buffer,
    count: usize,
    dimension: usize,
}

enum Buffer {
    F32(ScalarBuffer<f32>),
    F16(ScalarBuffer<f16>),
    I8(ScalarBuffer<i8>),
}

impl Vectors {
    pub(crate) fn rows(&self) -> error::Result<Rows<'_>> {
        let values = match &self.values {
            Buffer::F32(values) => Values::F32(values),
            Buffer::F16(values) => Values::F16(values),
            Buffer::I8(values) => Values::I8(values),
        };
        Rows::of(values, self.count, self.dimension)
    }

    /// The vectors of a fixed-size list; `None` if it holds another type.
    fn read(lists: &FixedSizeListArray) -> Option<Self> {
        let values = lists.values();
        let values = match values.data_type() {
            DataType::Float32 => Buffer::F32(values.as_primitive::<Float32Type>().values().clone()),
            DataType::Float16 => Buffer::F16(values.as_primitive::<Float16Type>().values().clone()),
            DataType::Int8 => Buffer::I8(values.as_primitive::<Int8Type>().values().clone()),
            _ => return None,
        };
        Some(Self {
            values,
            count: lists.len(),
            dimension: lists.value_length() as usize,
        })
    }
}

/// Reads an object that has `__arrow_c_array__` or `__arrow_c_stream__`: a column, or a table with one column. A single
/// chunk is read in place; several are copied into one. `None` if the column does not hold vectors of these types.
#[pyfunction]
pub(crate) fn read_vectors(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Vectors>> {
    let chunks = read_chunks(object)?;
    let columns: Option<Vec<ArrayRef>> = chunks.iter().map(only_column).collect();
    let column = match columns.as_deref() {
        None => return Ok(None),
        Some([one]) => one.clone(),
        Some(several) => concatenate(several).map_err(|error| arrow_error(&error))?,
    };
    let Some(lists) = column.as_fixed_size_list_opt() else {
        return Ok(None);
    };
    let vectors = Vectors::read(lists);
    if vectors.is_some() {
        refuse_nulls(lists, name)?;
    }
    Ok(vectors)
}

/// The arrays in an object; an empty array if it has none.
fn read_chunks(object: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    if object.hasattr("__arrow_c_array__")? {
        read_array(object).map(|array| vec![array])
    } else {
        read_stream(object)
    }
}

fn read_array(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let pair = object.call_method0("__arrow_c_array__")?;
    let pair = pair.cast::<PyTuple>()?;
    if pair.len() != 2 {
        let count = pair.len();
        return Err(PyValueError::new_err(format!(
            "__arrow_c_array__ gives {count} capsules, not a schema and an array"
        )));
    }
    let (schema, array) = (pair.get_item(0)?, pair.get_item(1)?);
    let schema = capsule(&schema, "__arrow_c_array__")?.pointer_checked(Some(SCHEMA))?;
    let array = capsule(&array, "__arrow_c_array__")?.pointer_checked(Some(ARRAY))?;
    // SAFETY: the capsules' names say what they hold, and `pair` keeps them alive.
    let (released, schema) = unsafe {
        let schema = schema.cast::<FFI_ArrowSchema>().as_ref();
        let array = array.cast::<FFI_ArrowArray>().as_ref();
        (array.is_released() || schema.release().is_none(), schema)
    };
    if released {
        return Err(PyValueError::new_err(
            "the Arrow array was already read and released; request it again",
        ));
    }
    // SAFETY: as above; `from_raw` takes ownership of the array and leaves a released one behind.
    let data = unsafe {
        let array = FFI_ArrowArray::from_raw(array.cast::<FFI_ArrowArray>().as_ptr());
        from_ffi(array, schema)
    };
    data.map(make_array).map_err(|error| arrow_error(&error))
}

fn read_stream(object: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    let stream = object.call_method0("__arrow_c_stream__")?;
    let stream = capsule(&stream, "__arrow_c_stream__")?.pointer_checked(Some(STREAM))?;
    // SAFETY: the capsule's name says that it holds a stream; `from_raw` takes ownership and leaves a released one
    // behind.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.cast().as_ptr()) };
    let reader = ArrayStreamReader::try_new(stream).map_err(|error| arrow_error(&error))?;
    let empty = new_empty_array(reader.field().data_type());
    let chunks: Result<Vec<ArrayRef>, ArrowError> = reader.collect();
    let mut chunks = chunks.map_err(|error| arrow_error(&error))?;
    if chunks.len() > 1 {
        chunks.retain(|chunk| !chunk.is_empty());
    }
    if chunks.is_empty() {
        chunks.push(empty);
    }
    Ok(chunks)
}

fn capsule<'a, 'py>(
    object: &'a Bound<'py, PyAny>,
    method: &str,
) -> PyResult<&'a Bound<'py, PyCapsule>> {
    let wrong = |_| PyTypeError::new_err(format!("{method} did not return a capsule"));
    object.cast::<PyCapsule>().map_err(wrong)
}

/// A column unchanged, or the only column of a table. A column of structs that has nulls is not a table.
fn only_column(array: &ArrayRef) -> Option<ArrayRef> {
    match array.data_type() {
        DataType::Struct(fields) if fields.len() == 1 && array.null_count() == 0 => {
            Some(array.as_struct().column(0).clone())
        }
        DataType::Struct(_) => None,
        _ => Some(array.clone()),
    }
}

fn refuse_nulls(lists: &FixedSizeListArray, name: &str) -> PyResult<()> {
    let first_null = |array: &dyn Array| {
        let nulls = array.nulls()?;
        (0..nulls.len()).find(|&place| nulls.is_null(place))
    };
    if let Some(row) = first_null(lists) {
        return Err(PyValueError::new_err(format!(
            "row {row} of {name} is null"
        )));
    }
    if let Some(place) = first_null(lists.values()) {
        let dimension = lists.value_length() as usize;
        let (row, column) = (place / dimension, place % dimension);
        return Err(PyValueError::new_err(format!(
            "row {row} of {name} has a null in column {column}"
        )));
    }
    Ok(())
}

fn arrow_error(error: &ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
