"""Computes ranking measures, with the same numbers as trec_eval, and fuses and sorts runs.

`RankingOptions` says how rankings are read. The command line, specs, `evaluate` and the drop-ins all use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from rageval_spec import _core
from rageval_spec.dataclass import dataclass
from rageval_spec.errors import UsageError
from rageval_spec.kernels.inputs import as_vector, check_between, check_count, check_threads
from rageval_spec.libraries import Bools, Floats, pl

if TYPE_CHECKING:
    from os import PathLike

    from rageval_spec.kernels.inputs import Numbers


TieRule: TypeAlias = Literal["trec_eval", "trec_eval_2023", "float64", "input", "ranx"]
"""How documents with equal scores are ordered.

- `trec_eval`: as in trec_eval's tag v9.0.8 (commit d95ca64, 2020), which prints its version as 9.0.7: scores as
  float32, ties by doc_id descending, bytewise.
- `trec_eval_2023`: as in trec_eval's tag trec_eval-9.0.8 (2023), which prints its version as 9.0.8: scores as float64,
  ties as above.
- `float64`: another name for `trec_eval_2023`.
- `input`: scores as float64, ties in the order of the run's rows.
- `ranx`: scores as float64, ties as the library ranx orders them.
"""
Missing: TypeAlias = Literal["zero", "skip"]
"""How a query of the qrels that is not in the run is treated: as an empty ranking ("zero"), or excluded ("skip")."""
Duplicates: TypeAlias = Literal["error", "first"]
"""How a document that a query has twice is treated: as an error, or only its first row counts ("first")."""

# Plain tuples: a `Literal` takes as long to hash as a whole ranking may take to check, and options are made for each.
_TIE_RULES: tuple[str, ...] = get_args(TieRule)
_MISSING: tuple[str, ...] = get_args(Missing)
_DUPLICATES: tuple[str, ...] = get_args(Duplicates)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingOptions:
    """How rankings are read. The defaults are those of trec_eval, whose own options are in brackets.

    Attributes:
        ties: how documents with equal scores are ordered.
        depth: use only the first `depth` documents of a ranking; None for all (`-M`).
        judged_only: remove unjudged documents, after the cut at `depth` (`-J`).
        drop_self: remove a document whose id is the query's.
        relevance_level: the lowest relevance that counts as relevant, at least 1 (`-l`).
        missing: a query of the qrels that is not in the run is excluded ("skip"), or counts as an empty ranking
            ("zero", `-c`).
        duplicates: a document that a query has twice is an error ("error"), or only its first row counts ("first").
        tie_range: also compute the lowest and the highest value over all orders of tied documents.

    Raises:
        UsageError: a word is not one of those above, or a number is not whole.
        ValueError: a number is out of range.
    """

    ties: TieRule = "trec_eval"
    depth: int | None = None
    judged_only: bool = False
    drop_self: bool = False
    relevance_level: int = 1
    missing: Missing = "skip"
    duplicates: Duplicates = "error"
    tie_range: bool = False

    def __post_init__(self) -> None:
        """Check every setting, and raise as described above."""
        check_choice("ties", self.ties, _TIE_RULES)
        check_choice("missing", self.missing, _MISSING)
        check_choice("duplicates", self.duplicates, _DUPLICATES)
        if self.depth is not None:
            check_count("depth", check_whole("depth", self.depth))
        check_between("relevance_level", check_whole("relevance_level", self.relevance_level), 1, 2**31 - 1)


def check_choice(setting: str, value: object, words: Sequence[str]) -> None:
    """Raise `UsageError` if `value` is not one of the words."""
    if value not in words:
        raise UsageError(f"{setting} {value!r} is not known; write one of {', '.join(words)}")


def check_whole(setting: str, value: object) -> int:
    """Return a whole number, including one of numpy's types, as an `int`; otherwise raise `UsageError`."""
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise UsageError(f"{setting} {value!r} is not a whole number") from None


DEFAULTS = RankingOptions()
_TIES = {"trec_eval_2023": "float64"}

Evaluator: TypeAlias = _core.Evaluator
"""Prepared measures and options, which can evaluate any number of runs."""
Evaluation: TypeAlias = _core.Evaluation
"""The values of all evaluated queries, in ascending order of query ids."""


class RankingMeasure(NamedTuple):
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
    values: Floats
    """Shape (measures, queries); never NaN. If a formula would divide by 0, the value is 0, as in trec_eval."""
    low: Floats | None
    """The lowest values over all orders of tied documents; None unless `tie_range` is set. For `target_rank` it is the
    best rank, or 0 for no rank."""
    high: Floats | None
    """The highest values, likewise. For `target_rank` it is the worst rank, or 0 if some order loses the document."""
    missing: Bools
    """Whether the query is not in the run."""
    no_relevant: Bools
    """Whether the query has no relevant document."""
    unjudged_queries: int
    """The number of queries of the run that are not in the qrels, and so are not evaluated."""


def parse_measure(text: str) -> RankingMeasure:
    """Parse the name of a measure, in the spelling of ir_measures, trec_eval, BEIR or this package.

    Raises:
        UsageError: the name is unknown (the message suggests the nearest one), or a parameter or the cutoff is wrong.
    """
    name, cutoff, parameters, canonical = _core.parse_measure(text)
    return RankingMeasure(name, cutoff, parameters, canonical)


def measure_words() -> list[MeasureWord]:
    """Return all words for measures, listed ones first."""
    return [MeasureWord(*word) for word in _core.measure_words()]


def measure_names() -> tuple[str, ...]:
    """Return the canonical names of the listed measures, which specs can use."""
    return tuple(word.name for word in measure_words() if word.listed)


def measure_aliases() -> dict[str, str]:
    """Return the canonical name of each alias. Case, `-` and `_` do not matter in aliases and names."""
    return {alias: word.name for word in measure_words() if word.listed for alias in word.aliases}


def aggregate_measure(measure: str, values: Numbers, missing: Bools | None = None) -> float:
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


FusionMethod: TypeAlias = Literal["rrf", "weighted"]
Normalization: TypeAlias = Literal["min_max", "z_score", "max", "none"]


def fuse_runs(
    runs: Sequence[pl.DataFrame],
    *,
    method: FusionMethod,
    weights: Sequence[float] | None = None,
    k: float = 60,
    normalization: Normalization = "min_max",
    depth: int,
    threads: int | None = None,
) -> pl.DataFrame:
    """Fuse runs into one: `query_id, doc_id, score`, grouped by query, best first, at most `depth` rows per query.

    Queries come in the order in which they first appear, run after run. Documents are ordered as in trec_eval: scores
    as float32, descending, ties by doc_id descending, bytewise.

    ranx 0.3.21 gives the same sums, with three differences: with "min_max" it makes equal scores 0, so that a run's
    only document counts for nothing; with "z_score" it gives absent documents 0, which is the mean; and it needs every
    query in every run.

    Args:
        runs: tables with the columns `query_id, doc_id, score`, the rows of each query best first. A query can be
            absent from some runs.
        method: "rrf": the sum of `weight / (k + rank)` over the runs that have the document, with ranks from 1 in the
            order of the rows (Cormack, Clarke and Büttcher, SIGIR 2009). "weighted": the sum of
            `weight * normalised score`.
        weights: one per run, finite, not negative, not all 0; None for all 1.
        k: for "rrf": a larger k makes the first ranks more equal; finite, not negative. The paper uses 60.
        normalization: for "weighted", applied to each run and query separately. "min_max":
            (score - lowest) / (highest - lowest). "z_score": (score - mean) / standard deviation of the population.
            "max": score / highest, which must be above 0. "none": the score. A document that a run lacks gets the
            normalised lowest score with "min_max" (0) and "z_score", and 0 with the others; a query that a run lacks
            adds nothing. Equal scores of a query all become 1 with "min_max" and 0 with "z_score".
        depth: the largest number of documents per query, at least 1.
        threads: the number of threads; None for one per core. The result does not depend on it.

    Raises:
        DataError: a score is NaN or infinite, a run has a document twice for a query, or the highest score is not
            above 0 with "max"; the message names run, row, query and document.
        ValueError: there are no runs, a column is missing or null, or a setting is wrong.
    """
    if not runs:
        raise ValueError("there are no runs to fuse")
    weights = [1.0] * len(runs) if weights is None else list(weights)
    depth = check_count("depth", depth)
    return pl.DataFrame(_core.fuse_runs(list(runs), method, weights, k, normalization, depth, check_threads(threads)))


def rank_documents(run: pl.DataFrame, depth: int | None = None, *, threads: int | None = None) -> pl.DataFrame:
    """Sort a run (`query_id, doc_id, score`), and cut each query's ranking at `depth` documents (None keeps all).

    Rows can come in any order. Queries keep the order in which they first appear. Documents are ordered as in
    trec_eval: scores as float32, descending, ties by doc_id descending, bytewise. The scores themselves do not change.

    Raises:
        DataError: a score is NaN or infinite, or a query has a document twice; the message names row, query and
            document.
        ValueError: a column is missing or null, or a setting is wrong.
    """
    if depth is not None:
        check_count("depth", depth)
    return pl.DataFrame(_core.rank_documents(run, depth, check_threads(threads)))
