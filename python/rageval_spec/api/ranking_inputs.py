"""Converts judgements, runs and measures from the forms that other programs use.

Judgements and runs become what the kernel reads. Measures are names, or measure objects of ir_measures. An object is
translated by its name and parameters, not by its text, because the two libraries use some words differently:
`Accuracy` is another measure there, and `RBP` without `rel` has graded gains.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Protocol, TypeAlias

from rageval_spec.errors import UsageError
from rageval_spec.kernels.inputs import check_bounds
from rageval_spec.libraries import pl


class ArrowTable(Protocol):
    """A polars, pyarrow or pandas frame: anything with the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as an Arrow stream in a PyCapsule."""
        ...


Judgements: TypeAlias = Mapping[str, Mapping[str, int]] | ArrowTable | Mapping[str, Any] | str | PathLike[str]
Run: TypeAlias = Mapping[str, Mapping[str, float]] | ArrowTable | Mapping[str, Any] | str | PathLike[str]


def read_form(data: Any, table: str, number: str) -> object:
    """Return the data as a dict of dicts, an object with the Arrow PyCapsule interface, or a path.

    `table` ("qrels" or "run") is the name for errors; `number` is the name of the third column.

    Raises:
        UsageError: the data have another form, or lack a column.
        ValueError: a frame has no columns at all.
        DataError: the path is not a regular file, or the file expands to far more than its size.
    """
    if isinstance(data, dict):  # first, because a dict can hold a single query, which takes a few microseconds
        return _read_mapping(data, table, number)
    if isinstance(data, str | PathLike):
        check_bounds(data)
        return data
    is_polars = type(data).__module__.partition(".")[0] == "polars"
    if is_polars and type(data).__name__ == "LazyFrame":
        raise UsageError(f"{table} is a polars LazyFrame, which holds no rows yet; call .collect() on it")
    if hasattr(data, "__arrow_c_stream__"):
        if len(getattr(data, "columns", [table])) == 0:
            raise ValueError(f"{table} is empty: it has no columns; give query_id, doc_id and {number}")
        return _select(data, number) if is_polars else data
    if not isinstance(data, Mapping):
        raise UsageError(
            f"{table} is of type {type(data).__name__}; give a dict of dicts, a frame with the columns query_id, "
            f"doc_id and {number}, a mapping of arrays, or the path of a file"
        )
    return _read_mapping(data, table, number)


def _read_mapping(data: Mapping[str, Any], table: str, number: str) -> object:
    if "query_id" in data and not isinstance(data["query_id"], Mapping):
        return _as_frame(data, table, number)
    return nest(data)


def nest(data: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping of mappings as a dict of dicts, without copying dicts. Other values stay; the kernel refuses them."""
    return {
        query: dict(docs) if not isinstance(docs, dict) and isinstance(docs, Mapping) else docs
        for query, docs in data.items()
    }


def _select(frame: Any, number: str) -> object:
    """A polars frame with only the columns to read. A column of type Null becomes text, which the kernel can read."""
    if not isinstance(frame, pl.DataFrame):
        return frame
    wanted = [name for name in ("query_id", "doc_id", number) if name in frame.columns]
    if len(wanted) < 3:
        return frame
    return frame.select(pl.col(name).cast(pl.String) if frame.schema[name] == pl.Null else name for name in wanted)


def _as_frame(columns: Mapping[str, Any], table: str, number: str) -> object:
    names = ("query_id", "doc_id", number)
    for name in names:
        if name not in columns:
            raise UsageError(f"{table} has no column '{name}'; its columns are {', '.join(map(str, columns))}")
    try:
        return _select(pl.DataFrame({name: _as_column(columns[name]) for name in names}), number)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        raise UsageError(f"{table}: the columns {', '.join(names)} do not form a table: {error}") from error


def _as_column(values: Any) -> Any:
    """A numpy array of strings or bytes as a list of `str`, which polars can read; other values unchanged."""
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind == "S":
        return [value.decode() for value in values.tolist()]
    return values.tolist() if kind in "UOT" and kind else values


_WORDS = {
    "AP": "map",
    "Bpref": "bpref",
    "ERR": "err",
    "IPrec": "iprec",
    "Judged": "judged",
    "NumQ": "num_q",
    "NumRel": "num_rel",
    "NumRet": "num_ret",
    "P": "precision",
    "R": "recall",
    "RBP": "rbp",
    "RR": "rr",
    "Rprec": "rprec",
    "SetAP": "set_map",
    "SetF": "set_f",
    "SetP": "set_precision",
    "SetR": "set_recall",
    "Success": "success",
    "infAP": "infap",
    "nDCG": "ndcg",
}


def measure_name(measure: object) -> str:
    """Return the name of a measure in results: the caller's text, or the text of an ir_measures object.

    Raises:
        UsageError: the measure is an object of another kind.
    """
    if isinstance(measure, str):
        return measure
    if is_object(measure):
        return str(measure)
    raise UsageError(f"measure {measure!r} is of type {type(measure).__name__}; write a name like 'ndcg@10'")


def measure_text(measure: object) -> str:
    """Return the name of a measure for the kernel.

    Raises:
        UsageError: the measure is an object of another kind, or the kernel does not compute it.
    """
    return measure if isinstance(measure, str) else _translate(measure, measure_name(measure))


def is_object(measure: object) -> bool:
    """Whether `measure` is an object of ir_measures, which need not be installed."""
    return any(kind.__module__ == "ir_measures.measures.base" for kind in type(measure).__mro__[:-1])


def _translate(measure: Any, name: str) -> str:
    given = {
        key: measure[key] for key in measure.SUPPORTED_PARAMS if isinstance(measure[key], str | int | float | dict)
    }
    word, parameters = _WORDS.get(measure.NAME), {key: given[key] for key in ("rel", "judged_only") if key in given}
    if word is None or "gains" in given or (word == "rbp" and "rel" not in given):
        raise UsageError(f"rageval-spec does not compute the ir_measures measure '{name}'{_advice(word)}")
    if word == "ndcg" and given["dcg"] == "exp-log2":
        parameters["gain"] = "exp"
    elif word == "set_precision" and given["relative"]:
        word = "set_relative_precision"
    elif word == "num_ret" and "rel" in parameters:
        word = "num_rel_ret"
    elif word in ("rbp", "set_f"):
        own = "p" if word == "rbp" else "beta"
        parameters[own] = given[own]
    at = given.get(measure.AT_PARAM)
    texts = [f"{key}={_as_text(value)}" for key, value in parameters.items() if value is not False]
    return word + (f"({', '.join(texts)})" if texts else "") + ("" if at is None else f"@{at}")


def _as_text(value: object) -> str:
    return "true" if value is True else str(value)


def _advice(word: str | None) -> str:
    if word == "ndcg":
        return ": gains can only be linear or exponential; map the relevance values of the qrels instead"
    return "; name the lowest relevance that counts as relevant: RBP(rel=1)" if word == "rbp" else ""
