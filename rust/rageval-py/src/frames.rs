//! Tables that support Arrow (polars, pyarrow, pandas, ...), in and out, through the PyCapsule interface.

use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;

use arrow_array::array::AnyDictionaryArray;
use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, PrimitiveArray, RecordBatch, RecordBatchIterator,
    RecordBatchReader, make_array, new_empty_array,
};
use arrow_buffer::ScalarBuffer;
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString};
use rageval_core::error::{Error, Result};
use rageval_core::evaluation::{Decimals, Rows};
use rageval_core::fusion::Retrieved;
use rageval_core::judgements::Judgements;
use rageval_core::readers::{self, RunTable};

use crate::errors::to_python;
use crate::ids::Ids;
use crate::numbers::as_i32;

const STREAM: &CStr = c"arrow_array_stream";

/// Numbers as f64, without a copy if they already are. As in Python, true is 1 and false is 0.
fn read_numbers(column: &ArrayRef) -> Option<ScalarBuffer<f64>> {
    if column.is_empty() {
        return Some(Vec::new().into());
    }
    macro_rules! numbers {
        ($($type:ident => $arrow:ty),*) => {
            match column.data_type() {
                DataType::Float64 => Some(column.as_primitive::<Float64Type>().values().clone()),
                DataType::Boolean => {
                    let bits = column.as_boolean().values();
                    Some(bits.iter().map(|bit| f64::from(u8::from(bit))).collect::<Vec<_>>().into())
                }
                DataType::Float16 => {
                    let column: &PrimitiveArray<Float16Type> = column.as_primitive();
                    Some(column.values().iter().map(|value| f64::from(*value)).collect::<Vec<_>>().into())
                }
                $(DataType::$type => {
                    let column: &PrimitiveArray<$arrow> = column.as_primitive();
                    Some(column.values().iter().map(|value| *value as f64).collect::<Vec<_>>().into())
                })*
                _ => None,
            }
        };
    }
    numbers!(Float32 => Float32Type, Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
             UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type)
}

/// A qrels or run table: query ids, document ids, a number.
pub(crate) struct Frame {
    queries: Ids,
    docs: Ids,
    numbers: ScalarBuffer<f64>,
}

impl Frame {
    /// Reads the columns `query_id`, `doc_id` and `number` of an object that has `__arrow_c_stream__`.
    pub(crate) fn read(object: &Bound<'_, PyAny>, table: &str, number: &str) -> PyResult<Self> {
        let (schema, batches) = read_batches(object, table)?;
        let column = |name| read_column(&schema, &batches, table, name);
        let (queries, docs, numbers) = (column("query_id")?, column("doc_id")?, column(number)?);
        let wrong = |name: &str, column: &ArrayRef, expected: &str| {
            let found = column.data_type();
            format!("{table}: column '{name}' is {found}, expected {expected}")
        };
        let ids = |name: &str, column: &ArrayRef| {
            Ids::read(column).ok_or_else(|| wrong(name, column, "text or whole numbers"))
        };
        // Looking for the queries of whole numbers takes a while if there are millions of rows.
        let read = object.py().detach(|| {
            Ok(Self {
                queries: ids("query_id", &queries)?,
                docs: ids("doc_id", &docs)?,
                numbers: read_numbers(&numbers)
                    .ok_or_else(|| wrong(number, &numbers, "numbers"))?,
            })
        });
        read.map_err(PyTypeError::new_err::<String>)
    }

    /// The judgements in a qrels table, as `{query_id: {doc_id: relevance}}`.
    pub(crate) fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.judgements().map_err(|error| to_python(py, error))?;
        let judgements = PyDict::new(py);
        for (row, relevance) in self.numbers.iter().enumerate() {
            add_judgement(
                &judgements,
                self.queries.get(row),
                self.docs.get(row),
                *relevance as i32,
            )?;
        }
        Ok(judgements)
    }

    /// The judgements in a qrels table.
    pub(crate) fn judgements(&self) -> Result<Judgements> {
        let mut judgements = Judgements::default();
        for (row, &value) in self.numbers.iter().enumerate() {
            let error = |message: String| Error::Row {
                table: "qrels".into(),
                row,
                message,
            };
            if value.fract() != 0.0 {
                return Err(error(format!(
                    "the relevance {value} is not a whole number"
                )));
            }
            let relevance = as_i32(value)
                .ok_or_else(|| error(format!("the relevance {value} does not fit in 32 bits")))?;
            let pushed = judgements.push(self.queries.get(row), self.docs.get(row), relevance);
            pushed.map_err(|cause| error(cause.to_string()))?;
        }
        judgements.finish();
        Ok(judgements)
    }
}

impl Rows for Frame {
    fn len(&self) -> usize {
        self.numbers.len()
    }

    #[inline]
    fn query(&self, row: usize) -> &[u8] {
        self.queries.get(row)
    }

    #[inline]
    fn same_query(&self, a: usize, b: usize) -> bool {
        self.queries.same(a, b)
    }

    #[inline]
    fn doc(&self, row: usize) -> &[u8] {
        self.docs.get(row)
    }

    #[inline]
    fn score(&self, row: usize) -> f64 {
        self.numbers[row]
    }

    fn write_docs(&self, n: usize, row: impl Fn(usize) -> usize, ids: &mut Decimals) -> bool {
        self.docs.write(n, row, ids)
    }
}

/// The columns `doc_id` and `text` of documents, and how many there are.
pub(crate) fn read_texts(documents: &Bound<'_, PyAny>) -> PyResult<(Ids, Ids, usize)> {
    let (schema, batches) = read_batches(documents, "documents")?;
    let column = |name| {
        let column = read_column(&schema, &batches, "documents", name)?;
        Ids::read(&column)
            .ok_or_else(|| PyTypeError::new_err(format!("documents: '{name}' is not text")))
    };
    let count = batches.iter().map(RecordBatch::num_rows).sum();
    Ok((column("doc_id")?, column("text")?, count))
}

fn arrow_error(error: &ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn read_batches(object: &Bound<'_, PyAny>, table: &str) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule = capsule
        .cast::<PyCapsule>()
        .map_err(|_| PyTypeError::new_err("__arrow_c_stream__ did not return a capsule"))?;
    let stream = capsule
        .pointer_checked(Some(STREAM))?
        .cast::<FFI_ArrowArrayStream>();
    // SAFETY: the capsule's name says that it holds a stream; `from_raw` takes ownership and leaves a released one
    // behind.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    let failed =
        |error: ArrowError| PyValueError::new_err(format!("{table} cannot be read: {error}"));
    let reader = RecordBatchStreamReader::try_new(stream).map_err(failed)?;
    let schema = reader.schema();
    let batches = reader.collect::<std::result::Result<Vec<_>, _>>();
    Ok((schema, batches.map_err(failed)?))
}

/// One column of all batches. It must not contain nulls.
fn read_column(
    schema: &Schema,
    batches: &[RecordBatch],
    table: &str,
    name: &str,
) -> PyResult<ArrayRef> {
    let index = schema.index_of(name).map_err(|_| {
        let found: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        PyValueError::new_err(format!(
            "{table} has no column '{name}'; its columns are {}",
            found.join(", ")
        ))
    })?;
    let chunks: Vec<ArrayRef> = batches.iter().map(|b| b.column(index).clone()).collect();
    let column = match &chunks[..] {
        [] => new_empty_array(schema.field(index).data_type()),
        [one] => one.clone(),
        several => concatenate(several).map_err(|error| arrow_error(&error))?,
    };
    // Logical nulls, because a dictionary's nulls can be in its values.
    let nulls = column.logical_nulls();
    match nulls.and_then(|nulls| (0..nulls.len()).find(|row| nulls.is_null(*row))) {
        Some(row) => Err(PyValueError::new_err(format!(
            "{table}, row {row}: {name} is null"
        ))),
        None => Ok(column),
    }
}

/// Chunks in one array. Dictionaries are replaced by their values, because the keys' type can be too small for the
/// values of several dictionaries. All chunks must have the same type.
pub(crate) fn concatenate(chunks: &[ArrayRef]) -> std::result::Result<ArrayRef, ArrowError> {
    let chunks: Vec<ArrayData> = chunks
        .iter()
        .map(|chunk| match chunk.as_any_dictionary_opt() {
            Some(dictionary) => unpack(dictionary),
            None => Ok(chunk.to_data()),
        })
        .collect::<std::result::Result<_, _>>()?;
    let types: Vec<_> = chunks.iter().map(ArrayData::data_type).collect();
    if let Some(pair) = types.windows(2).find(|pair| pair[0] != pair[1]) {
        let message = format!(
            "the chunks have different types: {} and {}",
            pair[0], pair[1]
        );
        return Err(ArrowError::InvalidArgumentError(message));
    }
    let count = chunks.iter().map(ArrayData::len).sum();
    let mut rows = MutableArrayData::new(chunks.iter().collect(), false, count);
    for (place, chunk) in chunks.iter().enumerate() {
        rows.try_extend(place, 0, chunk.len())?;
    }
    Ok(make_array(rows.freeze()))
}

/// The value of each row of a dictionary.
fn unpack(dictionary: &dyn AnyDictionaryArray) -> std::result::Result<ArrayData, ArrowError> {
    let values = dictionary.values().to_data();
    let mut rows = MutableArrayData::new(vec![&values], true, dictionary.len());
    if values.is_empty() {
        rows.try_extend_nulls(dictionary.len())?;
        return Ok(rows.freeze());
    }
    for (row, key) in dictionary.normalized_keys().into_iter().enumerate() {
        if dictionary.is_null(row) {
            rows.try_extend_nulls(1)?;
        } else {
            rows.try_extend(0, key, key + 1)?;
        }
    }
    Ok(rows.freeze())
}

/// A table to hand to Python: any reader of `__arrow_c_stream__` takes it without a copy.
#[pyclass(frozen, module = "rageval_spec._core")]
pub(crate) struct Table {
    batch: RecordBatch,
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema=None))]
    #[allow(unused_variables)]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, STREAM)
    }
}

pub(crate) fn table(columns: [(&str, ArrayRef); 3]) -> PyResult<Table> {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), false))
        .collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
        .map_err(|error| arrow_error(&error))?;
    Ok(Table { batch })
}

fn add_judgement(
    judgements: &Bound<'_, PyDict>,
    query: &[u8],
    doc: &[u8],
    relevance: i32,
) -> PyResult<()> {
    let query = PyString::new(judgements.py(), text(query));
    let docs = match judgements.get_item(&query)? {
        Some(docs) => docs.cast_into::<PyDict>()?,
        None => {
            let docs = PyDict::new(judgements.py());
            judgements.set_item(&query, &docs)?;
            docs
        }
    };
    docs.set_item(text(doc), relevance)
}

/// A qrels file as `{query_id: {doc_id: relevance}}`.
pub(crate) fn qrels_dicts<'py>(py: Python<'py>, path: &Path) -> PyResult<Bound<'py, PyDict>> {
    let rows = py.detach(|| {
        let (mut seen, mut rows) = (Judgements::default(), Vec::new());
        readers::read_qrels(path, |row| {
            rows.push((row.query.to_vec(), row.doc.to_vec(), row.relevance));
            seen.push(row.query, row.doc, row.relevance)
        })?;
        Ok(rows)
    });
    let judgements = PyDict::new(py);
    for (query, doc, relevance) in rows.map_err(|error| to_python(py, error))? {
        add_judgement(&judgements, &query, &doc, relevance)?;
    }
    Ok(judgements)
}

pub(crate) fn text(id: &[u8]) -> &str {
    std::str::from_utf8(id).unwrap_or("\u{FFFD}")
}

pub(crate) fn run_table(run: &RunTable) -> PyResult<Table> {
    fn ids<'a>(n: usize, id: impl Fn(usize) -> &'a [u8]) -> ArrayRef {
        let mut builder = StringViewBuilder::with_capacity(n);
        (0..n).for_each(|row| builder.append_value(text(id(row))));
        Arc::new(builder.finish())
    }
    let n = run.len();
    let queries = ids(n, |row| run.query(row));
    let docs = ids(n, |row| run.doc(row));
    let scores: Float64Array = (0..n).map(|row| run.score(row)).collect::<Vec<_>>().into();
    table([
        ("query_id", queries),
        ("doc_id", docs),
        ("score", Arc::new(scores)),
    ])
}

/// The rows at `places`, in that order, as a run.
pub(crate) fn retrieved_table(runs: &[Frame], places: &[Retrieved]) -> PyResult<Table> {
    let ids = |id: &dyn Fn(&Frame, usize) -> &str| {
        let mut builder = StringViewBuilder::with_capacity(places.len());
        let runs = places
            .iter()
            .map(|place| (&runs[place.run as usize], place.row as usize));
        runs.for_each(|(run, row)| builder.append_value(id(run, row)));
        Arc::new(builder.finish()) as ArrayRef
    };
    let scores: Float64Array = places
        .iter()
        .map(|place| place.score)
        .collect::<Vec<_>>()
        .into();
    table([
        ("query_id", ids(&|run, row| text(run.query(row)))),
        ("doc_id", ids(&|run, row| text(run.doc(row)))),
        ("score", Arc::new(scores)),
    ])
}

pub(crate) fn qrels_table(path: &Path) -> Result<PyResult<Table>> {
    let (mut queries, mut docs, mut relevance) = (
        StringViewBuilder::new(),
        StringViewBuilder::new(),
        Vec::new(),
    );
    let mut seen = Judgements::default();
    readers::read_qrels(path, |row| {
        queries.append_value(text(row.query));
        docs.append_value(text(row.doc));
        relevance.push(i64::from(row.relevance));
        seen.push(row.query, row.doc, row.relevance)
    })?;
    Ok(table([
        ("query_id", Arc::new(queries.finish())),
        ("doc_id", Arc::new(docs.finish())),
        ("relevance", Arc::new(Int64Array::from(relevance))),
    ]))
}
