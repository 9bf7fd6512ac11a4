"""Ranking measures with trec_eval's numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rageval_spec import _core
from rageval_spec.kernels.arguments import as_vector, check_threads
from rageval_spec.kernels.options import RankingOptions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rageval_spec.kernels.arguments import Numbers

DEFAULTS = RankingOptions()
_TIES = {"trec_eval_2023": "float64"}

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
    measures: Sequence[str], options: RankingOptions = DEFAULTS, *, threads: int | None = None
) -> Evaluator:
    """Return measures and options ready for any number of runs.

    Args:
        measures: names, as `parse_measure` reads them.
        options: how rankings are read.
        threads: all cores where None. The values do not depend on it.

    Raises:
        UsageError: an unknown measure, or none.
    """
    return _core.Evaluator(
        list(measures),
        ties=_TIES.get(options.ties, options.ties),
        depth=options.depth,
        judged_only=options.judged_only,
        drop_self=options.drop_self,
        level=options.relevance_level,
        missing_as_empty=options.missing == "zero",
        keep_first=options.duplicates == "first",
        tie_range=options.tie_range,
        threads=check_threads(threads),
    )


def evaluate_ranking(
    qrels: pl.DataFrame,
    run: pl.DataFrame | PathLike[str] | None,
    measures: Sequence[str],
    options: RankingOptions = DEFAULTS,
    *,
    threads: int | None = None,
) -> RankingValues:
    """Compute measures of a run in one pass.

    Args:
        qrels: the columns query_id, doc_id, relevance; rows may come in any order.
        run: the columns query_id, doc_id, score, in any order; or the path of a TREC run file.
        measures: names, as `parse_measure` reads them.
        options: how rankings are read.
        threads: all cores where None. The values do not depend on it.

    Raises:
        DataError: a NaN score, a document twice (with the row or the line).
        UsageError: an unknown measure, or none.
        ValueError: a missing or null column.
    """
    evaluator = prepare_evaluator(measures, options, threads=threads)
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
