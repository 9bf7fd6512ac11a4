"""Ranking evaluation for other programs: qrels and a run in, values out.

Nothing heavy is imported before it is needed: from files or dicts to means takes neither numpy nor polars.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

from rageval_spec import kernels
from rageval_spec.errors import NothingScoredError, UsageError
from rageval_spec.kernels.bounds import check_bounds

if TYPE_CHECKING:
    import polars as pl


class ArrowTable(Protocol):
    """A polars, pyarrow or pandas frame: anything with the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Give the table as a stream."""
        ...


Judgements: TypeAlias = Mapping[str, Mapping[str, int]] | ArrowTable | Mapping[str, Any] | str | PathLike[str]
Run: TypeAlias = Mapping[str, Mapping[str, float]] | ArrowTable | Mapping[str, Any] | str | PathLike[str]
Profile: TypeAlias = Literal["trec_eval", "float64", "input", "ranx", "beir"]
Missing: TypeAlias = Literal["skip", "zero"]
Duplicates: TypeAlias = Literal["error", "first"]


class Results:
    """Values of several measures on the queries of one run."""

    def __init__(self, names: Sequence[str], evaluator: kernels.Evaluator, evaluation: kernels.Evaluation) -> None:
        """Take over an evaluation; `evaluate` does this."""
        self._names = list(names)
        self._evaluator = evaluator
        self._evaluation = evaluation
        self._means = dict(zip(self._names, evaluation.aggregates(), strict=True))

    @property
    def means(self) -> dict[str, float]:
        """Measure, as the caller named it, to its aggregate.

        That is trec_eval's mean to the last digit, the geometric mean for `gm_map`, the sum for counts, the mean of the
        ranks above 0 for `target_rank`.

        Raises:
            NothingScoredError: no query is in both qrels and run, and nothing has no mean.
        """
        if not len(self):
            raise NothingScoredError(
                "no query of the qrels is in the run, so there is nothing to average; do the ids of both agree?"
            )
        return self._means

    def __len__(self) -> int:
        """How many queries have values."""
        return len(self._evaluation)

    def __getitem__(self, measure: str) -> float:
        """The aggregate of one measure, by the name that the caller gave it."""
        return self.means[measure]

    def __repr__(self) -> str:
        """The means and the number of queries."""
        means = ", ".join(f"{name}={mean:.4f}" for name, mean in self._means.items()) if len(self) else "no means"
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
            NothingScoredError: as `means`.
        """
        low, high = self._tie_values()
        _ = self.means
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
    profile: Profile = "trec_eval",
    missing: Missing = "skip",
    relevance_level: int = 1,
    judged_only: bool = False,
    depth: int | None = None,
    drop_self: bool | None = None,
    duplicates: Duplicates = "error",
    tie_range: bool = False,
    threads: int | None = None,
) -> Results:
    """Compute ranking measures of a run: all of them in one pass, with trec_eval's numbers.

    Args:
        qrels: `{query_id: {doc_id: relevance}}`, of which a query without judgements is left out; or a frame
            (polars, pyarrow, pandas, anything with `__arrow_c_stream__`) or a mapping of arrays with the columns
            query_id, doc_id, relevance; or the path of a file (TREC's four columns or BEIR's three; plain, .gz, .zst).
        run: `{query_id: {doc_id: score}}`, where a query without documents is an empty ranking; or a frame or arrays
            with query_id, doc_id, score; or the path of a TREC run file.
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
        DataError: a malformed file (with `file:line`); a NaN score or a document twice in a table (with the row).
        TypeError, ValueError: in a dict, a wrong type or a NaN score (with the entry's place); in a table, a missing
            column, a wrong type or a null; a setting out of range.
    """
    _check(profile, missing, duplicates, depth=depth, relevance_level=relevance_level, threads=threads)
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
    data = _prepare(qrels, "qrels", "relevance"), _prepare(run, "run", "score")
    return Results(names, evaluator, evaluator.evaluate(*data))


def _check(profile: str, missing: str, duplicates: str, **numbers: int | None) -> None:
    for setting, value, kind in (
        ("profile", profile, Profile),
        ("missing", missing, Missing),
        ("duplicates", duplicates, Duplicates),
    ):
        if value not in get_args(kind):
            raise UsageError(f"{setting} {value!r} is not known; write one of {', '.join(get_args(kind))}")
    for setting, number in numbers.items():
        try:
            index(1 if number is None else number)
        except TypeError:
            raise UsageError(f"{setting} {number!r} is not a whole number") from None


def _prepare(data: Any, table: str, number: str) -> object:
    """What the kernel reads: a dict of dicts, an object with the Arrow PyCapsule interface, or a path."""
    if isinstance(data, str | PathLike):
        check_bounds(data)
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return _select(data, number) if type(data).__module__.partition(".")[0] == "polars" else data
    if not isinstance(data, Mapping):
        raise UsageError(
            f"{table} is of type {type(data).__name__}; give a dict of dicts, a frame with the columns query_id, "
            f"doc_id and {number}, a mapping of arrays, or the path of a file"
        )
    if "query_id" in data and not isinstance(data["query_id"], Mapping):
        return _as_frame(data, table, number)
    return nest(data)


def nest(data: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping of mappings as a dict of dicts, which are not copied; other values stay, for the kernel to refuse."""
    return {query: dict(docs) if _is_other_mapping(docs) else docs for query, docs in data.items()}


def _is_other_mapping(docs: object) -> bool:
    return isinstance(docs, Mapping) and not isinstance(docs, dict)


def _select(frame: Any, number: str) -> object:
    """A polars frame without what nobody reads; a column of nothing but nulls, which no kernel can import, as text."""
    import polars as pl

    if not isinstance(frame, pl.DataFrame):
        return frame
    wanted = [name for name in ("query_id", "doc_id", number) if name in frame.columns]
    if len(wanted) < 3:
        return frame
    return frame.select(pl.col(name).cast(pl.String) if frame.schema[name] == pl.Null else name for name in wanted)


def _as_frame(columns: Mapping[str, Any], table: str, number: str) -> object:
    import polars as pl

    names = ("query_id", "doc_id", number)
    for name in names:
        if name not in columns:
            raise UsageError(f"{table} has no column '{name}'; its columns are {', '.join(map(str, columns))}")
    try:
        return _select(pl.DataFrame({name: _as_column(columns[name]) for name in names}), number)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        raise UsageError(f"{table}: the columns {', '.join(names)} make no table: {error}") from error


def _as_column(values: Any) -> Any:
    """A numpy array of fixed-width strings or bytes as Python's own, which polars reads."""
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind == "S":
        return [value.decode() for value in values.tolist()]
    return values.tolist() if kind in "UOT" and kind else values
