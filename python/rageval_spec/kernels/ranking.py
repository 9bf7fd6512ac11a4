"""Computes ranking measures, with the same numbers as trec_eval."""

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
"""Prepared measures and options, which can evaluate any number of runs."""
Evaluation: TypeAlias = _core.Evaluation
"""The values of all evaluated queries, in ascending order of query ids."""


class Measure(NamedTuple):
    """The parts of a measure's name."""

    name: str
    """The canonical word: `ndcg`."""
    cutoff: int | None
    parameters: dict[str, str | float | int | bool]
    """Those of `rel`, `judged_only`, `recall` and the word's own parameters that the name gives."""
    text: str
    """The canonical text: `precision(rel=2)@10`."""


class MeasureWord(NamedTuple):
    """A word for a measure, and the parameters that it accepts."""

    name: str
    aliases: list[str]
    cutoff: str
    """`never`, `optional`, `required`, or `level` (a recall level behind the `@`)."""
    parameters: list[str]
    """The word's own parameters, and `rel` if a relevance level has an effect. All words also accept `judged_only`."""
    statistic: str
    """`mean`, `mean rank` (of ranks from 1; lower is better, and 0 means no rank), `geometric mean` (of values that are
    logarithms) or `sum`."""
    listed: bool
    """False for words that exist only for the pytrec_eval drop-in."""


class RankingValues(NamedTuple):
    """The values of several measures on the same queries.

    `query_ids` are sorted bytewise. With `missing="zero"` they are all queries of the qrels, otherwise only those that
    are also in the run.
    """

    query_ids: list[str]
    measures: list[str]
    """The canonical names, in the requested order."""
    values: NDArray[np.float64]
    """Shape (measures, queries); never NaN. If a formula would divide by 0, the value is 0, as in trec_eval."""
    low: NDArray[np.float64] | None
    """The lowest values over all orders of tied documents; None unless `tie_range` is set. For `target_rank` it is the
    best rank, or 0 for no rank."""
    high: NDArray[np.float64] | None
    """The highest values, likewise. For `target_rank` it is the worst rank, or 0 if some order loses the document."""
    missing: NDArray[np.bool_]
    """Whether the query is not in the run."""
    no_relevant: NDArray[np.bool_]
    """Whether the query has no relevant document."""
    unjudged_queries: int
    """The number of queries of the run that are not in the qrels, and so are not evaluated."""


def parse_measure(text: str) -> Measure:
    """Parse the name of a measure, in the spelling of ir_measures, trec_eval, BEIR or this package.

    Raises:
        UsageError: the name is unknown (the message suggests the nearest one), or a parameter or the cutoff is wrong.
    """
    name, cutoff, parameters, canonical = _core.parse_measure(text)
    return Measure(name, cutoff, parameters, canonical)


def measure_words() -> list[MeasureWord]:
    """Return all words for measures, listed ones first."""
    return [MeasureWord(*word) for word in _core.measure_words()]


def measure_names() -> tuple[str, ...]:
    """Return the canonical names of the listed measures, which specs can use."""
    return tuple(word.name for word in measure_words() if word.listed)


def measure_aliases() -> dict[str, str]:
    """Return the canonical name of each alias. Case, `-` and `_` do not matter in aliases and names."""
    return {alias: word.name for word in measure_words() if word.listed for alias in word.aliases}


def aggregate_measure(measure: str, values: Numbers, missing: NDArray[np.bool_] | None = None) -> float:
    """Return trec_eval's aggregate of per-query values, shape (n,), in ascending order of query ids.

    It is the mean, added up in this order; for `gm_map`, whose values are logarithms, `exp` of the mean; for counts,
    the sum; for `target_rank`, the mean without zeros, which mean "no rank". `missing` marks queries that are not in
    the run; a geometric mean adds them last, as trec_eval does. Without values the aggregate is 0.
    """
    return _core.aggregate_measure(measure, as_vector("values", values), missing)


def prepare_evaluator(
    measures: Sequence[str], options: RankingOptions = DEFAULTS, *, threads: int | None = None
) -> Evaluator:
    """Prepare measures and options for the evaluation of any number of runs.

    Args:
        measures: names that `parse_measure` accepts.
        options: how rankings are read.
        threads: the number of threads; None for one per core. The values do not depend on it.

    Raises:
        UsageError: a measure is unknown, or there are no measures.
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
    """Compute all measures of a run in one pass.

    Args:
        qrels: a table with the columns query_id, doc_id, relevance and rows in any order.
        run: a table with the columns query_id, doc_id, score and rows in any order, or the path of a TREC run file.
        measures: names that `parse_measure` accepts.
        options: how rankings are read.
        threads: the number of threads; None for one per core. The values do not depend on it.

    Raises:
        DataError: a score is NaN, or a query has a document twice (with the row or the line).
        UsageError: a measure is unknown, or there are no measures.
        ValueError: a column is missing or null.
    """
    evaluator = prepare_evaluator(measures, options, threads=threads)
    return ranking_values(evaluator, evaluator.evaluate(qrels, run))


def ranking_values(evaluator: Evaluator, evaluation: Evaluation) -> RankingValues:
    """Copy the values of an evaluation into arrays."""
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
