"""Ranking measures with trec_eval's numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from rageval_spec import _core
from rageval_spec.kernels.arguments import as_vector, check_between, check_count, check_threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rageval_spec.kernels.arguments import Numbers

TieRule: TypeAlias = Literal["trec_eval", "input", "float64", "ranx"]

Evaluator: TypeAlias = _core.Evaluator
"""Measures and options, ready for any number of runs."""
Evaluation: TypeAlias = _core.Evaluation
"""Values of all queries, by rising query id."""


class Measure(NamedTuple):
    """A measure's name, taken apart."""

    name: str
    """The canonical word: `ndcg`."""
    cutoff: int | None
    parameters: dict[str, str | float | int | bool]
    """`rel`, `judged_only`, `recall` and the word's own, as far as they are given."""
    text: str
    """The canonical text: `precision(rel=2)@10`."""


class MeasureWord(NamedTuple):
    """A word of the kernel, and what its name may carry."""

    name: str
    aliases: list[str]
    cutoff: str
    """`never`, `optional`, `required`, or `level` (a recall level behind the `@`)."""
    parameters: list[str]
    """Its own, beside `judged_only`, which all words take, and `rel`, where a relevance level changes something."""
    statistic: str
    """`mean`, `mean rank` (of ranks from 1, lower being better; 0 is none), `geometric mean` (of values that are
    logarithms) or `sum`."""
    listed: bool
    """False for words that exist for the drop-in's sake alone."""


class RankingValues(NamedTuple):
    """Values of several measures on the same queries.

    `query_ids` are sorted bytewise: all of the qrels with `missing="zero"`, else those that the run has too.
    """

    query_ids: list[str]
    measures: list[str]
    """Canonical names, in the order asked for."""
    values: NDArray[np.float64]
    """[measures, queries]; never NaN. A measure whose formula would divide by 0 is 0, as trec_eval has it."""
    low: NDArray[np.float64] | None
    """The lowest value over all orders of tied documents; None unless asked for. For `target_rank` the best rank, 0 for
    none."""
    high: NDArray[np.float64] | None
    """The highest value; for `target_rank` the worst rank, 0 where some order loses the document."""
    missing: NDArray[np.bool_]
    """Whether the query is not in the run."""
    no_relevant: NDArray[np.bool_]
    """Whether the query has no relevant document."""
    unjudged_queries: int
    """How many queries of the run are not in the qrels; they are not evaluated."""


def parse_measure(text: str) -> Measure:
    """Read a measure's name as ir_measures, trec_eval, BEIR or we spell it.

    Raises:
        UsageError: an unknown name (with the nearest known one), a wrong parameter or cutoff.
    """
    name, cutoff, parameters, canonical = _core.parse_measure(text)
    return Measure(name, cutoff, parameters, canonical)


def measure_words() -> list[MeasureWord]:
    """Return all words of the kernel, listed ones first."""
    return [MeasureWord(*word) for word in _core.measure_words()]


def measure_names() -> tuple[str, ...]:
    """Return the canonical names that are offered in specs."""
    return tuple(word.name for word in measure_words() if word.listed)


def measure_aliases() -> dict[str, str]:
    """Return alias to canonical name; case, `-` and `_` do not matter in either."""
    return {alias: word.name for word in measure_words() if word.listed for alias in word.aliases}


def aggregate_measure(measure: str, values: Numbers, missing: NDArray[np.bool_] | None = None) -> float:
    """Return trec_eval's aggregate of per-query values, shape (n,), by rising query id.

    That is the mean in this order of addition; for `gm_map`, whose values are logarithms, `exp` of it; for counts
    the sum; for `target_rank` the mean of the ranks, without the zeros, which are none. `missing` marks queries that
    are not in the run: a geometric mean adds them last, as trec_eval does. Without values it is 0.
    """
    return _core.aggregate_measure(measure, as_vector("values", values), missing)


def prepare_evaluator(
    measures: Sequence[str],
    *,
    ties: TieRule = "trec_eval",
    depth: int | None = None,
    judged_only: bool = False,
    drop_self: bool = False,
    relevance_level: int = 1,
    missing: Literal["zero", "skip"] = "skip",
    duplicates: Literal["error", "first"] = "error",
    tie_range: bool = False,
    threads: int | None = None,
) -> Evaluator:
    """Return measures and options ready for any number of runs; the settings are those of `evaluate_ranking`."""
    return _core.Evaluator(
        list(measures),
        ties=ties,
        depth=None if depth is None else check_count("depth", depth),
        judged_only=judged_only,
        drop_self=drop_self,
        level=check_between("relevance_level", relevance_level, 1, 2**31 - 1),
        missing_as_empty=missing == "zero",
        keep_first=duplicates == "first",
        tie_range=tie_range,
        threads=check_threads(threads) or 0,
    )


def evaluate_ranking(
    qrels: pl.DataFrame,
    run: pl.DataFrame,
    measures: Sequence[str],
    *,
    ties: TieRule = "trec_eval",
    depth: int | None = None,
    judged_only: bool = False,
    drop_self: bool = False,
    relevance_level: int = 1,
    missing: Literal["zero", "skip"] = "zero",
    duplicates: Literal["error", "first"] = "error",
    tie_range: bool = False,
    threads: int | None = None,
) -> RankingValues:
    """Compute measures of a run in one pass.

    `qrels` has the columns query_id, doc_id, relevance, `run` query_id, doc_id, score; rows may come in any order.

    Args:
        ties: how equal scores are ordered. "trec_eval": scores as float32, ties by doc_id descending bytewise;
            "float64": the same without the cast; "input": in the order of the rows; "ranx": as that library does.
        depth: look at the first so many documents of a ranking (trec_eval's -M).
        judged_only: remove unjudged documents first (-J).
        drop_self: remove a document whose id is the query's.
        relevance_level: from which relevance on a document is relevant (-l).
        missing: a query that is not in the run counts as an empty ranking (-c), or not at all.
        duplicates: a document that a query has twice is an error, or its first row counts.
        tie_range: compute `low` and `high` too.
        threads: all cores where None. The values do not depend on it.

    Raises:
        DataError: a NaN score, a document twice (with the row).
        UsageError: an unknown measure.
        ValueError: a missing or null column, a wrong setting.
    """
    evaluator = prepare_evaluator(
        measures,
        ties=ties,
        depth=depth,
        judged_only=judged_only,
        drop_self=drop_self,
        relevance_level=relevance_level,
        missing=missing,
        duplicates=duplicates,
        tie_range=tie_range,
        threads=threads,
    )
    return ranking_values(evaluator, evaluator.evaluate(qrels, run))


def ranking_values(evaluator: Evaluator, evaluation: Evaluation) -> RankingValues:
    """Copy an evaluation's values into arrays."""
    return RankingValues(
        evaluation.query_ids,
        evaluator.measures,
        evaluation.values,
        evaluation.low,
        evaluation.high,
        evaluation.missing,
        evaluation.no_relevant,
        evaluation.unjudged_queries,
    )
