"""The results of `evaluate`: values by query, and their aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rageval_spec import kernels
from rageval_spec.api.measure_objects import measure_name
from rageval_spec.errors import NothingScoredError, UsageError

if TYPE_CHECKING:
    import polars as pl


class Results:
    """The values of several measures on the queries of one run, and their aggregates."""

    def __init__(self, names: Sequence[str], evaluator: kernels.Evaluator, evaluation: kernels.Evaluation) -> None:
        """`evaluate` creates results; `names` are the measures as the caller wrote them."""
        self._names = list(names)
        self._evaluator = evaluator
        self._evaluation = evaluation
        self._means = dict(zip(self._names, evaluation.aggregates(), strict=True))

    @property
    def means(self) -> dict[str, float]:
        """`{measure: aggregate}`, with the measures as the caller wrote them.

        The aggregate is trec_eval's mean to the last digit, the geometric mean for `gm_map`, the sum for counts, and
        the mean of the ranks above 0 for `target_rank`.

        Raises:
            NothingScoredError: no query is in both the qrels and the run, so there is no mean.
        """
        if not len(self):
            raise NothingScoredError(self._why_nothing())
        return self._means

    def _why_nothing(self) -> str:
        if not self._evaluation.judged_queries:
            return "the qrels are empty, so there is nothing to average"
        if not self._evaluation.unjudged_queries:
            return "the run is empty, so there is nothing to average"
        return "no query of the qrels is in the run, so there is nothing to average; check that their ids agree"

    def __len__(self) -> int:
        """The number of queries with values."""
        return len(self._evaluation)

    def __getitem__(self, measure: object) -> float:
        """The aggregate of one measure, by the name or the object that was passed to `evaluate`."""
        return self.means[measure_name(measure)]

    def __repr__(self) -> str:
        """`Results(ndcg@10=0.4123, queries=40)`."""
        means = ", ".join(f"{name}={mean:.4f}" for name, mean in self._means.items()) if len(self) else "no means"
        return f"Results({means}, queries={len(self)})"

    @property
    def missing_queries(self) -> list[str]:
        """The queries that are not in the run but have values as empty rankings; only with `missing="zero"`."""
        marks = zip(self._evaluation.query_ids, self._evaluation.missing, strict=True)
        return [query for query, missing in marks if missing]

    @property
    def unjudged_queries(self) -> int:
        """The number of queries of the run that are not in the qrels."""
        return self._evaluation.unjudged_queries

    def per_query(self) -> dict[str, dict[str, float]]:
        """`{query_id: {measure: value}}`, in ascending order of query ids."""
        return self._evaluation.to_dicts(self._names)

    def to_polars(self) -> pl.DataFrame:
        """One row per query, in ascending order of ids: `query_id`, then a float64 column for each measure."""
        import polars as pl

        columns = {"query_id": pl.Series(self._evaluation.query_ids, dtype=pl.String)}
        return pl.DataFrame({**columns, **dict(zip(self._names, self._evaluation.values, strict=True))})

    @property
    def tie_range(self) -> dict[str, tuple[float, float]]:
        """`{measure: (lowest, highest)}`: the range of the aggregate over all orders of tied documents.

        Raises:
            UsageError: `evaluate` was called without `tie_range=True`.
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
        """`{measure: count}`: the number of queries whose value depends on the order of tied documents.

        Raises:
            UsageError: `evaluate` was called without `tie_range=True`.
        """
        low, high = self._tie_values()
        return {name: int((low[row] != high[row]).sum()) for row, name in enumerate(self._names)}

    def _tie_values(self) -> tuple[Any, Any]:
        if self._evaluation.low is None:
            raise UsageError("tie ranges were not computed; call evaluate(..., tie_range=True)")
        return self._evaluation.low, self._evaluation.high
