"""Ranking evaluation for other programs: qrels and a run in, values out.

Nothing heavy is imported before it is needed: from files or dicts to means takes neither numpy nor polars.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from rageval_spec import kernels
from rageval_spec.errors import UsageError

if TYPE_CHECKING:
    import polars as pl


class ArrowTable(Protocol):
    """A polars, pyarrow or pandas frame: anything with the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Give the table as a stream."""
        ...


Judgements: TypeAlias = Mapping[str, Mapping[str, int]] | ArrowTable | Mapping[str, Any] | str | PathLike[str]
Run: TypeAlias = Mapping[str, Mapping[str, float]] | ArrowTable | Mapping[str, Any] | str | PathLike[str]


class Results:
    """Values of several measures on the queries of one run.

    Attributes:
        means: measure, as the caller named it, to its aggregate: trec_eval's mean to the last digit, the geometric
            mean for `gm_map`, the sum for counts. Without any query it is 0.
    """

    means: dict[str, float]

    def __init__(self, names: Sequence[str], evaluator: kernels.Evaluator, evaluation: kernels.Evaluation) -> None:
        """Take over an evaluation; `evaluate` does this."""
        self._names = list(names)
        self._evaluator = evaluator
        self._evaluation = evaluation
        self.means = dict(zip(self._names, evaluation.aggregates(), strict=True))

    def __len__(self) -> int:
        """How many queries have values."""
        return len(self._evaluation)

    def __getitem__(self, measure: str) -> float:
        """The aggregate of one measure, by the name that the caller gave it."""
        return self.means[measure]

    def __repr__(self) -> str:
        """The means and the number of queries."""
        means = ", ".join(f"{name}={mean:.4f}" for name, mean in self.means.items())
        return f"Results({means}, queries={len(self)})"

    @property
    def missing_queries(self) -> list[str]:
        """Queries that are not in the run; they are there, as empty rankings, with `missing="zero"` alone."""
        marks = zip(self._evaluation.query_ids, self._evaluation.missing, strict=True)
        return [query for query, missing in marks if missing]

    @property
    def unjudged_queries(self) -> int:
        """How many queries of the run are not in the qrels."""
        return self._evaluation.unjudged_queries

    def per_query(self) -> dict[str, dict[str, float]]:
        """`{query_id: {measure: value}}`, by rising query_id."""
        return self._evaluation.to_dicts(self._names)

    def to_polars(self) -> pl.DataFrame:
        """A row a query: `query_id`, then a column of float64 a measure, by rising query_id."""
        import polars as pl

        columns = {"query_id": pl.Series(self._evaluation.query_ids, dtype=pl.String)}
        return pl.DataFrame({**columns, **dict(zip(self._names, self._evaluation.values, strict=True))})

    @property
    def tie_range(self) -> dict[str, tuple[float, float]]:
        """Measure to the lowest and highest aggregate over all orders of tied documents.

        Raises:
            UsageError: `evaluate` was not told `tie_range=True`.
        """
        low, high = self._tie_values()
        names = zip(self._names, self._evaluator.measures, low, high, strict=True)
        missing = self._evaluation.missing
        return {
            name: (
                kernels.aggregate_measure(measure, lowest, missing),
                kernels.aggregate_measure(measure, highest, missing),
            )
            for name, measure, lowest, highest in names
        }

    @property
    def tied_queries(self) -> dict[str, int]:
        """Measure to the number of queries whose value the order of tied documents decides."""
        low, high = self._tie_values()
        return {name: int((low[row] != high[row]).sum()) for row, name in enumerate(self._names)}

    def _tie_values(self) -> tuple[Any, Any]:
        if self._evaluation.low is None:
            raise UsageError("tie ranges were not computed; call evaluate(..., tie_range=True)")
        return self._evaluation.low, self._evaluation.high


def evaluate(
    qrels: Judgements,
    run: Run,
    measures: Iterable[str],
    *,
    profile: Literal["trec_eval", "float64", "input", "ranx", "beir"] = "trec_eval",
    missing: Literal["skip", "zero"] = "skip",
    relevance_level: int = 1,
    judged_only: bool = False,
    depth: int | None = None,
    drop_self: bool | None = None,
    duplicates: Literal["error", "first"] = "error",
    tie_range: bool = False,
    threads: int | None = None,
) -> Results:
    """Compute ranking measures of a run: all of them in one pass, with trec_eval's numbers.

    Args:
        qrels: `{query_id: {doc_id: relevance}}`; or a frame (polars, pyarrow, pandas, anything with
            `__arrow_c_stream__`) or a mapping of arrays with the columns query_id, doc_id, relevance; or the path
            of a file (TREC's four columns or BEIR's three; plain, .gz, .zst).
        run: `{query_id: {doc_id: score}}`; or a frame or arrays with query_id, doc_id, score; or the path of a TREC
            run file.
        measures: names such as `ndcg@10`, `map`, `rr@10`, `recall@100`, `ndcg(gain=exp)@10`, `p(rel=2)@5`; those
            of trec_eval, ir_measures and BEIR are understood.
        profile: how ties and precision are handled. "trec_eval": scores as float32, ties by doc_id descending;
            "float64": the same without the cast; "input": ties as the run has them; "ranx": as ranx orders them;
            "beir": trec_eval's, and a document whose id is the query's is dropped.
        missing: a query of the qrels that is not in the run is left out ("skip", as trec_eval does), or counts as
            an empty ranking ("zero", its `-c`).
        relevance_level: from which relevance on a document is relevant (`-l`).
        judged_only: remove unjudged documents first (`-J`).
        depth: look at the first so many documents of a ranking (`-M`).
        drop_self: remove a document whose id is the query's; as the profile says where None.
        duplicates: a document that a query has twice is an error, or its first row counts.
        tie_range: also compute the lowest and highest value over all orders of tied documents.
        threads: all cores where None; the values do not depend on it.

    Raises:
        UsageError: an unknown measure (with the nearest known one), a wrong setting.
        DataError: a malformed file (with `file:line`) or row.
        TypeError, ValueError: a wrong type, a NaN score, in a dict (with the entry's place) or a column.
    """
    names = [measures] if isinstance(measures, str) else list(measures)
    evaluator = kernels.prepare_evaluator(
        names,
        ties="trec_eval" if profile == "beir" else profile,
        depth=depth,
        judged_only=judged_only,
        drop_self=profile == "beir" if drop_self is None else drop_self,
        relevance_level=relevance_level,
        missing=missing,
        duplicates=duplicates,
        tie_range=tie_range,
        threads=threads,
    )
    return Results(names, evaluator, _dispatch(evaluator, qrels, run))


def _dispatch(evaluator: kernels.Evaluator, qrels: Judgements, run: Run) -> kernels.Evaluation:
    if isinstance(qrels, dict) and isinstance(run, dict) and not (_has_columns(qrels) or _has_columns(run)):
        return evaluator.evaluate_dicts(qrels, run)
    from_file, to_file = isinstance(qrels, str | PathLike), isinstance(run, str | PathLike)
    if from_file and to_file:
        return evaluator.evaluate_files(fspath(qrels), fspath(run))  # type: ignore[arg-type]
    if from_file:
        return evaluator.evaluate_file_and_frame(fspath(qrels), _as_frame(run, "run", "score"))  # type: ignore[arg-type]
    if to_file:
        return evaluator.evaluate_frame_and_file(_as_frame(qrels, "qrels", "relevance"), fspath(run))  # type: ignore[arg-type]
    if _is_nested(qrels) and _is_nested(run):
        return evaluator.evaluate_dicts(_as_dicts(qrels), _as_dicts(run))
    return evaluator.evaluate_frames(_as_frame(qrels, "qrels", "relevance"), _as_frame(run, "run", "score"))


def _has_columns(data: Mapping[str, Any]) -> bool:
    """Whether a mapping is a table of arrays rather than queries with documents."""
    return "query_id" in data and "doc_id" in data and not isinstance(data["query_id"], Mapping)


def _is_nested(data: object) -> bool:
    return isinstance(data, Mapping) and not _has_columns(data)


def _as_dicts(data: Any) -> dict[str, dict[str, Any]]:
    """A copy in which every mapping is a dict."""
    return {query: docs if isinstance(docs, dict) else dict(docs) for query, docs in data.items()}


def _as_frame(data: Any, table: str, number: str) -> object:
    if hasattr(data, "__arrow_c_stream__"):
        return data
    import polars as pl

    if _is_nested(data):
        rows = [(query, doc, value) for query, docs in data.items() for doc, value in docs.items()]
        return pl.DataFrame(rows, schema=["query_id", "doc_id", number], orient="row")
    if isinstance(data, Mapping):
        return pl.DataFrame({name: _as_column(data[name]) for name in ("query_id", "doc_id", number) if name in data})
    raise UsageError(
        f"{table} is of type {type(data).__name__}; give a dict of dicts, a frame with the columns query_id, doc_id "
        f"and {number}, a mapping of arrays, or the path of a file"
    )


def _as_column(values: Any) -> Any:
    """A numpy array of fixed-width strings or bytes as Python's own, which polars reads."""
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind == "S":
        return [value.decode() for value in values.tolist()]
    return values.tolist() if kind in "UOT" and kind else values
