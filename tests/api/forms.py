"""A collection in each form that `rageval_spec.evaluate` accepts."""

from __future__ import annotations

from collections import UserDict, defaultdict
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from rageval_spec import evaluate
from tests.rankings import SMALL, Collection, Qrels, Run

QRELS: Qrels = {"q": {"a": 1, "b": 0}}
RUN: Run = {"q": {"a": 1.0, "b": 2.0}}
MEASURES = ["ndcg@3", "ndcg", "map", "rr", "P@2", "recall@2", "bpref", "num_ret", "judged@3", "infap", "gm_map"]


def as_rows(data: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, Any]]:
    return [(query, doc, value) for query, docs in data.items() for doc, value in docs.items()]


def as_polars(data: Mapping[str, Mapping[str, Any]], number: str) -> pl.DataFrame:
    kind = pl.Int64 if number == "relevance" else pl.Float64
    schema = {"query_id": pl.String, "doc_id": pl.String, number: kind}
    return pl.DataFrame(as_rows(data), schema, orient="row")


def as_chunks(data: Mapping[str, Mapping[str, Any]], number: str) -> pa.Table:
    table = as_polars(data, number).to_arrow()
    return pa.concat_tables([table.slice(row, 1) for row in range(table.num_rows)])


def as_dictionaries(data: Mapping[str, Mapping[str, Any]], number: str) -> pa.Table:
    """A table with one chunk for each row, each with its own dictionary."""
    ids = pa.dictionary(pa.int8(), pa.string())
    chunks = [
        pa.table({"query_id": pa.array([query], ids), "doc_id": pa.array([doc], ids), number: [float(value)]})
        for query, doc, value in as_rows(data)
    ]
    return pa.concat_tables(chunks)


def as_arrays(data: Mapping[str, Mapping[str, Any]], number: str) -> dict[str, Any]:
    return {name: column.to_numpy() for name, column in as_polars(data, number).to_dict().items()}


def as_fixed_width(data: Mapping[str, Mapping[str, Any]], number: str) -> dict[str, Any]:
    arrays = as_arrays(data, number)
    encoded = {name: np.array([str(i).encode() for i in arrays[name]]) for name in ("query_id", "doc_id")}
    return {**encoded, number: arrays[number]}


def as_shuffled(data: Mapping[str, Mapping[str, Any]], number: str) -> pl.DataFrame:
    return as_polars(data, number).sample(fraction=1, shuffle=True, seed=5)


FORMS: dict[str, Callable[[Mapping[str, Mapping[str, Any]], str], Any]] = {
    "dicts": lambda data, _: data,
    "defaultdict": lambda data, _: defaultdict(dict, data),
    "mapping": lambda data, _: MappingProxyType({query: UserDict(docs) for query, docs in data.items()}),
    "dict of mappings": lambda data, _: {query: MappingProxyType(docs) for query, docs in data.items()},
    "polars": as_polars,
    "polars with more columns": lambda data, number: as_polars(data, number).with_columns(
        pl.lit(None).alias("nothing"), pl.lit("text").alias("title")
    ),
    "polars categorical": lambda data, number: as_polars(data, number).cast(
        {"query_id": pl.Categorical, "doc_id": pl.Categorical}
    ),
    "polars float32": lambda data, number: as_polars(data, number).cast({number: pl.Float32}),
    "rows in any order": as_shuffled,
    "pandas": lambda data, number: as_polars(data, number).to_pandas(),
    "pandas nullable": lambda data, number: as_polars(data, number).to_pandas().convert_dtypes(),
    "pandas category": lambda data, number: (
        as_polars(data, number).to_pandas().astype({"query_id": "category", "doc_id": "category"})
    ),
    "pandas indexed": lambda data, number: as_polars(data, number).to_pandas().set_index("query_id"),
    "pyarrow": lambda data, number: as_polars(data, number).to_arrow(),
    "pyarrow string": lambda data, number: pa.Table.from_pydict(as_polars(data, number).to_dict(as_series=False)),
    "pyarrow batch": lambda data, number: as_polars(data, number).to_arrow().combine_chunks().to_batches()[0],
    "pyarrow stream": lambda data, number: as_polars(data, number).to_arrow().to_reader(),
    "pyarrow chunks": as_chunks,
    "pyarrow dictionaries": as_dictionaries,
    "arrays": as_arrays,
    "fixed-width arrays": as_fixed_width,
    "unicode arrays": lambda data, number: {
        name: np.array(column.to_list()) for name, column in as_polars(data, number).to_dict().items()
    },
    "lists": lambda data, number: as_polars(data, number).to_dict(as_series=False),
}
TAB_SEPARATED = {name for name in FORMS if name.startswith(("dict", "mapping", "defaultdict"))}


def values_of(qrels: Any, run: Any, **options: Any) -> dict[str, dict[str, float]]:
    return evaluate(qrels, run, MEASURES, **options).per_query()


def qrels_text(qrels: Mapping[str, Mapping[str, int]], separator: str = " ") -> str:
    return "".join(separator.join((query, "0", doc, str(value))) + "\n" for query, doc, value in as_rows(qrels))


def run_text(run: Mapping[str, Mapping[str, float]]) -> str:
    return "".join(f"{query} Q0 {doc} 0 {float(value)!r} tag\n" for query, doc, value in as_rows(run))


ONE_WORD = Collection(
    {query.replace(" ", ""): docs for query, docs in SMALL.qrels.items()},
    {query.replace(" ", ""): docs for query, docs in SMALL.run.items()},
)
